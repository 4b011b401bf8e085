// Keys that heads share and masks that attention of compositions is given.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedMasksStepListing1[] = R"(
[forward layers.0.attention]
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 kv1 (360 180 180 > 360 120)
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +180t +180t
    flash_attention_backward 3x2x5x6 causal bf16 kv1 (360 360 180 180 360 120 > 360 180 180) -360 -180 -360 -180 -120
    -360 -8 -16
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x19 -408 -288 -24 -144 -12 -144 -12 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedMasksStepListing2[] = R"(
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +180t addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180t addmm 15x6x12 nt bf16 (360 144 12 > 180)
- attention_fused
+ attention_fused +720t cast 30x6 bf16->fp32 (360 > 720) +720t cast 30x6 bf16->fp32 strided (180 > 720) +720t
    cast 30x6 bf16->fp32 strided (180 > 720) +25t fill 5x5 bool (> 25) pointwise 5x5 bool (25 > 25) +100t
    fill 5x5 fp32 (> 100) masked_fill 5x5 fp32,bool->fp32 (100 25 > 100) -25 +720t scale 30x6 fp32 (720 > 720) +720t
    scale 36x5 fp32 (720 > 720) +720 copy 30x6 fp32 permuted (720 > 720) +720 copy 36x5 fp32 transposed (720 > 720)
    +600t bmm 6x 5x5x6 nn fp32 (720 720 > 600) add_ 6x25 fp32,fp32->fp32 rows (600 100 > 600) +600t
    softmax 30x5 fp32 (600 > 600) +150t eq 30x5 fp32->bool (600 > 150) +30t sum 30x5 bool cols (150 > 30) -150 +600
    masked_fill 30x5 fp32,bool->fp32 broadcast (600 30 > 600) -30 -600 -600 +720
    copy 30x6 fp32 transposed (720 > 720) +720t bmm 6x 5x6x5 nn fp32 (600 720 > 720) +360t
    cast 30x6 fp32->bf16 (720 > 360) -720 -720 -720 -100 -720 -720 -720
- view
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360) -360 -180 -180
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
- addmm_backward
+ view_backward; view_backward; view_backward; view_backward
+ softmax_backward +600t +600t softmax_backward 30x5 fp32 (600 600 > 600) -600 -600 -600
+ add_backward; view_backward
+ bmm_backward +720t bmm 6x 6x5x5 tn fp32 (720 600 > 720) +720t bmm 6x 5x6x5 nt fp32 (600 720 > 720) -600 -720 -720
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
+ pointwise_backward +720t scale 36x5 fp32 (720 > 720) -720
+ view_backward
+ pointwise_backward +720t scale 30x6 fp32 (720 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ view_backward +180t sum 2x90 bf16 rows (360 > 180) -360
+ view_backward +180t sum 2x90 bf16 rows (360 > 180) -360
+ view_backward; view_backward; view_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x19 -408 -288 -24 -144 -12 -144 -12 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedMasksStepListing3[] = R"(
[forward layers.0.attention]
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- attention_fused
+ contiguous; contiguous
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 180 180 > 360 120)
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 180 180 360 120 > 360 360 360) -360 -180 -360 -180 -120
    -360 -8 -16
+ view_backward +180t sum 2x90 bf16 rows (360 > 180) -360
- addmm_backward
+ view_backward +180t sum 2x90 bf16 rows (360 > 180) -360
+ view_backward; view_backward; view_backward; view_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x19 -408 -288 -24 -144 -12 -144 -12 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedMasksStepListing4[] = R"(
[forward layers.0.attention]
- linear
+ linear +720 addmm 15x24x12 nt bf16 (360 576 48 > 720)
+ split
- linear; linear; attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 kv1 (360 180 180 > 360 120)
[backward]
- backward_first x34
+ backward_first x32
[backward layers.0.attention]
- attention_fused_backward; view_backward; view_backward; view_backward; addmm_backward; accumulate_grad;
    view_backward; accumulate_grad; view_backward; view_backward; view_backward
+ attention_fused_backward +360t +180t +180t
    flash_attention_backward 3x2x5x6 causal bf16 kv1 (360 360 180 180 360 120 > 360 180 180) -360 -720 -120 -360 -8
    -16
