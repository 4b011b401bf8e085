// Attention of a small bert in each of its codes.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

const OddStep kAttentiveBert =
    OddStep(ModelFamily::bert).but([](OddStep& step) { step.model.head = ModelHead::sequence_classification; });

// BertSelfAttention written out (modeling_bert.py): bmm keeps copies of queries and of transposed keys (360 bytes
// each), softmax its result (6 · 5 · 5 · 2 = 300), dropout a byte for each score (150), the second bmm what dropout
// gave (300) and a copy of values. The projections themselves are kept by nothing and go at the end.
TEST(BertAttentionStep, EagerAttentionKeepsItsProbabilities) {
  EXPECT_EQ(kAttentiveBert.changed([](OddStep& step) {
    step.attention = AttentionChoice::eager;
    step.model.attention_dropout = 0.1;
  }),
            R"(
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- attention_fused; view; view
+ matmul
+ matmul_copy x2 +360 copy 30x6 bf16 permuted (360 > 360) +360 copy 36x5 bf16 transposed (360 > 360) +300t
    bmm 6x 5x5x6 nn bf16 (360 360 > 300)
+ pointwise +300t scale 30x5 bf16 (300 > 300) -300
+ softmax +300 softmax 30x5 bf16 (300 > 300) -300
+ dropout +150 +300 native_dropout 150 bf16 (300 > 300 150)
+ matmul
+ matmul_copy +360 copy 30x6 bf16 permuted (360 > 360) +360t bmm 6x 5x6x5 nn bf16 (300 360 > 360)
+ transpose
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360) -360
+ view -360 -360 -360
[backward]
- backward_first x27
+ backward_first x35
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
- attention_fused_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ bmm_backward +360t bmm 6x 5x6x5 tn bf16 (300 360 > 360) +300t bmm 6x 5x5x6 nt bf16 (360 360 > 300) -360 -360 -300
+ view_backward; view_backward; view_backward; view_backward
+ pointwise_backward +300t native_dropout_backward 30x5 bf16,bool->bf16 (300 150 > 300) -300 -150
+ softmax_backward +300t +300t softmax_backward 30x5 bf16 (300 300 > 300) -300 -300 -300
+ pointwise_backward +300t scale 30x5 bf16 (300 > 300) -300
+ view_backward
+ bmm_backward +360t bmm 6x 6x5x5 tn bf16 (360 300 > 360) +360t bmm 6x 5x6x5 nt bf16 (300 360 > 360) -300 -360 -360
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward
+ view_backward_copy +360t copy 15x12 bf16 transposed (360 > 360) -360
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
)");
}

// get_extended_attention_mask: ones of 3 · 5 tokens (30 bytes), 1 - mask, times the lowest number. The sum with scores
// keeps nothing and its backward pass hands the gradient on; the mask is kept until the network's forward pass ends.
TEST(BertAttentionStep, AMaskOfOnesIsAddedToScores) {
  EXPECT_EQ(
      kAttentiveBert.but([](OddStep& step) { step.attention = AttentionChoice::eager; }).changed([](OddStep& step) {
        step.model.adds_mask = true;
      }),
      R"(
[forward positions]
+ pointwise x3 +30t fill 3x5 bf16 (> 30) +30t add 3x5 bf16 (30 > 30) +30t scale 3x5 bf16 (30 > 30) -30 -30
[forward layers.0.attention]
- softmax
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (300 30 > 300) -300
+ softmax +300 softmax 30x5 bf16 (300 > 300)
- view
+ view -360 -360 -360 -300
[forward layers.0]
- layer_norm_module
+ layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -360 -30
[backward]
- backward_first x34
+ backward_first x38
[backward layers.0.attention]
+ add_backward
)");
}

}  // namespace
}  // namespace ridgeline
