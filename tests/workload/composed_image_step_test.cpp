// Images as rows of patches, and their classifiers.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::odd_composition;
using testing_support::under;

constexpr char kComposedImageStepListing1[] = R"(
[forward embeddings]
convolution +648t conv2d 3x5x6x6 to 12, 2x2 bf16 (1080 480 > 648) add_ 108x3 bf16,bf16->bf16 broadcast (648 24 > 648)
view
[forward layers.0]
transpose +648 copy 27x12 bf16 transposed (648 > 648)
layer_norm_module +648 +108 +108 native_layer_norm 27x12 bf16 (648 24 24 > 648 108 108)
[forward layers.0]
pointwise +648t add 27x12 bf16,bf16->bf16 strided (648 648 > 648) -648 +648 copy 27x12 bf16 transposed (648 > 648)
layer_norm_module +648 +108 +108 native_layer_norm 27x12 bf16 (648 24 24 > 648 108 108)
[forward layers.0]
pointwise +648t add 27x12 bf16,bf16->bf16 strided (648 648 > 648) -648 -648 -648 +648
    copy 27x12 bf16 transposed (648 > 648)
[forward head]
pointwise +72 sum 27x12 bf16 rows (648 > 72)
linear +24t addmm 3x4x12 nt bf16 (72 96 8 > 24)
view; view
[backward head]
addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g sum 3x4 bf16 rows (24 > 8)
    -24 -72
accumulate_grad; view_backward; accumulate_grad
view_backward +648t div 27x12 bf16 strided (72 > 648) -72
[backward embeddings]
convolution_backward +648t copy 108x3 bf16 transposed (648 > 648) +480g
    conv2d_backward 3x5x6x6 to 12, 2x2 bf16 (648 1080 > 480) +24g sum 12x27 bf16 cols (648 > 24) -648 -648
accumulate_grad
accumulate_grad -2 -2
per_parameter_zero_grad x22 -480 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
    -96 -8
)";

// ViTPatchEmbeddings (modeling_vit.py): a convolution of 2 by 2 at steps of two makes 3 · 12 maps of 3 by 3 (648
// bytes), the bias is added by a kernel of its own. flatten and transpose give a view whose tokens do not lie in rows:
// native_layer_norm copies it, and a sum with it has its strides (TensorIterator), so that the next norm copies again.
// Backward the convolution first copies the gradient to the layout of its maps; the bias has 12 sums of 27 numbers.
TEST(ComposedImageStep, PatchesOfAnImageAreRows) {
  EXPECT_EQ(under(OddStep(odd_composition("input: image, image_size: 6, patch: 2, channels: 5, causal: false, head: "
                                          "image-classification, labels: 4, pooler: mean"))
                      .but([](OddStep& step) { step.training.sequence_length = 9; })
                      .text(),
                  {"forward embeddings", "forward layers.0", "forward head", "backward head", "backward embeddings"}),
            kComposedImageStepListing1);
}

}  // namespace
}  // namespace ridgeline