- addmm_backward; accumulate_grad; accumulate_grad; fan_in_add
+ view_backward +360t sum 1x180 bf16 rows (360 > 360) -360
+ split_backward +720t cat 15x8 bf16 x3 joined (360 180 180 > 720) -360 -180 -180
- addmm_backward
+ addmm_backward +360t mm 15x12x24 nn bf16 (720 576 > 360) +576g mm 24x12x15 tn bf16 (720 360 > 576) +48g
    sum 15x24 bf16 rows (720 > 48) -720 -360
- fan_in_add
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x15 -408 -576 -48 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

TEST(ComposedMasksStep, HeadsShareKeys) {
  EXPECT_EQ(changes_by_keys("key_value_heads: 1"), kComposedMasksStepListing1);
  EXPECT_EQ(changes_by_keys("key_value_heads: 1, grouping: broadcast"), kComposedMasksStepListing2);
  EXPECT_EQ(changes_by_keys("key_value_heads: 1, grouping: copied"), kComposedMasksStepListing3);
  EXPECT_EQ(changes_by_keys("key_value_heads: 1, projection: fused"), kComposedMasksStepListing4);
}

constexpr char kComposedMasksStepListing5[] = R"(
[forward positions]
- pointwise x2; pointwise x8
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 bf16 (360 360 360 > 360 120)
[backward]
- backward_first x34
+ backward_first x23
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120 -360 -8
    -16
)";

constexpr char kComposedMasksStepListing6[] = R"(
[forward positions]
- pointwise x2; pointwise x8
+ pointwise x2 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40 -40
[backward]
- backward_first x34
+ backward_first x25
)";

constexpr char kComposedMasksStepListing7[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x8 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +25t
    pointwise 5x5 int64,int64->bool rows (40 40 > 25) +25t pointwise 5x5 int64,int64->bool rows (40 40 > 25) +25t
    pointwise 5x5 bool,bool->bool (25 25 > 25) -25 -25 -40 -40 -40
[forward layers.0.attention]
- transpose; attention_fused
+ transpose +2t fill 1x1 bf16 (> 2) +2t fill 1x1 bf16 (> 2) +150 pointwise 15x5 bool->bf16 strided (25 > 150) -2 -2
+ attention_fused +360 +768 efficient_attention 3x2x5x6 masked bf16 (360 360 360 150 > 360 768)
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -25
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    efficient_attention_backward 3x2x5x6 masked bf16 (360 360 360 360 360 768 150 > 360 360 360) -360 -360 -360 -360
    -768 -360 -150
)";

constexpr char kComposedMasksStepListing8[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x8 +40t arange 1x5 int64 (> 40) +40t arange 1x5 int64 (> 40) +25t
    pointwise 5x5 int64,int64->bool rows (40 40 > 25) +25t pointwise 5x5 int64,int64->bool rows (40 40 > 25) +25t
    pointwise 5x5 bool,bool->bool (25 25 > 25) -25 -25 -40 -40 -40
[forward layers.0.attention]
- transpose; attention_fused
+ transpose +2t fill 1x1 bf16 (> 2) +2t fill 1x1 bf16 (> 2) +150 pointwise 15x5 bool->bf16 strided (25 > 150) -2 -2
+ attention_fused +360 +768 efficient_attention 3x2x5x6 masked bf16 (360 360 360 150 > 360 768)
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -25
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    efficient_attention_backward 3x2x5x6 masked bf16 (360 360 360 360 360 768 150 > 360 360 360) -360 -360 -360 -360
    -768 -360 -150
)";

TEST(ComposedMasksStep, MasksAreGiven) {
  EXPECT_EQ(changes_by_keys("causal: false"), kComposedMasksStepListing5);
  EXPECT_EQ(changes_by_keys("looks_for_documents: false"), kComposedMasksStepListing6);
  EXPECT_EQ(changes_by_keys("always_masked: true"), kComposedMasksStepListing7);
  EXPECT_EQ(changes_by_keys("window: 3"), kComposedMasksStepListing8);
  EXPECT_EQ(changes_by_keys("window: 7"), R"(
)");
}

}  // namespace
}  // namespace ridgeline
