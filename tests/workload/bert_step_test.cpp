// A step of a small bert, operation by operation, and what its heads and variants do otherwise.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

const OddStep kBert =
    OddStep(ModelFamily::bert).but([](OddStep& step) { step.model.head = ModelHead::sequence_classification; });

constexpr char kBertStepListing1[] = R"(
[forward embeddings]
pointwise +40 pointwise 1x5 int64 (40 > 40)
embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
embedding +120t copy 3x5 int64 permuted (40 > 120) +360t embedding 15 of 3x12 bf16 (72 120 > 360) -120
pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360)
embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120)
pointwise +360 add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -360
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
dropout_off -360 -360 -120
[forward layers.0.attention]
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose; python_fixed x31
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360)
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -360
[forward layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360)
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -360
view
[forward head]
linear +72t addmm 3x12x12 nt bf16 (72 288 24 > 72)
pointwise +72 tanh 3x12 bf16 (72 > 72) -72
dropout_off
linear +24t addmm 3x4x12 nt bf16 (72 96 8 > 24)
view; view
[forward head.loss]
cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24
[forward]
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x27
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
nll_backward +24t nll_loss_backward 3x4 bf16 (2 24 > 24) -2 -2
log_softmax_backward +24t log_softmax_backward 3x4 bf16 (24 24 > 24) -24 -24
view_backward
[backward head]
addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g sum 3x4 bf16 rows (24 > 8)
    -24
accumulate_grad; view_backward; accumulate_grad
pointwise_backward +72t tanh_backward 3x12 bf16,bf16->bf16 (72 72 > 72) -72 -72
addmm_backward +72t mm 3x12x12 nn bf16 (72 288 > 72) +288g mm 12x12x3 tn bf16 (72 72 > 288) +24g
    sum 3x12 bf16 rows (72 > 24) -72 -360
accumulate_grad; view_backward; accumulate_grad
pointwise_backward +360t fill 15x12 bf16 (> 360) copy 3x12 bf16 permuted (72 > 360) -72
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.feed_forward]
addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -600
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) +40g
    sum 15x20 bf16 rows (600 > 40) -600 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.attention]
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120 -360 -8
    -16
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward embeddings]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
accumulate_grad; accumulate_grad
add_backward +120t sum 3x60 bf16 rows (360 > 120)
embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120
accumulate_grad; add_backward
embedding_backward +120t copy 3x5 int64 permuted (40 > 120) +72g
    embedding_dense_backward 15 of 3x12 bf16 (360 120 > 72) -120 -40
accumulate_grad
embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
accumulate_grad -2 -2
per_parameter_zero_grad x25 -408 -168 -72 -24 -24 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24
    -24 -288 -24 -96 -8
)";

// BertModel with a classifier (modeling_bert.py). Types are gathered from a buffer (5 · 8 = 40 bytes) and copied for
// three sequences (120), tables of words, types and positions are added. A norm keeps input, mean and deviation (15 · 4
// = 60), a product its input (360), flash_attention queries, keys, values, result, statistics (3 · 2 · 5 · 4 = 120) and
// two numbers of its dropout (16, 8). The pooler selects 3 first tokens: backward 15 rows of zeros, three copied.
TEST(BertStep, RunsTheModulesOfTheNetworkForwardAndTheirFormulasBackward) {
  EXPECT_EQ(kBert.text(), kBertStepListing1);
}

// native_dropout keeps a byte for each number (15 · 12 = 180) and nothing else; what it gave is kept where a norm or a
// product reads it.
TEST(BertStep, DropoutKeepsAMaskOfBytes) {
  EXPECT_EQ(kBert.changed([](OddStep& step) { step.model.dropout = 0.1; }), R"(
[forward embeddings]
- layer_norm_module; dropout_off
+ layer_norm_module +360t +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
+ dropout +180 +360 native_dropout 180 bf16 (360 > 360 180) -360 -360 -360 -120
[forward layers.0.attention]
- dropout_off
[forward layers.0]
+ dropout +180 +360t native_dropout 180 bf16 (360 > 360 180) -360
[forward layers.0.feed_forward]
- dropout_off
[forward layers.0]
+ dropout +180 +360t native_dropout 180 bf16 (360 > 360 180) -360
[forward head]
- dropout_off
+ dropout +36 +72 native_dropout 36 bf16 (72 > 72 36)
[backward]
- backward_first x27
+ backward_first x31
[backward head]
- addmm_backward
+ addmm_backward +72t mm 3x12x4 nn bf16 (24 96 > 72) +96g mm 4x12x3 tn bf16 (24 72 > 96) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -72
+ pointwise_backward +72t native_dropout_backward 3x12 bf16,bool->bf16 (72 36 > 72) -72 -36
[backward layers.0]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -180
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -180
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
[backward embeddings]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -360 -180
)");
}

}  // namespace
}  // namespace ridgeline
