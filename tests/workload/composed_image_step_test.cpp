// Images as rows of patches, and their classifiers.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedImageStepListing1[] = R"(
[forward embeddings]
convolution +648t conv2d 3x5x6x6 to 12, 2x2 bf16 (1080 480 > 648) add_ 108x3 bf16,bf16->bf16 broadcast (648 24 > 648)
view
[forward layers.0]
transpose +648 copy 27x12 bf16 transposed (648 > 648)
layer_norm_module +648 +108 +108 native_layer_norm 27x12 bf16 (648 24 24 > 648 108 108)
[forward layers.0.attention]
linear +648 addmm 27x12x12 nt bf16 (648 288 24 > 648)
view; transpose
linear +648 addmm 27x12x12 nt bf16 (648 288 24 > 648)
view; transpose
linear +648 addmm 27x12x12 nt bf16 (648 288 24 > 648)
view; transpose
attention_fused +648 +216 +16 +8 flash_attention 3x2x9x6 bf16 (648 648 648 > 648 216)
transpose; view; view
linear +648t addmm 27x12x12 nt bf16 (648 288 24 > 648)
dropout_off
[forward layers.0]
pointwise +648t add 27x12 bf16,bf16->bf16 strided (648 648 > 648) -648 +648 copy 27x12 bf16 transposed (648 > 648)
layer_norm_module +648 +108 +108 native_layer_norm 27x12 bf16 (648 24 24 > 648 108 108)
[forward layers.0.feed_forward]
linear +1080 addmm 27x20x12 nt bf16 (648 480 40 > 1080)
pointwise +1080 gelu 27x20 bf16 (1080 > 1080)
linear +648t addmm 27x12x20 nt bf16 (1080 480 24 > 648)
dropout_off
[forward layers.0]
pointwise +648t add 27x12 bf16,bf16->bf16 strided (648 648 > 648) -648 -648 -648 +648
    copy 27x12 bf16 transposed (648 > 648)
[forward final_norm]
layer_norm_module +648t +108 +108 native_layer_norm 27x12 bf16 (648 24 24 > 648 108 108) -648
[forward head]
pointwise +72 sum 27x12 bf16 rows (648 > 72)
linear +24t addmm 3x4x12 nt bf16 (72 96 8 > 24)
view; view
[forward head.loss]
cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -648
[forward]
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x24
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
nll_backward +24t nll_loss_backward 3x4 bf16 (2 24 > 24) -2 -2
log_softmax_backward +24t log_softmax_backward 3x4 bf16 (24 24 > 24) -24 -24
view_backward
[backward head]
addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g sum 3x4 bf16 rows (24 > 8)
    -24 -72
accumulate_grad; view_backward; accumulate_grad
view_backward +648t div 27x12 bf16 strided (72 > 648) -72
[backward final_norm]
layer_norm_backward +648t +24g +24g native_layer_norm_backward 27x12 bf16 (648 648 24 108 108 > 648 24 24) -648 -648
    -108 -108
accumulate_grad; accumulate_grad; view_backward; add_backward; view_backward
[backward layers.0.feed_forward]
addmm_backward +1080t mm 27x20x12 nn bf16 (648 480 > 1080) +480g mm 12x20x27 tn bf16 (648 1080 > 480) +24g
    sum 27x12 bf16 rows (648 > 24) -1080
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +1080t gelu_backward 27x20 bf16,bf16->bf16 (1080 1080 > 1080) -1080 -1080
view_backward
addmm_backward +648t mm 27x12x20 nn bf16 (1080 480 > 648) +480g mm 20x12x27 tn bf16 (1080 648 > 480) +40g
    sum 27x20 bf16 rows (1080 > 40) -1080 -648
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +648t +24g +24g native_layer_norm_backward 27x12 bf16 (648 648 24 108 108 > 648 24 24) -648 -648
    -108 -108
