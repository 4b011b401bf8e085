// Linear layers of a gpt2 in 8-bit floating point, with 2:4 sparse weights, and bits of autocast.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kScaledStepListing1[] = R"(
[forward layers.0.attention]
- linear
+ linear
+ pointwise x11 +480t pointwise 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) -480 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +960t cast 15x16 bf16->fp32 (480 > 960) +960t
    mul 15x16 fp32,fp32->fp32 broadcast (960 4 > 960) -960 +960t clamp 15x16 fp32 (960 > 960) +240t
    cast 15x16 fp32->uint8 (960 > 240) -960 -960
+ pointwise x11 +1536t pointwise 48x16 bf16 (1536 > 1536) +2t sum 1x768 bf16 (1536 > 2) -1536 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +3072t cast 48x16 bf16->fp32 (1536 > 3072) +3072t
    mul 48x16 fp32,fp32->fp32 broadcast (3072 4 > 3072) -3072 +3072t clamp 48x16 fp32 (3072 > 3072) +768t
    cast 48x16 fp32->uint8 (3072 > 768) -3072 -3072
+ pointwise x2
+ linear +4t reciprocal 1x1 fp32 (4 > 4) +4t reciprocal 1x1 fp32 (4 > 4) +1440t
    _scaled_mm 15x48x16 nt bf16 of fp8 (240 768 > 1440) -4 -4 -4 -768 -4 -240
+ pointwise x2 +1440 add 15x48 bf16,bf16->bf16 rows (1440 96 > 1440) -1440
- linear
+ linear
+ pointwise x11 +480t pointwise 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) -480 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +960t cast 15x16 bf16->fp32 (480 > 960) +960t
    mul 15x16 fp32,fp32->fp32 broadcast (960 4 > 960) -960 +960t clamp 15x16 fp32 (960 > 960) +240t
    cast 15x16 fp32->uint8 (960 > 240) -960 -960
+ pointwise x11 +512t pointwise 16x16 bf16 (512 > 512) +2t sum 1x256 bf16 (512 > 2) -512 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +1024t cast 16x16 bf16->fp32 (512 > 1024) +1024t
    mul 16x16 fp32,fp32->fp32 broadcast (1024 4 > 1024) -1024 +1024t clamp 16x16 fp32 (1024 > 1024) +256t
    cast 16x16 fp32->uint8 (1024 > 256) -1024 -1024
+ pointwise x2
+ linear +4t reciprocal 1x1 fp32 (4 > 4) +4t reciprocal 1x1 fp32 (4 > 4) +480t
    _scaled_mm 15x16x16 nt bf16 of fp8 (240 256 > 480) -4 -4 -4 -256 -4 -240
+ pointwise x2 +480t add 15x16 bf16,bf16->bf16 rows (480 32 > 480) -480
[backward]
- backward_first x20
+ backward_first x40
[backward layers.0]
- view_backward
[backward layers.0.attention]
- addmm_backward
+ add_backward +32g sum 15x16 bf16 rows (480 > 32)
- view_backward
+ mm_backward
+ pointwise x11 +480t pointwise 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) -480 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +960t cast 15x16 bf16->fp32 (480 > 960) +960t
    mul 15x16 fp32,fp32->fp32 broadcast (960 4 > 960) -960 +960t clamp 15x16 fp32 (960 > 960) +240t
    cast 15x16 fp32->uint8 (960 > 240) -960 -960
+ pointwise x11 +512t pointwise 16x16 bf16 (512 > 512) +2t sum 1x256 bf16 (512 > 2) -512 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +1024t cast 16x16 bf16->fp32 (512 > 1024) +1024t
    mul 16x16 fp32,fp32->fp32 broadcast (1024 4 > 1024) -1024 +1024t clamp 16x16 fp32 (1024 > 1024) +256t
    cast 16x16 fp32->uint8 (1024 > 256) -1024 -1024 +256t
+ contiguous copy 16x16 uint8 transposed (256 > 256)
+ pointwise x2
+ linear +4t reciprocal 1x1 fp32 (4 > 4) +4t reciprocal 1x1 fp32 (4 > 4) +480t
    _scaled_mm 15x16x16 nt bf16 of fp8, sums in fp32 (240 256 > 480) -4 -4 -256
