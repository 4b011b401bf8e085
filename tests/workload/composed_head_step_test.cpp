// What is on top of compositions: scores of words, classes, spans, pairs.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedHeadStepListing1[] = R"(
[backward head]
- mm_backward
+ mm_backward +408g mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
+ accumulate_grad
[backward embeddings]
- embedding_backward; fan_in_add
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -408
)";

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
+ pointwise_backward +360t gelu_backward 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
+ view_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
+ accumulate_grad; view_backward; accumulate_grad; view_backward
[backward final_norm]
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad; accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x23 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -288
    -24 -24 -24
)";

constexpr char kComposedHeadStepListing4[] = R"(
[forward head]
- linear
+ linear +360 mm 15x12x12 nt bf16 (360 288 > 360)
[backward head]
- addmm_backward; accumulate_grad
+ mm_backward +288g mm 12x12x15 tn bf16 (360 360 > 288) +360t mm 15x12x12 nn bf16 (360 288 > 360) -360 -360
- accumulate_grad
+ accumulate_grad
[backward embeddings]
- per_parameter_zero_grad x23
+ per_parameter_zero_grad x22 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -288
    -24 -24
)";

constexpr char kComposedHeadStepListing5[] = R"(
[forward head]
- linear
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
+ pointwise +510t add 15x17 bf16,bf16->bf16 rows (510 34 > 510) -510 +1020t cast 15x17 bf16->fp32 (510 > 1020)
[backward]
- backward_first x34
+ backward_first x35
[backward head]
+ add_backward
)";

constexpr char kComposedHeadStepListing6[] = R"(
[forward final_norm]
- layer_norm_module
[forward head]
- linear
[forward final_norm]
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
+ pointwise +360 scale 15x12 bf16 (360 > 360)
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510) -360 +1020t cast 15x17 bf16->fp32 (510 > 1020)
[backward]
- backward_first x34
+ backward_first x35
[backward head]
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360) -360
)";

constexpr char kComposedHeadStepListing7[] = R"(
[forward head]
- linear
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
+ pointwise +510t scale 15x17 bf16 (510 > 510) -510 +1020t cast 15x17 bf16->fp32 (510 > 1020)
[backward]
- backward_first x34
+ backward_first x35
[backward head]
+ pointwise_backward +510t scale 15x17 bf16 (510 > 510) -510
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

constexpr char kComposedHeadStepListing9[] = R"(
[forward head]
- linear
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x34; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward
[forward head.loss]
+ cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2t +2 nll_loss 15x17 bf16 (510 120 > 2) -144 -510
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x33
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
+ nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2 -120 -2
+ log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
[backward head]
- cast_backward
[backward embeddings]
- accumulate_grad
+ accumulate_grad -2 -2
)";

constexpr char kComposedHeadStepListing10[] = R"(
[forward head]
- linear; pointwise x4
+ linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x34; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward
[forward head.loss]
+ cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2t +2 nll_loss 15x17 bf16 (510 120 > 2) -510
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x30
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
+ nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2 -2
+ log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
[backward head]
- cast_backward
[backward embeddings]
- accumulate_grad
+ accumulate_grad -2 -2
)";

constexpr char kComposedHeadStepListing11[] = R"(
[forward head]
- pointwise x4
[forward head.loss]
- cross_entropy
+ cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020 -510
[backward]
- backward_first x34
+ backward_first x31
[backward head.loss]
- nll_backward
+ nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -4
)";

