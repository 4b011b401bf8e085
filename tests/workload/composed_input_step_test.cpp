// A step of a composition, and what others make of tokens before their first block.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedInputStepListing1[] = R"(
[forward embeddings]
embedding +360 embedding 15 of 17x12 bf16 (408 120 > 360)
[forward positions]
pointwise x2 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40
pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t add 3x5 int64 (144 > 120)
    -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
[forward layers.0]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.attention]
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward final_norm]
layer_norm_module +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -40
view
[forward head]
linear +510t mm 15x17x12 nt bf16 (360 408 > 510) +1020t cast 15x17 bf16->fp32 (510 > 1020)
[forward head.loss]
pointwise x4 +144t fill 3x6 int64 (> 144) copy 3x5 int64 permuted (120 > 144) +120
    copy 3x5 int64 permuted (120 > 120)
view; view
cross_entropy +1020 log_softmax 15x17 fp32 (1020 > 1020) +4t +4 nll_loss 15x17 fp32 (1020 120 > 4) -1020 -144 -510
[forward]
loss_division +4 div 1x1 fp32 (4 > 4) -4
[backward]
backward_call +4t fill 1x1 fp32 (> 4)
backward_first x34
pointwise_backward +4t div 1x1 fp32 (4 > 4)
[backward head.loss]
nll_backward +1020t nll_loss_backward 15x17 fp32 (4 120 > 1020) -4 -120 -4
log_softmax_backward +1020t log_softmax_backward 15x17 fp32 (1020 1020 > 1020) -1020 -1020
view_backward
cast_backward +510t cast 15x17 fp32->bf16 (1020 > 510) -1020
view_backward
[backward head]
mm_backward +408t mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
view_backward; view_backward; view_backward
[backward final_norm]
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
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.attention]
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -360 -360 -360 -120
    -360 -8 -16
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
view_backward; view_backward; view_backward
addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
[backward embeddings]
embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
accumulate_grad -4 -4
per_parameter_zero_grad x19 -408 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

// Positions are arange and a sum; find_packed_sequence_indices (masking_utils.py of Transformers) joins one before the
// first (3 · 8 = 24 bytes) to them (3 · 6 · 8 = 144), compares differences with one and sums up; the host reads whether
// all last sums are zero. A norm keeps input, mean and deviation (15 · 4 = 60 each), a product its input.
// ForCausalLMLoss makes logits fp32 (15 · 17 · 4 = 1020), pads labels by one (144) and copies those shifted (120). The
// tied head's gradient waits for the embedding's.
TEST(ComposedInputStep, AComposedNetworkRunsItsBlocks) {
  EXPECT_EQ(OddStep(odd_composition()).text(), kComposedInputStepListing1);
}

// Five rows of a table of seven (168 bytes) are added to each of three sequences; backward they have the sum over
// sequences (360 > 120). The index (5 · 8 = 40) is kept.
TEST(ComposedInputStep, PositionsAreRowsOfATable) {
  EXPECT_EQ(changes_by_keys("positions: learned"), R"(
[forward embeddings]
- embedding
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
+ pointwise x2 +40t arange 1x5 int64 (> 40) +40 add 1x5 int64 (40 > 40) -40
+ embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120)
+ pointwise +360 add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -360 -120
[backward]
- backward_first x34
+ backward_first x38
[backward embeddings]
+ add_backward +120t sum 3x60 bf16 rows (360 > 120)
+ embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
+ accumulate_grad
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -168 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)");
}

constexpr char kComposedInputStepListing2[] = R"(
[forward embeddings]
- embedding
+ embedding +240 embedding 15 of 17x8 bf16 (272 120 > 240)
+ linear +360 addmm 15x12x8 nt bf16 (240 192 24 > 360)
[forward head]
- linear
+ linear +240 addmm 15x8x12 nt bf16 (360 192 16 > 240)
+ linear +510t mm 15x17x8 nt bf16 (240 272 > 510) +1020t cast 15x17 bf16->fp32 (510 > 1020)
[backward]
- backward_first x34
+ backward_first x36
[backward head]
- mm_backward
+ mm_backward +272t mm 17x8x15 tn bf16 (510 240 > 272) +240t mm 15x8x17 nn bf16 (510 272 > 240) -510 -240
+ addmm_backward +360t mm 15x12x8 nn bf16 (240 192 > 360) +192g mm 8x12x15 tn bf16 (240 360 > 192) +16g
    sum 15x8 bf16 rows (240 > 16) -240 -360
+ accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward
[backward embeddings]
- embedding_backward; fan_in_add
+ view_backward
+ addmm_backward +240t mm 15x8x12 nn bf16 (360 192 > 240) +192g mm 12x8x15 tn bf16 (360 240 > 192) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -240
+ accumulate_grad; view_backward; accumulate_grad; view_backward
+ embedding_backward +272t embedding_dense_backward 15 of 17x8 bf16 (240 120 > 272) -240
+ fan_in_add +272g add 17x8 bf16,bf16->bf16 (272 272 > 272) -272 -272
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x23 -272 -192 -24 -192 -16 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24
    -24 -24 -24 -24
)";

constexpr char kComposedInputStepListing4[] = R"(
[forward embeddings]
- embedding
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
+ pointwise +360 scale 15x12 bf16 (360 > 360) -360
[backward]
- backward_first x34
+ backward_first x35
[backward embeddings]
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360) -360
)";

// Rows of 8 are projected to 12 and, before the head, back to 8 (OPTDecoder's project_in and project_out): the table
// has 17 · 8 · 2 = 272 bytes. A scale of embeddings (BartScaledWordEmbedding) is a product with a number, which keeps
// nothing.
TEST(ComposedInputStep, RowsOfTokensAreProjectedAndScaled) {
  EXPECT_EQ(changes_by_keys("embedding_width: 8"), kComposedInputStepListing2);
  EXPECT_EQ(changes_by_keys("embedding_scale: true"), kComposedInputStepListing4);
}

constexpr char kComposedInputStepListing7[] = R"(
[forward embeddings]
- embedding
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
+ pointwise +40 gather 1x5 int64 (> 40)
+ embedding +120t copy 3x5 int64 permuted (40 > 120) +360t embedding 15 of 3x12 bf16 (72 120 > 360) -120
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward]
- backward_first x34
+ backward_first x38
[backward layers.0]
+ add_backward
[backward embeddings]
+ embedding_backward +120t copy 3x5 int64 permuted (40 > 120) +72g
    embedding_dense_backward 15 of 3x12 bf16 (360 120 > 72) -120 -40
+ accumulate_grad
- per_parameter_zero_grad x19
+ per_parameter_zero_grad x20 -408 -72 -288 -24 -288 -24 -288 -24 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -24 -24
)";

constexpr char kComposedInputStepListing9[] = R"(
[forward embeddings]
- embedding
+ embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360)
+ pointwise x9 +15 eq 15x1 int64->bool (120 > 15)
+ masked_fill +360t masked_fill 15x12 bf16,bool->bf16 broadcast (360 15 > 360) +15t eq 3x5 int64->bool (120 > 15)
    +24t sum 3x5 int64 cols (15 > 24) +12t cast 1x3 int64->fp32 (24 > 12) +12t div 1x3 fp32 (12 > 12) +12
    add 3x1 fp32 (12 > 12) +360t scale 15x12 bf16 (360 > 360) -360 +720t
    div 15x12 bf16,fp32->fp32 broadcast (360 12 > 720) -360 +360 cast 15x12 fp32->bf16 (720 > 360) -12 -12 -24 -15
    -720 -360
[backward]
- backward_first x34
+ backward_first x40
[backward embeddings]
+ cast_backward +720t cast 15x12 bf16->fp32 (360 > 720) -360
+ pointwise_backward +720t div 15x12 fp32,fp32->fp32 broadcast (720 12 > 720)
+ cast_backward +360t cast 15x12 fp32->bf16 (720 > 360) -720 -720 -12
+ pointwise_backward +360t scale 15x12 bf16 (360 > 360) -360
+ masked_fill_backward +360t masked_fill 15x12 bf16,bool->bf16 broadcast (360 15 > 360) -360 -15
)";

// BertEmbeddings gathers types from a buffer (1 · 5 · 8 = 40 bytes) and expands them; embedding needs them in rows and
// copies (120), and so does its backward pass, for the expanded view is kept. EsmEmbeddings (modeling_esm.py) zeroes
// masked tokens, scales by 1 - 0.12 and divides by 1 - the share of masked tokens in fp32 (3 · 4 = 12 bytes), which
// makes all rows fp32 (720) until they are cast back.
TEST(ComposedInputStep, TokensHaveTypesAndAreDropped) {
  EXPECT_EQ(changes_by_keys("type_vocabulary: 3"), kComposedInputStepListing7);
  EXPECT_EQ(changes_by_keys("token_dropout: true"), kComposedInputStepListing9);
}

}  // namespace
}  // namespace ridgeline