+ pointwise x11 +480t pointwise 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) -480 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +960t cast 15x16 bf16->fp32 (480 > 960) +960t
    mul 15x16 fp32,fp32->fp32 broadcast (960 4 > 960) -960 +960t clamp 15x16 fp32 (960 > 960) +240t
    cast 15x16 fp32->uint8 (960 > 240) -960 -960 -240 -4
+ pointwise x11 +480t pointwise 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) -480 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +960t cast 15x16 bf16->fp32 (480 > 960) +960t
    mul 15x16 fp32,fp32->fp32 broadcast (960 4 > 960) -960 +960t clamp 15x16 fp32 (960 > 960) +240t
    cast 15x16 fp32->uint8 (960 > 240) -960 -960 +240t
+ contiguous copy 16x15 uint8 transposed (240 > 240) +240t
+ contiguous copy 16x15 uint8 transposed (240 > 240)
+ pointwise x2
+ linear +4t reciprocal 1x1 fp32 (4 > 4) +4t reciprocal 1x1 fp32 (4 > 4) +512g
    _scaled_mm 16x16x15 nt bf16 of fp8, sums in fp32 (240 240 > 512) -4 -4 -240 -240 -4 -240 -4 -240 -4 -256
- view_backward; view_backward; addmm_backward
+ add_backward +96g sum 15x48 bf16 rows (1440 > 96)
- view_backward
+ mm_backward
+ pointwise x11 +1440t pointwise 15x48 bf16 (1440 > 1440) +2t sum 1x720 bf16 (1440 > 2) -1440 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +2880t cast 15x48 bf16->fp32 (1440 > 2880) +2880t
    mul 15x48 fp32,fp32->fp32 broadcast (2880 4 > 2880) -2880 +2880t clamp 15x48 fp32 (2880 > 2880) +720t
    cast 15x48 fp32->uint8 (2880 > 720) -2880 -2880
+ pointwise x11 +1536t pointwise 48x16 bf16 (1536 > 1536) +2t sum 1x768 bf16 (1536 > 2) -1536 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +3072t cast 48x16 bf16->fp32 (1536 > 3072) +3072t
    mul 48x16 fp32,fp32->fp32 broadcast (3072 4 > 3072) -3072 +3072t clamp 48x16 fp32 (3072 > 3072) +768t
    cast 48x16 fp32->uint8 (3072 > 768) -3072 -3072 +768t
+ contiguous copy 16x48 uint8 transposed (768 > 768)
+ pointwise x2
+ linear +4t reciprocal 1x1 fp32 (4 > 4) +4t reciprocal 1x1 fp32 (4 > 4) +480t
    _scaled_mm 15x16x48 nt bf16 of fp8, sums in fp32 (720 768 > 480) -4 -4 -768
+ pointwise x11 +1440t pointwise 15x48 bf16 (1440 > 1440) +2t sum 1x720 bf16 (1440 > 2) -1440 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +2880t cast 15x48 bf16->fp32 (1440 > 2880) +2880t
    mul 15x48 fp32,fp32->fp32 broadcast (2880 4 > 2880) -2880 +2880t clamp 15x48 fp32 (2880 > 2880) +720t
    cast 15x48 fp32->uint8 (2880 > 720) -2880 -2880 -720 -4
+ pointwise x11 +480t pointwise 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) -480 +8t
    cast 1x1 bf16->fp64 (2 > 8) -2 +8t clamp 1x1 fp64 (8 > 8) -8 +8t reciprocal 1x1 fp64 (8 > 8) -8 +8t
    scale 1x1 fp64 (8 > 8) -8 +4t cast 1x1 fp64->fp32 (8 > 4) -8 +960t cast 15x16 bf16->fp32 (480 > 960) +960t
    mul 15x16 fp32,fp32->fp32 broadcast (960 4 > 960) -960 +960t clamp 15x16 fp32 (960 > 960) +240t
    cast 15x16 fp32->uint8 (960 > 240) -960 -960 +720t