accumulate_grad; accumulate_grad; view_backward
fan_in_add add_ 27x12 bf16,bf16->bf16 (648 648 > 648) -648
add_backward; view_backward
[backward layers.0.attention]
addmm_backward +648t mm 27x12x12 nn bf16 (648 288 > 648) +288g mm 12x12x27 tn bf16 (648 648 > 288) +24g
    sum 27x12 bf16 rows (648 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +648t +648t +648t
    flash_attention_backward 3x2x9x6 bf16 (648 648 648 648 648 216 > 648 648 648) -648 -648 -648 -648 -216 -648 -8
    -16
view_backward; view_backward; view_backward
addmm_backward +648t mm 27x12x12 nn bf16 (648 288 > 648) +288g mm 12x12x27 tn bf16 (648 648 > 288) +24g
    sum 27x12 bf16 rows (648 > 24) -648
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +648t mm 27x12x12 nn bf16 (648 288 > 648) +288g mm 12x12x27 tn bf16 (648 648 > 288) +24g
    sum 27x12 bf16 rows (648 > 24) -648
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +648t add 27x12 bf16,bf16->bf16 (648 648 > 648) -648 -648
view_backward; view_backward; view_backward
addmm_backward +648t mm 27x12x12 nn bf16 (648 288 > 648) +288g mm 12x12x27 tn bf16 (648 648 > 288) +24g
    sum 27x12 bf16 rows (648 > 24) -648 -648
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 27x12 bf16,bf16->bf16 (648 648 > 648) -648
[backward layers.0]
layer_norm_backward +648t +24g +24g native_layer_norm_backward 27x12 bf16 (648 648 24 108 108 > 648 24 24) -648 -648
    -108 -108
accumulate_grad; accumulate_grad; view_backward
fan_in_add add_ 27x12 bf16,bf16->bf16 (648 648 > 648) -648
view_backward; view_backward
[backward embeddings]
convolution_backward +648t copy 108x3 bf16 transposed (648 > 648) +1080t +480g
    conv2d_backward 3x5x6x6 to 12, 2x2 bf16 (648 1080 480 > 1080 480) +24g sum 12x27 bf16 cols (648 > 24) -648 -648
    -1080
accumulate_grad
accumulate_grad -2 -2
per_parameter_zero_grad x22 -480 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
    -96 -8
)";

TEST(ComposedImageStep, PatchesOfAnImageAreRows) {
  EXPECT_EQ(OddStep(odd_composition("input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: "
                                    "image-classification, labels: 4, pooler: mean"))
                .but([](OddStep& step) { step.training.sequence_length = 9; })
                .text(),
            kComposedImageStepListing1);
}

TEST(ComposedImageStep, APatchMayHaveNoBiasAndAPosition) {
  EXPECT_EQ(changes_by_keys("patch_bias: false",
                            "input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: "
                            "image-classification, labels: 4, pooler: mean",
                            [](OddStep& step) { step.training.sequence_length = 9; }),
            R"(
[forward embeddings]
- convolution
+ convolution +648t conv2d 3x5x6x6 to 12, 2x2 bf16 (1080 480 > 648)
[backward]
- backward_first x24
+ backward_first x23
[backward embeddings]
- convolution_backward; accumulate_grad
+ convolution_backward +648t copy 108x3 bf16 transposed (648 > 648) +1080t +480g
    conv2d_backward 3x5x6x6 to 12, 2x2 bf16 (648 1080 480 > 1080 480) -648 -648 -1080
- per_parameter_zero_grad x22
+ per_parameter_zero_grad x21 -480 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -96
    -8
)");
  EXPECT_EQ(changes_by_keys("positions: learned",
                            "input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: "
                            "image-classification, labels: 4, pooler: mean",
                            [](OddStep& step) { step.training.sequence_length = 9; }),
            R"(
[forward layers.0]
- transpose
+ transpose
[forward embeddings]
+ pointwise +648t add 27x12 bf16,bf16->bf16 broadcast (648 216 > 648) -648 +648
    copy 27x12 bf16 transposed (648 > 648)
[backward]
- backward_first x24
+ backward_first x25
[backward embeddings]
+ add_backward +216g sum 3x108 bf16 rows (648 > 216)
+ accumulate_grad; view_backward
- per_parameter_zero_grad x22
+ per_parameter_zero_grad x23 -480 -24 -216 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24 -96 -8
)");
  EXPECT_EQ(changes_by_keys("positions: learned, positions_picked: true",
                            "input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: "
                            "image-classification, labels: 4, pooler: mean",
                            [](OddStep& step) { step.training.sequence_length = 9; }),
            R"(
[forward layers.0]
- transpose
+ transpose
[forward embeddings]
+ pointwise x2 +72t arange 1x9 int64 (> 72) +72 add 1x9 int64 (72 > 72) -72
+ embedding +216t embedding 9 of 9x12 bf16 (216 72 > 216)
+ pointwise +648t add 27x12 bf16,bf16->bf16 broadcast (648 216 > 648) -216 -648 +648
    copy 27x12 bf16 transposed (648 > 648)
[backward]
- backward_first x24
+ backward_first x28
[backward embeddings]
+ add_backward +216t sum 3x108 bf16 rows (648 > 216)
+ embedding_backward +216g embedding_dense_backward 9 of 9x12 bf16 (216 72 > 216) -216 -72
+ accumulate_grad
- per_parameter_zero_grad x22
+ per_parameter_zero_grad x23 -480 -24 -216 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24 -96 -8
)");
}

