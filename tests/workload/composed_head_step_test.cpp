// Scores of words on top of compositions.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::changes_by_keys;

constexpr char kComposedHeadStepListing2[] = R"(
[forward head]
- linear
+ linear +510t addmm 15x17x12 nt bf16 (360 408 34 > 510) +1020t cast 15x17 bf16->fp32 (510 > 1020)
[backward head]
- mm_backward
+ addmm_backward +360t mm 15x12x17 nn bf16 (510 408 > 360) +408t mm 17x12x15 tn bf16 (510 360 > 408) +34g
    sum 15x17 bf16 rows (510 > 34) -510 -360
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -34
)";

constexpr char kComposedHeadStepListing3[] = R"(
[forward head]
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ pointwise +360 gelu 15x12 bf16 (360 > 360)
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward]
- backward_first x34
+ backward_first x37
[backward head]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad; accumulate_grad
+ pointwise_backward +360t gelu_backward 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
+ accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -288
    -24 -24 -24
)";

constexpr char kComposedHeadStepListing8[] = R"(
[forward head]
- linear
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
+ pointwise x3 +510t div 15x17 bf16 (510 > 510) +510 tanh 15x17 bf16 (510 > 510) -510 +510t
    scale 15x17 bf16 (510 > 510) -510 +1020t cast 15x17 bf16->fp32 (510 > 1020)
[backward]
- backward_first x34
+ backward_first x37
[backward head]
+ pointwise_backward +510t scale 15x17 bf16 (510 > 510) -510
+ pointwise_backward +510t tanh_backward 15x17 bf16,bf16->bf16 (510 510 > 510) -510 -510
+ pointwise_backward +510t div 15x17 bf16 (510 > 510) -510
)";

// A bias of 17 words (34 bytes) makes the head an addmm: gradient of its input first, then of the weight, then 17 sums.
// A transform (BertPredictionHeadTransform) is a product, gelu and a norm. A cap (Gemma2ForCausalLM) divides scores,
// takes tanh, which keeps its result (15 · 17 · 2 = 510 bytes), and multiplies.
TEST(ComposedHeadStep, ScoresOfWordsAreTransformedAndScaled) {
  EXPECT_EQ(changes_by_keys("head_bias: true"), kComposedHeadStepListing2);
  EXPECT_EQ(changes_by_keys("head_transform: true"), kComposedHeadStepListing3);
  EXPECT_EQ(changes_by_keys("logit_cap: 30"), kComposedHeadStepListing8);
}

}  // namespace
}  // namespace ridgeline