+ contiguous copy 48x15 uint8 transposed (720 > 720) +240t
+ contiguous copy 16x15 uint8 transposed (240 > 240)
+ pointwise x2
+ linear +4t reciprocal 1x1 fp32 (4 > 4) +4t reciprocal 1x1 fp32 (4 > 4) +1536g
    _scaled_mm 48x16x15 nt bf16 of fp8, sums in fp32 (720 240 > 1536) -4 -4 -240 -720 -4 -240 -4 -720 -4 -768 -1440
    -480
- view_backward
)";

TEST(ScaledStep, EachTensorHasAScale) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.model.hidden = 16; }).changed([](OddStep& step) {
    step.training.scaled_linear = ScaledLinear::tensorwise;
  }),
            kScaledStepListing1);
}

constexpr char kScaledStepListing2[] = R"(
[forward layers.0.attention]
- pointwise x11; pointwise x11
+ pointwise x16 +480t pointwise 15x16 bf16 (480 > 480) +960t cast 15x16 bf16->fp32 (480 > 960) -480 +960t
    pointwise 15x16 fp32 (960 > 960) -960 +60t sum 15x16 fp32 cols (960 > 60) -960 +120t
    cast 15x1 fp32->fp64 (60 > 120) -60 +120t clamp 15x1 fp64 (120 > 120) -120 +120t reciprocal 15x1 fp64 (120 > 120)
    -120 +120t scale 15x1 fp64 (120 > 120) -120 +60t cast 15x1 fp64->fp32 (120 > 60) -120 +60t
    pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60
    +960t cast 15x16 bf16->fp32 (480 > 960) +960t mul 15x16 fp32,fp32->fp32 broadcast (960 60 > 960) -960 +960t
    clamp 15x16 fp32 (960 > 960) +240t cast 15x16 fp32->uint8 (960 > 240) -960 -960
+ pointwise x16 +1536t pointwise 48x16 bf16 (1536 > 1536) +3072t cast 48x16 bf16->fp32 (1536 > 3072) -1536 +3072t
    pointwise 48x16 fp32 (3072 > 3072) -3072 +192t sum 48x16 fp32 cols (3072 > 192) -3072 +384t
    cast 48x1 fp32->fp64 (192 > 384) -192 +384t clamp 48x1 fp64 (384 > 384) -384 +384t
    reciprocal 48x1 fp64 (384 > 384) -384 +384t scale 48x1 fp64 (384 > 384) -384 +192t
    cast 48x1 fp64->fp32 (384 > 192) -384 +192t pointwise 48x1 fp32 (192 > 192) -192 +192t
    pointwise 48x1 fp32 (192 > 192) -192 +192t pointwise 48x1 fp32 (192 > 192) -192 +3072t
    cast 48x16 bf16->fp32 (1536 > 3072) +3072t mul 48x16 fp32,fp32->fp32 broadcast (3072 192 > 3072) -3072 +3072t
    clamp 48x16 fp32 (3072 > 3072) +768t cast 48x16 fp32->uint8 (3072 > 768) -3072 -3072
- linear
+ linear +60t reciprocal 15x1 fp32 (60 > 60) +192t reciprocal 48x1 fp32 (192 > 192) +1440t
    _scaled_mm 15x48x16 nt bf16 of fp8, scales of rows (240 768 > 1440) -192 -60 -192 -768 -60 -240
- pointwise x11; pointwise x11
+ pointwise x16 +480t pointwise 15x16 bf16 (480 > 480) +960t cast 15x16 bf16->fp32 (480 > 960) -480 +960t
    pointwise 15x16 fp32 (960 > 960) -960 +60t sum 15x16 fp32 cols (960 > 60) -960 +120t
    cast 15x1 fp32->fp64 (60 > 120) -60 +120t clamp 15x1 fp64 (120 > 120) -120 +120t reciprocal 15x1 fp64 (120 > 120)
    -120 +120t scale 15x1 fp64 (120 > 120) -120 +60t cast 15x1 fp64->fp32 (120 > 60) -120 +60t
    pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60
    +960t cast 15x16 bf16->fp32 (480 > 960) +960t mul 15x16 fp32,fp32->fp32 broadcast (960 60 > 960) -960 +960t
    clamp 15x16 fp32 (960 > 960) +240t cast 15x16 fp32->uint8 (960 > 240) -960 -960