TEST(ComposedImageStep, DistancesOfPatches) {
  EXPECT_EQ(changes_by_keys("patch_distances: true",
                            "input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: "
                            "image-classification, labels: 4, class_token: true, pooler: first-token",
                            [](OddStep& step) { step.training.sequence_length = 10; }),
            R"(
[forward layers.0.attention]
- attention_fused
+ pointwise x8
+ contiguous +100t copy 1x50 bf16 (100 > 100)
+ contiguous +100t copy 1x50 bf16 (100 > 100) +112t cat 1x28 bf16 x2 joined (100 12 > 112) +800
    copy_to_device 10x10 int64 pageable to gpu (> 800) +400t index 100x2 bf16,int64->bf16 broadcast (112 800 > 400)
+ view
+ contiguous +400t copy 20x10 bf16 transposed (400 > 400) -400 -112 -100 -100 +640 fill 20x16 bf16 (> 640)
    copy 20x10 bf16 permuted (400 > 640)
+ attention_fused +720 +768 efficient_attention 3x2x10x6 masked bf16 (720 720 720 640 > 720 768) -400
[backward]
- backward_first x21
+ backward_first x29
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +720t +720t +720t +1920t
    efficient_attention_backward 3x2x10x6 masked bf16 (720 720 720 720 720 768 640 > 720 720 720) -720 -720 -720 -720
    -768 -720 -640
+ view_backward +400t sum 3x200 bf16 rows (1200 > 400) -1920
+ pointwise_backward +640t fill 20x16 bf16 (> 640) copy 20x10 bf16 permuted (400 > 640) -400
+ pointwise_backward +640t copy 1x320 bf16 (640 > 640) +640t sum 1x320 bf16 rows (640 > 640) -640 -640
+ view_backward_copy; view_backward
+ pointwise_backward +112t fill 28x2 bf16 (> 112) +800t +800t sort 1x100 int64 (800 > 800 800)
    index_put 100 of 28x2 bf16 added (400 800 > 112) -800 -800 -640 -800
+ view_backward
+ pointwise_backward +100t copy 1x50 bf16 (100 > 100)
+ pointwise_backward +100t copy 1x50 bf16 (100 > 100) -100
+ pointwise_backward +112g fill 28x2 bf16 (> 112) copy 3x2 bf16 (12 > 112) -112
+ pointwise_backward +112t fill 28x2 bf16 (> 112) copy 25x2 bf16 (100 > 112) -100
+ fan_in_add add_ 28x2 bf16,bf16->bf16 (112 112 > 112) -112
+ accumulate_grad; view_backward; view_backward; view_backward
[backward embeddings]
- per_parameter_zero_grad x23
+ per_parameter_zero_grad x24 -24 -480 -24 -288 -24 -288 -24 -288 -24 -288 -24 -112 -24 -24 -480 -40 -480 -24 -24 -24
    -24 -24 -96 -8
)");
}

}  // namespace
}  // namespace ridgeline
