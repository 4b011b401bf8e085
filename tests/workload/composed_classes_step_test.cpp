// Classes of sequences and of images.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;

const std::string kClassTokens =
    "input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: image-classification, labels: 4, "
    "class_token: true";
/// Nine patches and the class.
void with_class(OddStep& step) { step.training.sequence_length = 10; }

constexpr char kComposedClassesStepListing1[] = R"(
[forward final_norm]
- layer_norm_module
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ dropout +36 +72 native_dropout 36 bf16 (72 > 72 36)
+ linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
+ pointwise +72 tanh 3x12 bf16 (72 > 72) -72
+ dropout +36 +72 native_dropout 36 bf16 (72 > 72 36)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -360 -24
[backward]
- backward_first x21
+ backward_first x25
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
+ pointwise_backward +72t native_dropout_backward 3x12 bf16,bool->bf16 (72 36 > 72) -72 -36
+ pointwise_backward +72t tanh_backward 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -72
+ addmm_backward +72t mm 3x12x12 nn bf16 (72 288 > 72) +288g mm 12x12x3 tn bf16 (72 72 > 288) +24g
    sum 3x12 bf16 rows (72 > 24) -72 -72
+ accumulate_grad; view_backward; accumulate_grad
+ pointwise_backward +72t native_dropout_backward 3x12 bf16,bool->bf16 (72 36 > 72) -72 -36
[backward embeddings]
- per_parameter_zero_grad x21
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -288
    -24 -96 -8
)";

constexpr char kComposedClassesStepListing3[] = R"(
[forward final_norm]
- layer_norm_module; view
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ pointwise +72 sum 15x12 bf16 rows (360 > 72)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -360 -24
[backward]
- backward_first x19
+ backward_first x20
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
- pointwise_backward
+ view_backward +360t div 15x12 bf16 strided (72 > 360) -72
)";

// RobertaClassificationHead (modeling_roberta.py): dropout, a product, tanh, dropout and the classifier on each
// sequence's first token (3 · 12 · 2 = 72 bytes; masks of 36). tanh keeps its result and dropout a mask. A mean over
// tokens keeps sizes only: backward it divides the expanded gradient (72 > 360).
TEST(ComposedClassesStep, PoolersDiffer) {
  EXPECT_EQ(
      changes_by_keys("pooler: dense-tanh", "causal: false, head: sequence-classification, labels: 4, dropout: 0.1"),
      kComposedClassesStepListing1);
  EXPECT_EQ(changes_by_keys("pooler: mean", "causal: false, head: sequence-classification, labels: 4"),
            kComposedClassesStepListing3);
}

constexpr char kComposedClassesStepListing8[] = R"(
[forward final_norm]
- layer_norm_module
+ layer_norm_module +720t +120 +120 native_layer_norm 30x12 bf16 (720 24 24 > 720 120 120)
[forward head]
- linear
+ pointwise +72t sum 27x12 bf16 rows (648 > 72)
+ concatenate +144 cat 3x12 bf16 x2 joined strided (72 72 > 144) -72
+ linear +24t addmm 3x4x24 nt bf16 (144 192 8 > 24)
[forward head.loss]
- cross_entropy
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -720 -24
[backward]
- backward_first x21
+ backward_first x23
[backward head]
- addmm_backward
+ addmm_backward +144t mm 3x24x4 nn bf16 (24 192 > 144) +192g mm 4x24x3 tn bf16 (24 144 > 192) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -144
- pointwise_backward
+ view_backward
+ view_backward +648t div 27x12 bf16 strided (144 > 648)
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 27x12 bf16 permuted (648 > 720) -648
+ pointwise_backward +720t fill 30x12 bf16 (> 720) copy 3x12 bf16 permuted (72 > 720) -144
+ fan_in_add add_ 30x12 bf16,bf16->bf16 (720 720 > 720) -720
[backward embeddings]
- per_parameter_zero_grad x23
+ per_parameter_zero_grad x23 -24 -480 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24
    -24 -192 -8
)";

// Dinov2ForImageClassification (modeling_dinov2.py) joins the class token with the mean of nine patches: 24 columns.
// Backward each slice fills 3 · 10 rows of 12 (720 bytes) with zeros and copies its part into them; the two are added
// (slice_backward in derivatives.yaml).
TEST(ComposedClassesStep, ClassAndMeanAreJoined) {
  EXPECT_EQ(changes_by_keys("pooler: class-and-mean", kClassTokens, with_class), kComposedClassesStepListing8);
}

}  // namespace
}  // namespace ridgeline