+ pointwise x16 +512t pointwise 16x16 bf16 (512 > 512) +1024t cast 16x16 bf16->fp32 (512 > 1024) -512 +1024t
    pointwise 16x16 fp32 (1024 > 1024) -1024 +64t sum 16x16 fp32 cols (1024 > 64) -1024 +128t
    cast 16x1 fp32->fp64 (64 > 128) -64 +128t clamp 16x1 fp64 (128 > 128) -128 +128t reciprocal 16x1 fp64 (128 > 128)
    -128 +128t scale 16x1 fp64 (128 > 128) -128 +64t cast 16x1 fp64->fp32 (128 > 64) -128 +64t
    pointwise 16x1 fp32 (64 > 64) -64 +64t pointwise 16x1 fp32 (64 > 64) -64 +64t pointwise 16x1 fp32 (64 > 64) -64
    +1024t cast 16x16 bf16->fp32 (512 > 1024) +1024t mul 16x16 fp32,fp32->fp32 broadcast (1024 64 > 1024) -1024
    +1024t clamp 16x16 fp32 (1024 > 1024) +256t cast 16x16 fp32->uint8 (1024 > 256) -1024 -1024
- linear
+ linear +60t reciprocal 15x1 fp32 (60 > 60) +64t reciprocal 16x1 fp32 (64 > 64) +480t
    _scaled_mm 15x16x16 nt bf16 of fp8, scales of rows (240 256 > 480) -64 -60 -64 -256 -60 -240
[backward layers.0.attention]
- pointwise x11; pointwise x11
+ pointwise x16 +480t pointwise 15x16 bf16 (480 > 480) +960t cast 15x16 bf16->fp32 (480 > 960) -480 +960t
    pointwise 15x16 fp32 (960 > 960) -960 +60t sum 15x16 fp32 cols (960 > 60) -960 +120t
    cast 15x1 fp32->fp64 (60 > 120) -60 +120t clamp 15x1 fp64 (120 > 120) -120 +120t reciprocal 15x1 fp64 (120 > 120)
    -120 +120t scale 15x1 fp64 (120 > 120) -120 +60t cast 15x1 fp64->fp32 (120 > 60) -120 +60t
    pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60
    +960t cast 15x16 bf16->fp32 (480 > 960) +960t mul 15x16 fp32,fp32->fp32 broadcast (960 60 > 960) -960 +960t
    clamp 15x16 fp32 (960 > 960) +240t cast 15x16 fp32->uint8 (960 > 240) -960 -960
+ pointwise x3 +480t scale 15x16 bf16 (480 > 480) +2t sum 1x240 bf16 (480 > 2) +512t
    add 16x16 bf16,bf16->bf16 broadcast (512 2 > 512) -2 -480
+ pointwise x16 +512t pointwise 16x16 bf16 (512 > 512) +1024t cast 16x16 bf16->fp32 (512 > 1024) -512 +1024t
    pointwise 16x16 fp32 (1024 > 1024) -1024 +64t sum 16x16 fp32 rows (1024 > 64) -1024 +128t
    cast 1x16 fp32->fp64 (64 > 128) -64 +128t clamp 1x16 fp64 (128 > 128) -128 +128t reciprocal 1x16 fp64 (128 > 128)
    -128 +128t scale 1x16 fp64 (128 > 128) -128 +64t cast 1x16 fp64->fp32 (128 > 64) -128 +64t
    pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64
    +1024t cast 16x16 bf16->fp32 (512 > 1024) +1024t mul 16x16 fp32,fp32->fp32 rows (1024 64 > 1024) -1024 +1024t
    clamp 16x16 fp32 (1024 > 1024) +256t cast 16x16 fp32->uint8 (1024 > 256) -1024 -1024 +256t
- linear; pointwise x11; pointwise x11
+ linear +60t reciprocal 15x1 fp32 (60 > 60) +64t reciprocal 1x16 fp32 (64 > 64) +480t
    _scaled_mm 15x16x16 nt bf16 of fp8, scales of rows (240 256 > 480) -64 -60 -256
