// Linear layers of a gpt2 in 8-bit floating point and with 2:4 sparse weights.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

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
)";

// Float8Linear of torchao (float8/float8_scaling_utils.py) for each of input and weight: abs, the largest, to fp64,
// clamp, 448 / it (a reciprocal and a product), to fp32; then the tensor to fp32, times the scale, clamp, to fp8:
// eleven operations. 15 · 16 numbers are 480, 960 and 240 bytes. _scaled_mm is given reciprocals of both scales, and
// the bias is added behind. Layers of 20 columns stay in bf16, for kernels want multiples of 16.
TEST(ScaledStep, EachTensorHasAScale) {
  EXPECT_EQ(
      under(OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.model.hidden = 16; }).changed([](OddStep& step) {
        step.training.scaled_linear = ScaledLinear::tensorwise;
      }),
            {"forward layers.0.attention"}),
      kScaledStepListing1);
}

// A product with a 2:4 sparse weight reads half of it; gradients of weights are of whole products.
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
