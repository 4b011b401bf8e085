// Distances between tokens in the scores of compositions.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedDistancesStepListing1[] = R"(
[forward positions]
+ pointwise x14 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +200t
    add 5x5 int64,int64->int64 rows (40 40 > 200) +100t cast 5x5 int64->fp32 (200 > 100) +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +200t
    cast 5x5 fp32->int64 (100 > 200) +25t pointwise 5x5 int64->bool (200 > 25) +200
    pointwise 5x5 bool,int64,int64->int64 (25 200 200 > 200) -25 -200 -100 -200 -40 -40
+ embedding +100t embedding 25 of 32x2 bf16 (128 200 > 100)
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- attention_fused
+ attention_fused +720t cast 30x6 bf16->fp32 (360 > 720) +720t cast 30x6 bf16->fp32 (360 > 720) +720t
    cast 30x6 bf16->fp32 (360 > 720) +720t scale 30x6 fp32 (720 > 720) +720t scale 36x5 fp32 (720 > 720) +720
    copy 30x6 fp32 permuted (720 > 720) +720 copy 36x5 fp32 transposed (720 > 720) +600t
    bmm 6x 5x5x6 nn fp32 (720 720 > 600) add_ 30x5 fp32,bf16->fp32 broadcast (600 100 > 600) +600t
    softmax 30x5 fp32 (600 > 600) +150t eq 30x5 fp32->bool (600 > 150) +30t sum 30x5 bool cols (150 > 30) -150 +600
    masked_fill 30x5 fp32,bool->fp32 broadcast (600 30 > 600) -30 -600 -600 +720 copy 30x6 fp32 permuted (720 > 720)
    +720t bmm 6x 5x6x5 nn fp32 (600 720 > 720) +360t cast 30x6 fp32->bf16 (720 > 360) -720 -720 -720 -720 -720 -720