+ pointwise x16 +480t pointwise 15x16 bf16 (480 > 480) +960t cast 15x16 bf16->fp32 (480 > 960) -480 +960t
    pointwise 15x16 fp32 (960 > 960) -960 +64t sum 15x16 fp32 rows (960 > 64) -960 +128t
    cast 1x16 fp32->fp64 (64 > 128) -64 +128t clamp 1x16 fp64 (128 > 128) -128 +128t reciprocal 1x16 fp64 (128 > 128)
    -128 +128t scale 1x16 fp64 (128 > 128) -128 +64t cast 1x16 fp64->fp32 (128 > 64) -128 +64t
    pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64
    +960t cast 15x16 bf16->fp32 (480 > 960) +960t mul 15x16 fp32,fp32->fp32 rows (960 64 > 960) -960 +960t
    clamp 15x16 fp32 (960 > 960) +240t cast 15x16 fp32->uint8 (960 > 240) -960 -960 -240 -60
+ pointwise x16 +480t pointwise 15x16 bf16 (480 > 480) +960t cast 15x16 bf16->fp32 (480 > 960) -480 +960t
    pointwise 15x16 fp32 (960 > 960) -960 +64t sum 15x16 fp32 rows (960 > 64) -960 +128t
    cast 1x16 fp32->fp64 (64 > 128) -64 +128t clamp 1x16 fp64 (128 > 128) -128 +128t reciprocal 1x16 fp64 (128 > 128)
    -128 +128t scale 1x16 fp64 (128 > 128) -128 +64t cast 1x16 fp64->fp32 (128 > 64) -128 +64t
    pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64
    +960t cast 15x16 bf16->fp32 (480 > 960) +960t mul 15x16 fp32,fp32->fp32 rows (960 64 > 960) -960 +960t
    clamp 15x16 fp32 (960 > 960) +240t cast 15x16 fp32->uint8 (960 > 240) -960 -960 +240t
- linear
+ linear +64t reciprocal 1x16 fp32 (64 > 64) +64t reciprocal 1x16 fp32 (64 > 64) +512g
    _scaled_mm 16x16x15 nt bf16 of fp8, scales of rows (240 240 > 512) -64 -64 -240 -240 -64 -240 -64 -240 -512 -64
    -256
- pointwise x11; pointwise x11
+ pointwise x16 +1440t pointwise 15x48 bf16 (1440 > 1440) +2880t cast 15x48 bf16->fp32 (1440 > 2880) -1440 +2880t
    pointwise 15x48 fp32 (2880 > 2880) -2880 +60t sum 15x48 fp32 cols (2880 > 60) -2880 +120t
    cast 15x1 fp32->fp64 (60 > 120) -60 +120t clamp 15x1 fp64 (120 > 120) -120 +120t reciprocal 15x1 fp64 (120 > 120)
    -120 +120t scale 15x1 fp64 (120 > 120) -120 +60t cast 15x1 fp64->fp32 (120 > 60) -120 +60t
    pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60 +60t pointwise 15x1 fp32 (60 > 60) -60
    +2880t cast 15x48 bf16->fp32 (1440 > 2880) +2880t mul 15x48 fp32,fp32->fp32 broadcast (2880 60 > 2880) -2880
    +2880t clamp 15x48 fp32 (2880 > 2880) +720t cast 15x48 fp32->uint8 (2880 > 720) -2880 -2880
+ pointwise x3 +1440t scale 15x48 bf16 (1440 > 1440) +2t sum 1x720 bf16 (1440 > 2) +1536t
    add 48x16 bf16,bf16->bf16 broadcast (1536 2 > 1536) -2 -1440
+ pointwise x16 +1536t pointwise 48x16 bf16 (1536 > 1536) +3072t cast 48x16 bf16->fp32 (1536 > 3072) -1536 +3072t
    pointwise 48x16 fp32 (3072 > 3072) -3072 +64t sum 48x16 fp32 rows (3072 > 64) -3072 +128t
    cast 1x16 fp32->fp64 (64 > 128) -64 +128t clamp 1x16 fp64 (128 > 128) -128 +128t reciprocal 1x16 fp64 (128 > 128)
    -128 +128t scale 1x16 fp64 (128 > 128) -128 +64t cast 1x16 fp64->fp32 (128 > 64) -128 +64t
    pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64
    +3072t cast 48x16 bf16->fp32 (1536 > 3072) +3072t mul 48x16 fp32,fp32->fp32 rows (3072 64 > 3072) -3072 +3072t
    clamp 48x16 fp32 (3072 > 3072) +768t cast 48x16 fp32->uint8 (3072 > 768) -3072 -3072 +768t
