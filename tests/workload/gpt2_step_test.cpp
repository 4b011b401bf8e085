// A step of a small gpt2, operation by operation, and what its variants do otherwise.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

const OddStep kGpt2(ModelFamily::gpt2);

constexpr char kGpt2StepListing1[] = R"(
[forward embeddings]
embedding +360t embedding 15 of 17x12 bf16 (408 120 > 360) +40 arange 1x5 int64 (> 40)
embedding +120t embedding 5 of 7x12 bf16 (168 40 > 120)
pointwise +360 add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -360 -120
dropout_off
[forward layers.0]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.attention]
linear +1080 addmm 15x36x12 nt bf16 (360 864 72 > 1080)
split; view; transpose; view; transpose; view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward layers.0.feed_forward]
linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t addmm 15x12x20 nt bf16 (600 480 24 > 360)
dropout_off
[forward layers.0]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward final_norm]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[forward head]
linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
view; view
[forward head.loss]
cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2t +2 nll_loss 15x17 bf16 (510 120 > 2) -510
[forward]
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x20
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2 -2
log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
view_backward; view_backward
[backward head]
mm_backward +408t mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
view_backward; view_backward
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
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
split_backward +1080t cat 15x12 bf16 x3 joined (360 360 360 > 1080) -360 -360 -360
view_backward
addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) +72g
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
[backward embeddings]
add_backward +120t sum 3x60 bf16 rows (360 > 120)
embedding_backward +168g embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
accumulate_grad
embedding_backward +408t embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
fan_in_add +408g add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
accumulate_grad -2 -2
per_parameter_zero_grad x16 -408 -168 -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
)";

// nanoGPT's block: a norm keeps input, mean and deviation (15 rows: 60 bytes each), a product its input (15 · 12 · 2 =
// 360), attention the one tensor of queries, keys and values (1080), its result, statistics (3 · 2 · 5 · 4 = 120) and
// 16 + 8 bytes; gelu its input (600); sums nothing. addmm makes gradients of input and weight and sums for the bias.
// The second gradient of the residual is added in place; the head's of the tied table is a view, so that the sum with
// the embedding's is a new tensor (torch/csrc/autograd/input_buffer.cpp).
TEST(Gpt2Step, RunsTheModulesOfTheNetworkForwardAndTheirFormulasBackward) {
  EXPECT_EQ(kGpt2.text(), kGpt2StepListing1);
}

// native_dropout keeps a byte for each number (180). In attention it is a part of the kernel: the same tensors.
TEST(Gpt2Step, DropoutKeepsAMaskOfBytes) {
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.model.dropout = 0.1; }), R"(
[forward embeddings]
- pointwise; dropout_off
+ pointwise +360t add 3x60 bf16,bf16->bf16 rows (360 120 > 360) -360 -120
+ dropout +180 +360 native_dropout 180 bf16 (360 > 360 180) -360
[forward layers.0.attention]
- dropout_off
+ dropout +180 +360t native_dropout 180 bf16 (360 > 360 180) -360
[forward layers.0.feed_forward]
- dropout_off
+ dropout +180 +360t native_dropout 180 bf16 (360 > 360 180) -360
[backward]
- backward_first x20
+ backward_first x23
[backward layers.0.feed_forward]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -180
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) +24g
    sum 15x12 bf16 rows (360 > 24) -360 -600
[backward layers.0.attention]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -180
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
[backward embeddings]
+ pointwise_backward +360t native_dropout_backward 15x12 bf16,bool->bf16 (360 180 > 360) -360 -180
)");
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.model.attention_dropout = 0.1; }), R"(
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 dropout (360 360 360 > 360 120)
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 dropout (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360
    -8 -16
)");
}