TEST(ComposedHeadStep, ScoresOfWordsAreTransformedAndScaled) {
  EXPECT_EQ(changes_by_keys("tie_embeddings: false"), kComposedHeadStepListing1);
  EXPECT_EQ(changes_by_keys("head_bias: true"), kComposedHeadStepListing2);
  EXPECT_EQ(changes_by_keys("head_transform: true"), kComposedHeadStepListing3);
  EXPECT_EQ(changes_by_keys("head_transform_bias: false", "head_transform: true"), kComposedHeadStepListing4);
  EXPECT_EQ(changes_by_keys("logit_offset: true"), kComposedHeadStepListing5);
  EXPECT_EQ(changes_by_keys("head_scale: true"), kComposedHeadStepListing6);
  EXPECT_EQ(changes_by_keys("logit_scale: true"), kComposedHeadStepListing7);
  EXPECT_EQ(changes_by_keys("logit_cap: 30"), kComposedHeadStepListing8);
  EXPECT_EQ(changes_by_keys("loss_fp32: false"), kComposedHeadStepListing9);
  EXPECT_EQ(changes_by_keys("head: masked-lm"), kComposedHeadStepListing10);
  EXPECT_EQ(changes_by_keys("head: masked-lm, masked_loss_fp32: true"), kComposedHeadStepListing11);
}

constexpr char kComposedHeadStepListing12[] = R"(
[forward head]
- linear; pointwise x4
+ linear +120t mm 15x4x12 nt bf16 (360 96 > 120)
+ pointwise x7 +15t eq 3x5 bf16->bool (120 > 15) +60t cast 3x5 bool->int32 (15 > 60) +20t arange 1x5 int32 (> 20)
    +60t mul 3x5 int32,int32->int32 rows (60 20 > 60) sum 3x5 int32 cols (60 > 20) -60 -20 -60 -15
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x34; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward
[forward head.loss]
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -120
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x35
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
+ nll_backward +24t nll_loss_backward 3x4 bf16 (2 24 > 24) -2 -2
+ log_softmax_backward +24t log_softmax_backward 3x4 bf16 (24 24 > 24) -24 -24
[backward head]
- cast_backward
+ pointwise_backward +120t fill 15x4 bf16 (> 120) copy 3x4 bf16 permuted (24 > 120) -24
- mm_backward
+ mm_backward +96g mm 4x12x15 tn bf16 (120 360 > 96) +360t mm 15x12x4 nn bf16 (120 96 > 360) -120 -360
+ accumulate_grad
[backward embeddings]
- embedding_backward; fan_in_add; accumulate_grad; per_parameter_zero_grad x19
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ accumulate_grad -2 -2
+ per_parameter_zero_grad x20 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -96
)";

constexpr char kComposedHeadStepListing13[] = R"(
[forward positions]
- pointwise x2; pointwise x8
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 bf16 (360 360 360 > 360 120)
[forward head]
- linear; pointwise x4
+ linear +24t addmm 3x4x12 nt bf16 (72 96 8 > 24)
[forward head.loss]
- cross_entropy
[forward]
- loss_division
[backward]
- backward_call; backward_first x34; pointwise_backward
[backward head.loss]
- nll_backward; log_softmax_backward; view_backward
[backward head]
- cast_backward; view_backward; mm_backward
+ view
[forward head.loss]
+ cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24
[forward]
+ loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
+ backward_call +2t fill 1x1 bf16 (> 2)
+ backward_first x19
+ pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
+ nll_backward +24t nll_loss_backward 3x4 bf16 (2 24 > 24) -2 -2
+ log_softmax_backward +24t log_softmax_backward 3x4 bf16 (24 24 > 24) -24 -24
[backward head]
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -360
+ accumulate_grad; accumulate_grad
+ pointwise_backward +360t fill 15x12 bf16 (> 360) copy 3x12 bf16 permuted (72 > 360) -72
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120 -360 -8
    -16
[backward embeddings]
- embedding_backward; fan_in_add; accumulate_grad; per_parameter_zero_grad x19
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ accumulate_grad -2 -2
+ per_parameter_zero_grad x21 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24 -96
    -8
)";

TEST(ComposedHeadStep, ClassifiersReadATokenOrAMean) {
  EXPECT_EQ(changes_by_keys("head: sequence-classification, labels: 4"), kComposedHeadStepListing12);
  EXPECT_EQ(changes_by_keys("head: sequence-classification, labels: 4, causal: false, pooler: first-token"),
            kComposedHeadStepListing13);
}

}  // namespace
}  // namespace ridgeline