- linear; pointwise x11; pointwise x11
+ linear +60t reciprocal 15x1 fp32 (60 > 60) +64t reciprocal 1x16 fp32 (64 > 64) +480t
    _scaled_mm 15x16x48 nt bf16 of fp8, scales of rows (720 768 > 480) -64 -60 -768
+ pointwise x16 +1440t pointwise 15x48 bf16 (1440 > 1440) +2880t cast 15x48 bf16->fp32 (1440 > 2880) -1440 +2880t
    pointwise 15x48 fp32 (2880 > 2880) -2880 +192t sum 15x48 fp32 rows (2880 > 192) -2880 +384t
    cast 1x48 fp32->fp64 (192 > 384) -192 +384t clamp 1x48 fp64 (384 > 384) -384 +384t
    reciprocal 1x48 fp64 (384 > 384) -384 +384t scale 1x48 fp64 (384 > 384) -384 +192t
    cast 1x48 fp64->fp32 (384 > 192) -384 +192t pointwise 1x48 fp32 (192 > 192) -192 +192t
    pointwise 1x48 fp32 (192 > 192) -192 +192t pointwise 1x48 fp32 (192 > 192) -192 +2880t
    cast 15x48 bf16->fp32 (1440 > 2880) +2880t mul 15x48 fp32,fp32->fp32 rows (2880 192 > 2880) -2880 +2880t
    clamp 15x48 fp32 (2880 > 2880) +720t cast 15x48 fp32->uint8 (2880 > 720) -2880 -2880 -720 -60
+ pointwise x16 +480t pointwise 15x16 bf16 (480 > 480) +960t cast 15x16 bf16->fp32 (480 > 960) -480 +960t
    pointwise 15x16 fp32 (960 > 960) -960 +64t sum 15x16 fp32 rows (960 > 64) -960 +128t
    cast 1x16 fp32->fp64 (64 > 128) -64 +128t clamp 1x16 fp64 (128 > 128) -128 +128t reciprocal 1x16 fp64 (128 > 128)
    -128 +128t scale 1x16 fp64 (128 > 128) -128 +64t cast 1x16 fp64->fp32 (128 > 64) -128 +64t
    pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64 +64t pointwise 1x16 fp32 (64 > 64) -64
    +960t cast 15x16 bf16->fp32 (480 > 960) +960t mul 15x16 fp32,fp32->fp32 rows (960 64 > 960) -960 +960t
    clamp 15x16 fp32 (960 > 960) +240t cast 15x16 fp32->uint8 (960 > 240) -960 -960 +720t
- linear
+ linear +192t reciprocal 1x48 fp32 (192 > 192) +64t reciprocal 1x16 fp32 (64 > 64) +1536g
    _scaled_mm 48x16x15 nt bf16 of fp8, scales of rows (720 240 > 1536) -64 -192 -240 -720 -64 -240 -192 -720 -1536
    -64 -768 -1440 -480
)";

TEST(ScaledStep, OrEachRow) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) { step.model.hidden = 16; })
                .but([](OddStep& step) { step.training.scaled_linear = ScaledLinear::tensorwise; })
                .changed([](OddStep& step) { step.training.scaled_linear = ScaledLinear::rowwise; }),
            kScaledStepListing2);
}

TEST(ScaledStep, HalfOfTheWeightsAreZero) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) { step.model.sparse_weights = true; }), R"(
[forward layers.0.attention]
- linear
+ linear +1080 addmm 15x36x12 nt bf16 2:4 b (360 864 72 > 1080)
- linear
+ linear +360t addmm 15x12x12 nt bf16 2:4 b (360 288 24 > 360)
[forward layers.0.feed_forward]
- linear
+ linear +600 addmm 15x20x12 nt bf16 2:4 b (360 480 40 > 600)
- linear
+ linear +360t addmm 15x12x20 nt bf16 2:4 b (600 480 24 > 360)
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 2:4 b (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -600
- addmm_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 2:4 b (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600 -360
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 2:4 b (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 2:4 b (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
)");
}

}  // namespace
}  // namespace ridgeline