// linear without a bias is mm, whose backward pass makes the weight's gradient first (mm in derivatives.yaml).
TEST(Gpt2Step, WithoutBiasProductsAndNormsHaveFewerOperands) {
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.model.bias = false; }), R"(
[forward layers.0]
- layer_norm
[forward layers.0.attention]
- linear
[forward layers.0]
+ layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward layers.0.attention]
+ linear +1080 mm 15x36x12 nt bf16 (360 864 > 1080)
- linear
+ linear +360t mm 15x12x12 nt bf16 (360 288 > 360)
[forward layers.0]
- layer_norm
[forward layers.0.feed_forward]
- linear
[forward layers.0]
+ layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward layers.0.feed_forward]
+ linear +600 mm 15x20x12 nt bf16 (360 480 > 600)
- linear
+ linear +360t mm 15x12x20 nt bf16 (600 480 > 360)
[forward final_norm]
- layer_norm
+ layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[backward final_norm]
- layer_norm_backward; accumulate_grad
+ layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
[backward layers.0.feed_forward]
- addmm_backward; accumulate_grad
+ mm_backward +480g mm 12x20x15 tn bf16 (360 600 > 480) +600t mm 15x20x12 nn bf16 (360 480 > 600) -600
- accumulate_grad
+ accumulate_grad
- addmm_backward; accumulate_grad
+ mm_backward +480g mm 20x12x15 tn bf16 (600 360 > 480) +360t mm 15x12x20 nn bf16 (600 480 > 360) -600 -360
- accumulate_grad
[backward layers.0]
- layer_norm_backward; fan_in_add
+ layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward layers.0.attention]
- addmm_backward; accumulate_grad
+ mm_backward +288g mm 12x12x15 tn bf16 (360 360 > 288) +360t mm 15x12x12 nn bf16 (360 288 > 360)
- accumulate_grad
+ accumulate_grad
- addmm_backward; accumulate_grad
+ mm_backward +864g mm 36x12x15 tn bf16 (1080 360 > 864) +360t mm 15x12x36 nn bf16 (1080 864 > 360) -1080 -360
- accumulate_grad
[backward layers.0]
- layer_norm_backward; fan_in_add
+ layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward embeddings]
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x9 -408 -168 -24 -864 -288 -24 -480 -480 -24
)");
}

// The head's gradient needs no sum with the embedding's; one parameter more is cleared.
TEST(Gpt2Step, AnUntiedHeadHasAGradientOfItsOwn) {
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.model.tie_embeddings = false; }), R"(
[backward head]
- mm_backward
+ mm_backward +408g mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
+ accumulate_grad
[backward embeddings]
- embedding_backward; fan_in_add
+ embedding_backward +408g embedding_dense_backward 15 of 17x12 bf16 (360 120 > 408) -360
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x17 -408 -168 -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 -408
)");
}

// Lengths are a property of the kernel: bytes and operands stay.
TEST(Gpt2Step, PackedSequencesAreToldToAttention) {
  EXPECT_EQ(kGpt2.changed([](OddStep& step) {
    step.training.packed_lengths = {2, 3};
  }),
            R"(
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 2 sequences causal bf16 (360 360 360 > 360 120)
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 2 sequences causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120
    -360 -8 -16
)");
}

// item() makes the loss fp32 and waits for its copy, behind the step or each micro-batch. A batch that is loaded is
// copied from memory that may be swapped out: the host waits (3 · 5 · 8 = 120 bytes, tokens and targets).
TEST(Gpt2Step, TheScriptReadsItsLossAndLoadsItsBatch) {
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.training.reads_loss = LossRead::step; }), R"(
[backward embeddings]
- per_parameter_zero_grad x16
[other]
+ per_parameter_zero_grad x16 -408 -168 -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 +4t
    copy_to_host 1x1 fp32 from gpu (4) sync -4
)");
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.training.reads_loss = LossRead::micro_batch; }), R"(
[backward embeddings]
- accumulate_grad
[backward]
+ accumulate_grad -2 -2 +4t copy_to_host 1x1 fp32 from gpu (4) sync -4
)");
  EXPECT_EQ(kGpt2.changed([](OddStep& step) { step.training.data_loader = DataLoader::tensor_dataset; }), R"(
+ view x3
[forward]
+ contiguous copy_to_device 3x5 int64 to gpu (> 120) sync
+ view x3
+ contiguous copy_to_device 3x5 int64 to gpu (> 120) sync
[backward]
- backward_first x20
+ backward_first x22
)");
}

}  // namespace
}  // namespace ridgeline