- view
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -360 -360 -360
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -100
[backward]
- backward_first x23
+ backward_first x40
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- attention_fused_backward
+ cast_backward +720t cast 30x6 bf16->fp32 (360 > 720) -360
+ view_backward_copy +720t copy 30x6 fp32 permuted (720 > 720) -720
+ bmm_backward +720t bmm 6x 5x6x5 tn fp32 (600 720 > 720) +600t bmm 6x 5x5x6 nt fp32 (720 720 > 600) -720 -720
+ view_backward; view_backward; view_backward; view_backward
+ softmax_backward +600t +600t softmax_backward 30x5 fp32 (600 600 > 600) -600 -600 -600
+ add_backward +200t sum 3x50 fp32 rows (600 > 200)
+ cast_backward +100t cast 10x5 fp32->bf16 (200 > 100) -200
+ view_backward
+ bmm_backward +720t bmm 6x 6x5x5 tn fp32 (720 600 > 720) +720t bmm 6x 5x6x5 nt fp32 (600 720 > 720) -600 -720 -720
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
+ pointwise_backward +720t scale 36x5 fp32 (720 > 720) -720
+ view_backward
+ pointwise_backward +720t scale 30x6 fp32 (720 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
+ view_backward_copy +360t copy 15x12 bf16 transposed (360 > 360) -360
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
[backward layers.0]
+ view_backward; view_backward
[backward positions]
+ embedding_backward +128g embedding_dense_backward 25 of 32x2 bf16 (100 200 > 128) -100 -200
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -128 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDistancesStepListing2[] = R"(
[forward positions]
+ pointwise x14 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +200t
    add 5x5 int64,int64->int64 rows (40 40 > 200) +100t cast 5x5 int64->fp32 (200 > 100) +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +200t
    cast 5x5 fp32->int64 (100 > 200) +25t pointwise 5x5 int64->bool (200 > 25) +200
    pointwise 5x5 bool,int64,int64->int64 (25 200 200 > 200) -25 -200 -100 -200 -40 -40
+ embedding +100t embedding 25 of 32x2 bf16 (128 200 > 100)
[forward layers.0.attention]
- pointwise
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (300 100 > 300) -300 +600t cast 30x5 bf16->fp32 (300 > 600)
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -100
[backward]
- backward_first x32
+ backward_first x40
[backward layers.0.attention]
+ add_backward +100t sum 3x50 bf16 rows (300 > 100)
[backward layers.0]
+ view_backward; view_backward
[backward positions]
+ embedding_backward +128g embedding_dense_backward 25 of 32x2 bf16 (100 200 > 128) -100 -200
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -128 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDistancesStepListing3[] = R"(
[forward positions]
+ pointwise x14 +200 copy_to_device 5x5 int64 pageable to gpu (> 200)
+ embedding +100t embedding 25 of 32x2 bf16 (128 200 > 100)
+ contiguous +300t copy 30x5 bf16 transposed (100 > 300) -100
[forward layers.0.attention]
- pointwise
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300
+ pointwise add_ 30x5 bf16,bf16->bf16 (300 300 > 300) +600t cast 30x5 bf16->fp32 (300 > 600)
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -300
[backward]
- backward_first x32
+ backward_first x36
[backward layers.0.attention]
- pointwise_backward
+ add_backward
+ pointwise_backward +300t scale 30x5 bf16 (300 > 300)
[backward layers.0]
+ view_backward
[backward positions]
+ view_backward +100t sum 3x50 bf16 rows (300 > 100) -300
+ view_backward; view_backward
+ embedding_backward +128g embedding_dense_backward 25 of 32x2 bf16 (100 200 > 128) -100 -200
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -128 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDistancesStepListing4[] = R"(
[forward layers.0.attention]
+ pointwise x14 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +200t
    add 5x5 int64,int64->int64 rows (40 40 > 200) +100t cast 5x5 int64->fp32 (200 > 100) +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +200t
    cast 5x5 fp32->int64 (100 > 200) +25t pointwise 5x5 int64->bool (200 > 25) +200
    pointwise 5x5 bool,int64,int64->int64 (25 200 200 > 200) -25 -200 -100 -200 -40 -40
+ embedding +100t embedding 25 of 32x2 bf16 (128 200 > 100)
- pointwise
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (300 100 > 300) -300 +600t cast 30x5 bf16->fp32 (300 > 600)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -100 -360 -360 -360
[backward]
- backward_first x32
+ backward_first x40
[backward layers.0.attention]
+ add_backward +100t sum 3x50 bf16 rows (300 > 100)
+ embedding_backward +128g embedding_dense_backward 25 of 32x2 bf16 (100 200 > 128) -100 -200
+ accumulate_grad; view_backward; view_backward
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -128 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedDistancesStepListing5[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x14 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +200t
    add 5x5 int64,int64->int64 rows (40 40 > 200) +100t cast 5x5 int64->fp32 (200 > 100) +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +100t
    pointwise 5x5 fp32 (100 > 100) -100 +100t pointwise 5x5 fp32 (100 > 100) -100 +200t
    cast 5x5 fp32->int64 (100 > 200) +25t pointwise 5x5 int64->bool (200 > 25) +200
    pointwise 5x5 bool,int64,int64->int64 (25 200 200 > 200) -25 -200 -100 -200 -40 -40
+ embedding +100t embedding 25 of 32x2 bf16 (128 200 > 100)
+ pointwise x10 +24t arange 1x3 int64 (> 24) +8t arange 1x1 int64 (> 8) +40t arange 1x5 int64 (> 40) +40t
    add 1x5 int64 (40 > 40) -40 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40 +25t
    pointwise 5x5 int64,int64->bool rows (40 40 > 25) -24 -8 -40 -40 +2t fill 1x1 bf16 (> 2) +2t
    copy_to_device 1x1 bf16 to gpu (> 2) +150t pointwise 3x25 bool->bf16 rows (25 > 150) -2 -2 -25
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (100 150 > 300) -150 -100 -40
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- attention_fused
+ attention_fused +720t cast 30x6 bf16->fp32 (360 > 720) +720t cast 30x6 bf16->fp32 (360 > 720) +720t
    cast 30x6 bf16->fp32 (360 > 720) +720t scale 30x6 fp32 (720 > 720) +720t scale 36x5 fp32 (720 > 720) +720
    copy 30x6 fp32 permuted (720 > 720) +720 copy 36x5 fp32 transposed (720 > 720) +600t
    bmm 6x 5x5x6 nn fp32 (720 720 > 600) add_ 30x5 fp32,bf16->fp32 (600 300 > 600) +600t
    softmax 30x5 fp32 (600 > 600) +150t eq 30x5 fp32->bool (600 > 150) +30t sum 30x5 bool cols (150 > 30) -150 +600
    masked_fill 30x5 fp32,bool->fp32 broadcast (600 30 > 600) -30 -600 -600 +720 copy 30x6 fp32 permuted (720 > 720)
    +720t bmm 6x 5x6x5 nn fp32 (600 720 > 720) +360t cast 30x6 fp32->bf16 (720 > 360) -720 -720 -720 -720 -720 -720
- view
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -360 -360 -360
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -300
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- attention_fused_backward
+ cast_backward +720t cast 30x6 bf16->fp32 (360 > 720) -360
+ view_backward_copy +720t copy 30x6 fp32 permuted (720 > 720) -720
+ bmm_backward +720t bmm 6x 5x6x5 tn fp32 (600 720 > 720) +600t bmm 6x 5x5x6 nt fp32 (720 720 > 600) -720 -720
+ view_backward; view_backward; view_backward; view_backward
+ softmax_backward +600t +600t softmax_backward 30x5 fp32 (600 600 > 600) -600 -600 -600
+ add_backward
+ cast_backward +300t cast 30x5 fp32->bf16 (600 > 300)
+ view_backward
+ bmm_backward +720t bmm 6x 6x5x5 tn fp32 (720 600 > 720) +720t bmm 6x 5x6x5 nt fp32 (600 720 > 720) -600 -720 -720
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
+ pointwise_backward +720t scale 36x5 fp32 (720 > 720) -720
+ view_backward
+ pointwise_backward +720t scale 30x6 fp32 (720 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
+ view_backward_copy +360t copy 15x12 bf16 transposed (360 > 360) -360
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
[backward positions]
+ add_backward +100t sum 3x50 bf16 rows (300 > 100) -300
+ view_backward; view_backward
+ embedding_backward +128g embedding_dense_backward 25 of 32x2 bf16 (100 200 > 128) -100 -200
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -128 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

TEST(ComposedDistancesStep, BucketsOfDistancesHaveANumberForEachHead) {
  EXPECT_EQ(changes_by_keys("positions: relative", "causal: false"), kComposedDistancesStepListing1);
  EXPECT_EQ(changes_by_keys("positions: relative", "causal: false, attention_code: written-out"),
            kComposedDistancesStepListing2);
  EXPECT_EQ(
      changes_by_keys("positions: relative, relative_in_place: true", "causal: false, attention_code: written-out"),
      kComposedDistancesStepListing3);
  EXPECT_EQ(
      changes_by_keys("positions: relative, relative_each_layer: true", "causal: false, attention_code: written-out"),
      kComposedDistancesStepListing4);
  EXPECT_EQ(changes_by_keys("positions: relative"), kComposedDistancesStepListing5);
}

constexpr char kComposedDistancesStepListing6[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x8 +20t cast 1x5 int64->fp32 (40 > 20) +20t mm 1x5x1 nn fp32 (4 20 > 20) +40t
    cat 5x1 fp32 x2 joined (20 20 > 40) +40t rope 5x2 fp32 (40 > 40) +40t scale 5x2 fp32 (40 > 40) -40 +40t
    rope 5x2 fp32 (40 > 40) +40t scale 5x2 fp32 (40 > 40) -40 +20 cast 5x2 fp32->bf16 (40 > 20) +20
    cast 5x2 fp32->bf16 (40 > 20) -20 -20 -40 -40 -40 -40
[forward layers.0.attention]
- linear
+ linear +150 addmm 15x5x12 nt bf16 (360 120 10 > 150)
+ layer_norm_module +150 +60 +60 native_layer_norm 15x5 bf16 (150 10 10 > 150 60 60)
+ linear +480t mm 15x16x5 nt bf16 (150 160 > 480)
- linear
+ split x3
+ linear +180t addmm 15x6x12 nt bf16 (360 144 12 > 180) +120 copy 15x4 bf16 permuted (120 > 120)
+ layer_norm_module +120 +60 +60 native_layer_norm 15x4 bf16 (120 8 8 > 120 60 60)
+ linear +540 mm 15x18x4 nt bf16 (120 144 > 540)
- linear; view; attention_fused
+ pointwise x4
+ concatenate +120t mul 30x2 bf16,bf16->bf16 strided (120 20 > 120) +60t scale 30x1 bf16 strided (60 > 60) +120t
    cat 30x1 bf16 x2 joined (60 60 > 120) -60 +120t mul 6x10 bf16,bf16->bf16 rows (120 20 > 120) -120 +120t
    add 30x2 bf16,bf16->bf16 strided (120 120 > 120) -120 -120
+ pointwise x4
+ concatenate +60t mul 3x10 bf16,bf16->bf16 strided (60 20 > 60) +30t scale 15x1 bf16 strided (30 > 30) +60t
    cat 15x1 bf16 x2 joined (30 30 > 60) -30 +60t mul 3x10 bf16,bf16->bf16 rows (60 20 > 60) -60 +60t
    add 15x2 bf16,bf16->bf16 (60 60 > 60) -60 -60
+ concatenate x2 +480 cat 30x4 bf16 x2 joined strided (360 120 > 480) +480
    cat 30x4 bf16 x2 joined strided (360 60 > 480) -60 -180 -120 -480
+ attention_fused +180 +120 +16 +8 flash_attention 3x2x5x8 causal bf16 (480 480 180 > 180 120)
- view
+ contiguous +180 copy 30x3 bf16 permuted (180 > 180)
- linear
+ linear +360t addmm 15x12x6 nt bf16 (180 144 24 > 360)
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +180t mm 15x6x12 nn bf16 (360 144 > 180) +144g mm 12x6x15 tn bf16 (360 180 > 144) +24g
    sum 15x12 bf16 rows (360 > 24) -180
- attention_fused_backward
+ attention_fused_backward +480t +480t +180t
    flash_attention_backward 3x2x5x8 causal bf16 (180 480 480 180 180 120 > 480 480 180) -180 -480 -480 -540 -120
    -180 -8 -16
+ view_backward +360t sum 1x180 bf16 rows (360 > 360)
+ view_backward +360t sum 1x180 bf16 rows (360 > 360)
+ view_backward +60t sum 2x30 bf16 rows (120 > 60) -480
+ add_backward
+ pointwise_backward +60t mul 3x10 bf16,bf16->bf16 rows (60 20 > 60)
+ pointwise_backward +30t scale 15x1 bf16 strided (30 > 30)
+ pointwise_backward +60t fill 15x2 bf16 (> 60) copy 15x1 bf16 permuted (30 > 60) -30
+ pointwise_backward +60t fill 15x2 bf16 (> 60) copy 15x1 bf16 permuted (30 > 60) -60
+ fan_in_add add_ 15x2 bf16,bf16->bf16 (60 60 > 60) -60
+ pointwise_backward +60t mul 3x10 bf16,bf16->bf16 rows (60 20 > 60) -60
+ fan_in_add add_ 15x2 bf16,bf16->bf16 (60 60 > 60) -60
+ add_backward
+ pointwise_backward +120t mul 6x10 bf16,bf16->bf16 strided (120 20 > 120) -20
- addmm_backward; accumulate_grad
+ pointwise_backward +60t scale 30x1 bf16 strided (60 > 60)
+ pointwise_backward +120t fill 30x2 bf16 (> 120) copy 30x1 bf16 permuted (60 > 120) -60
+ pointwise_backward +120t fill 30x2 bf16 (> 120) copy 30x1 bf16 permuted (60 > 120) -120
+ fan_in_add add_ 30x2 bf16,bf16->bf16 (120 120 > 120) -120
+ pointwise_backward +120t mul 6x10 bf16,bf16->bf16 strided (120 20 > 120) -480 -20
+ fan_in_add add_ 30x2 bf16,bf16->bf16 (120 120 > 120) -120
- accumulate_grad
+ split_backward +540t cat 30x4 bf16 x2 joined strided (360 180 > 540) -360 -180
+ view_backward_copy +540t copy 30x9 bf16 permuted (540 > 540) -540
- addmm_backward
+ mm_backward +144g mm 18x4x15 tn bf16 (540 120 > 144) +120t mm 15x4x18 nn bf16 (540 144 > 120) -540 -120
+ view_backward; view_backward
+ layer_norm_backward +120t +8g +8g native_layer_norm_backward 15x4 bf16 (120 120 8 60 60 > 120 8 8) -120 -120 -60
    -60
+ accumulate_grad; accumulate_grad
+ view_backward +120t sum 1x60 bf16 rows (120 > 120) -120
+ split_backward +180t cat 15x3 bf16 x2 joined (120 60 > 180) -120 -60
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- fan_in_add
+ accumulate_grad
+ split_backward +480t cat 30x4 bf16 x2 joined (360 120 > 480) -360 -120
- addmm_backward
+ view_backward_copy +480t copy 30x8 bf16 permuted (480 > 480) -480
+ view_backward
+ mm_backward +160g mm 16x5x15 tn bf16 (480 150 > 160) +150t mm 15x5x16 nn bf16 (480 160 > 150) -480 -150
+ view_backward; view_backward
+ layer_norm_backward +150t +10g +10g native_layer_norm_backward 15x5 bf16 (150 150 10 60 60 > 150 10 10) -150 -150
    -60 -60
+ accumulate_grad; accumulate_grad
+ addmm_backward +360t mm 15x12x5 nn bf16 (150 120 > 360) +120g mm 5x12x15 tn bf16 (150 360 > 120) +10g
    sum 15x5 bf16 rows (150 > 10) -150 -360
- fan_in_add
+ accumulate_grad; view_backward
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x23 -408 -120 -10 -10 -10 -160 -144 -12 -8 -8 -144 -144 -24 -24 -24 -480 -40 -480 -24 -24
    -24 -24 -24
)";

TEST(ComposedDistancesStep, LatentKeysAreExpanded) {
  EXPECT_EQ(
      changes_by_keys("query_rank: 5, key_value_rank: 4, rotary_head_dim: 2, value_head_dim: 3, positions: rotary"),
      kComposedDistancesStepListing6);
}

}  // namespace
}  // namespace ridgeline
