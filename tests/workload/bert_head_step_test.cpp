// What the heads of a small bert do otherwise than its classifier.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

const OddStep kHeadedBert =
    OddStep(ModelFamily::bert).but([](OddStep& step) { step.model.head = ModelHead::sequence_classification; });

// BertLMPredictionHead: a product, gelu, a norm, and the token table with a bias of 17 (34 bytes). The table's gradient
// of the head is a view (408t): it is added to that of the embedding in a new tensor.
TEST(BertHeadStep, AMaskedTokenIsFoundByATransformAndTheTokenTable) {
  EXPECT_EQ(kHeadedBert.changed([](OddStep& step) { step.model.head = ModelHead::masked_lm; }), R"(
[forward layers.0]
- view
[forward head]
- linear; pointwise; dropout_off; linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ pointwise +360 gelu 15x12 bf16 (360 > 360)
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
+ linear +510t addmm 15x17x12 nt bf16 (360 408 34 > 510)
[forward head.loss]
- cross_entropy
+ cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2t +2 nll_loss 15x17 bf16 (510 120 > 2) -510
[backward]
- backward_first x27
+ backward_first x28
[backward head.loss]
- nll_backward; log_softmax_backward
+ nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2 -2
+ log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
[backward head]
- addmm_backward
+ view_backward
+ addmm_backward +360t mm 15x12x17 nn bf16 (510 408 > 360) +408t mm 17x12x15 tn bf16 (510 360 > 408) +34g
    sum 15x17 bf16 rows (510 > 34) -510 -360
+ view_backward
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
- pointwise_backward; addmm_backward
+ pointwise_backward +360t gelu_backward 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
- pointwise_backward
+ view_backward; accumulate_grad; view_backward
[backward embeddings]
- embedding_backward
+ embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
- per_parameter_zero_grad x25
+ per_parameter_zero_grad x26 -408 -168 -72 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24
    -24 -34 -288 -24 -24 -24
)");
}

// BertForPreTraining: tanh of the first token's product feeds a classifier of two, all tokens the head of masked words.
// The last operation forward comes first backward: the loss of pairs, then that of words. What both heads read has two
// gradients; the first that comes is a view of a product's result, so that their sum is a new tensor.
TEST(BertHeadStep, PretrainingAddsTheLossOfTwoHeads) {
  EXPECT_EQ(kHeadedBert.changed([](OddStep& step) { step.model.head = ModelHead::pretraining; }), R"(
[forward head]
- dropout_off; linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ pointwise +360 gelu 15x12 bf16 (360 > 360)
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
+ linear +510t addmm 15x17x12 nt bf16 (360 408 34 > 510)
+ linear +12t addmm 3x2x12 nt bf16 (72 48 4 > 12)
[forward head.loss]
- cross_entropy
+ cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2t +2 nll_loss 15x17 bf16 (510 120 > 2)
+ view; view
+ cross_entropy +12 log_softmax 3x2 bf16 (12 > 12) +2t +2 nll_loss 3x2 bf16 (12 24 > 2)
[forward head]
+ pointwise +2t add 1x1 bf16,bf16->bf16 (2 2 > 2) -2 -2 -12 -510
[backward]
- backward_first x27
+ backward_first x34
[backward head.loss]
- nll_backward; log_softmax_backward
+ add_backward
+ nll_backward +12t nll_loss_backward 3x2 bf16 (2 24 > 12) -2
+ log_softmax_backward +12t log_softmax_backward 3x2 bf16 (12 12 > 12) -12 -12
[backward head]
- addmm_backward
[backward head.loss]
+ nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2 -2
+ log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
+ view_backward
[backward head]
+ addmm_backward +72t mm 3x12x2 nn bf16 (12 48 > 72) +48g mm 2x12x3 tn bf16 (12 72 > 48) +4g
    sum 3x2 bf16 rows (12 > 4) -12
+ view_backward
+ addmm_backward +360t mm 15x12x17 nn bf16 (510 408 > 360) +408t mm 17x12x15 tn bf16 (510 360 > 408) +34g
    sum 15x17 bf16 rows (510 > 34) -510 -360
+ accumulate_grad; view_backward; view_backward
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad; accumulate_grad
+ pointwise_backward +360t gelu_backward 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
+ view_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
+ accumulate_grad; view_backward; accumulate_grad; view_backward
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward embeddings]
- embedding_backward
+ embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
+ fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
- per_parameter_zero_grad x25
+ per_parameter_zero_grad x30 -408 -168 -72 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24
    -24 -288 -24 -34 -288 -24 -24 -24 -48 -4
)");
}

// BertForQuestionAnswering: two columns are split and made contiguous (3 · 5 · 2 = 30 bytes), positions are clamped to
// the length (3 · 8 = 24), and the mean of both losses is taken. Backward both columns are joined again.
TEST(BertHeadStep, AnAnswerHasABeginningAndAnEnd) {
  EXPECT_EQ(kHeadedBert.changed([](OddStep& step) { step.model.head = ModelHead::question_answering; }), R"(
[forward layers.0]
- view
[forward head]
- linear; pointwise; dropout_off; linear
+ linear +60t addmm 15x2x12 nt bf16 (360 48 4 > 60)
+ split
+ contiguous +30t copy 3x5 bf16 transposed (30 > 30)
[forward head.loss]
- cross_entropy
[forward head]
+ contiguous +30t copy 3x5 bf16 transposed (30 > 30)
+ pointwise +24 clamp 1x3 int64 (24 > 24)
+ pointwise +24 clamp 1x3 int64 (24 > 24)
+ cross_entropy +30 log_softmax 3x5 bf16 (30 > 30) +2t +2 nll_loss 3x5 bf16 (30 24 > 2)
+ cross_entropy +30 log_softmax 3x5 bf16 (30 > 30) +2t +2 nll_loss 3x5 bf16 (30 24 > 2)
+ pointwise +2t add 1x1 bf16,bf16->bf16 (2 2 > 2)
+ loss_division +2t div 1x1 bf16 (2 > 2) -2 -2 -2 -30 -30 -60
[backward]
- backward_first x27
+ backward_first x33
[backward head.loss]
- nll_backward; log_softmax_backward
[backward head]
+ pointwise_backward +2t div 1x1 bf16 (2 > 2) -2
+ add_backward
+ nll_backward +30t nll_loss_backward 3x5 bf16 (2 24 > 30) -24 -2
+ log_softmax_backward +30t log_softmax_backward 3x5 bf16 (30 30 > 30) -30 -30
+ nll_backward +30t nll_loss_backward 3x5 bf16 (2 24 > 30) -2 -24 -2
+ log_softmax_backward +30t log_softmax_backward 3x5 bf16 (30 30 > 30) -30 -30
- addmm_backward; accumulate_grad; accumulate_grad; pointwise_backward; addmm_backward
+ view_backward; view_backward
+ split_backward +60t cat 15x1 bf16 x2 joined (30 30 > 60) -30 -30
+ view_backward
+ addmm_backward +360t mm 15x12x2 nn bf16 (60 48 > 360) +48g mm 2x12x15 tn bf16 (60 360 > 48) +4g
    sum 15x2 bf16 rows (60 > 4) -60 -360
- pointwise_backward
+ view_backward
[backward embeddings]
- per_parameter_zero_grad x25
+ per_parameter_zero_grad x23 -408 -168 -72 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24
    -24 -48 -4
)");
}

}  // namespace
}  // namespace ridgeline
