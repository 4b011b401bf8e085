// A step of Megatron-LM with a small gpt2, and what its switches do otherwise.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr char kMegatronStepListing1[] = R"(
[forward layers.0]
layer_norm_module +432 +72 +72 native_layer_norm 18x12 bf16 (432 24 24 > 432 72 72)
[forward layers.0.attention]
megatron_linear +1296t mm 18x36x12 nt bf16 (432 864 > 1296) +1296t add 18x36 bf16,bf16->bf16 rows (1296 72 > 1296)
    -1296
view; split; transpose
contiguous +432 copy 36x6 bf16 permuted (432 > 432)
transpose; transpose
contiguous +432 copy 36x6 bf16 permuted (432 > 432)
transpose; transpose
contiguous +432 copy 36x6 bf16 permuted (432 > 432)
transpose
attention_fused +432 +144 +16 +8 flash_attention 3x2x6x6 causal bf16 dropout (432 432 432 > 432 144)
transpose; transpose
contiguous +432 copy 36x6 bf16 permuted (432 > 432)
view -1296
megatron_linear +432t mm 18x12x12 nt bf16 (432 288 > 432)
[forward layers.0]
megatron_function +216 +432
    triton_poi_fused_bias_dropout_add 18x12 bf16, 3 in, 2 out 150 instructions (432 432 24 > 432 216) -432
[forward layers.0.feed_forward]
layer_norm_module +432 +72 +72 native_layer_norm 18x12 bf16 (432 24 24 > 432 72 72)
megatron_linear +720 mm 18x20x12 nt bf16 (432 480 > 720)
megatron_function +720 triton_poi_fused_bias_gelu 18x20 bf16, 2 in, 1 out 20 instructions (720 40 > 720)
megatron_linear +432t mm 18x12x20 nt bf16 (720 480 > 432)
megatron_function +216 +432
    triton_poi_fused_bias_dropout_add 18x12 bf16, 3 in, 2 out 150 instructions (432 432 24 > 432 216) -432
[backward layers.0.feed_forward]
megatron_function_backward +432t native_dropout_backward 18x12 bf16,bool->bf16 (432 216 > 432) +24g
    sum 18x12 bf16 rows (432 > 24) -216
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
megatron_linear_backward +720t mm 18x20x12 nn bf16 (432 480 > 720) +480g mm 12x20x18 tn bf16 (432 720 > 480) -432
    -720
accumulate_grad
main_gradient_hook add_ 12x20 fp32,bf16->fp32 (960 480 > 960) -480
megatron_function_backward +720t
    triton_poi_fused_bias_gelu_back 18x20 bf16, 3 in, 1 out 35 instructions (720 720 40 > 720) +40g
    sum 18x20 bf16 rows (720 > 40) -720 -720
accumulate_grad
main_gradient_hook add_ 1x20 fp32,bf16->fp32 (80 40 > 80) -40
megatron_linear_backward +432t mm 18x12x20 nn bf16 (720 480 > 432) +480g mm 20x12x18 tn bf16 (720 432 > 480) -720
    -432
accumulate_grad
main_gradient_hook add_ 20x12 fp32,bf16->fp32 (960 480 > 960) -480
layer_norm_backward +432t +24g +24g native_layer_norm_backward 18x12 bf16 (432 432 24 72 72 > 432 24 24) -432 -432
    -72 -72
fan_in_add add_ 18x12 bf16,bf16->bf16 (432 432 > 432) -432
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
[backward layers.0]
megatron_function_backward +432t native_dropout_backward 18x12 bf16,bool->bf16 (432 216 > 432) +24g
    sum 18x12 bf16 rows (432 > 24) -216
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
[backward layers.0.attention]
megatron_linear_backward +432t mm 18x12x12 nn bf16 (432 288 > 432) +288g mm 12x12x18 tn bf16 (432 432 > 288) -432
    -432
accumulate_grad
main_gradient_hook add_ 12x12 fp32,bf16->fp32 (576 288 > 576) -288
view_backward; view_backward; view_backward; view_backward
attention_fused_backward +432t +432t +432t
    flash_attention_backward 3x2x6x6 causal bf16 dropout (432 432 432 432 432 144 > 432 432 432) -432 -432 -432 -432
    -144 -432 -8 -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward
split_backward +1296t cat 18x12 bf16 x3 joined strided (432 432 432 > 1296) -432 -432 -432
megatron_linear_backward +432t mm 18x12x36 nn bf16 (1296 864 > 432) +864g mm 36x12x18 tn bf16 (1296 432 > 864) +72g
    sum 18x36 bf16 rows (1296 > 72) -1296 -432
accumulate_grad
main_gradient_hook add_ 36x12 fp32,bf16->fp32 (1728 864 > 1728) -864
accumulate_grad
main_gradient_hook add_ 1x36 fp32,bf16->fp32 (144 72 > 144) -72
[backward layers.0]
layer_norm_backward +432t +24g +24g native_layer_norm_backward 18x12 bf16 (432 432 24 72 72 > 432 24 24) -432 -432
    -72 -72
fan_in_add add_ 18x12 bf16,bf16->bf16 (432 432 > 432) -432
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
)";

// ParallelTransformerLayer (megatron/legacy/model/transformer.py), rows in order [sequence, batch]: 18 rows of 12 in
// bf16 are 432 bytes. Linear layers multiply, then add a bias (1296) or hand it to the next fused function: bias and
// gelu keep the product (720), bias, dropout and residual a mask of bytes (216). FlashAttention gets copies by
// sequence. Backward a linear layer makes gradients of input and weight, the engine sums for the bias; a hook adds each
// to the fp32 buffer (distributed_data_parallel.py).
TEST(MegatronStep, RunsTheModulesOfTheNetworkForwardAndTheirFormulasBackward) {
  EXPECT_EQ(under(OddStep(ModelFamily::gpt2)
                      .but([](OddStep& step) {
                        step.training.parallel.framework = Framework::megatron;
                        step.training.parallel.vocabulary_multiple = 4;
                        step.training.sequence_length = 6;
                        step.training.precision = Precision::amp_bf16;
                        step.model.dropout = 0.1;
                        step.model.attention_dropout = 0.1;
                      })
                      .text(),
                  {"forward layers.0", "forward layers.0.attention", "forward layers.0.feed_forward",
                   "backward layers.0.feed_forward", "backward layers.0", "backward layers.0.attention"}),
            kMegatronStepListing1);
}

// CoreAttention (megatron/legacy/model/transformer.py): queries and keys are multiplied as views of [sequence, batch ·
// head, width], without copies (3 · 2 matrices of 6 by 6: 432 bytes); 6 keys are too few for the fused kernel, so that
// masked_fill and softmax run, then dropout with a mask of 216 bytes. The one tensor of queries, keys and values (1296)
// stays for both products.
TEST(MegatronStep, EagerAttentionIsWrittenOut) {
  EXPECT_EQ(under(OddStep(ModelFamily::gpt2)
                      .but([](OddStep& step) {
                        step.training.parallel.framework = Framework::megatron;
                        step.training.parallel.vocabulary_multiple = 4;
                        step.training.sequence_length = 6;
                        step.training.precision = Precision::amp_bf16;
                        step.model.dropout = 0.1;
                        step.model.attention_dropout = 0.1;
                      })
                      .changed([](OddStep& step) { step.attention = AttentionChoice::eager; }),
                  {"forward layers.0.attention", "backward layers.0.attention"}),
            R"(
[forward layers.0.attention]
- megatron_linear
+ megatron_linear +1296t mm 18x36x12 nt bf16 (432 864 > 1296) +1296 add 18x36 bf16,bf16->bf16 rows (1296 72 > 1296)
    -1296
- transpose; contiguous; transpose; transpose; contiguous
+ view; view
- contiguous; attention_fused
+ matmul +432t bmm 6x 6x6x6 nt bf16 (432 432 > 432)
+ view
+ masked_fill masked_fill 6x36 bf16,bool->bf16 rows (432 36 > 432)
+ softmax +432 softmax 36x6 bf16 (432 > 432) -432
+ dropout
+ dropout +216 +432 native_dropout 216 bf16 (432 > 432 216)
+ view; matmul; view
+ transpose +432t bmm 6x 6x6x6 nn bf16 (432 432 > 432)
+ view
- contiguous; view
+ contiguous +432 copy 36x6 bf16 permuted (432 > 432) -432
+ view
[backward layers.0.attention]
- attention_fused_backward
+ bmm_backward +432t bmm 6x 6x6x6 tn bf16 (432 432 > 432) +432t bmm 6x 6x6x6 nt bf16 (432 432 > 432) -432 -432
+ pointwise_backward +432t native_dropout_backward 36x6 bf16,bool->bf16 (432 216 > 432) -432 -216
+ softmax_backward +432t +432t softmax_backward 36x6 bf16 (432 432 > 432) -432 -432 -432
+ masked_fill_backward +432t masked_fill 6x36 bf16,bool->bf16 rows (432 36 > 432) -432
+ bmm_backward +432t bmm 6x 6x6x6 tn bf16 (432 432 > 432) +432t bmm 6x 6x6x6 nn bf16 (432 432 > 432) -432 -1296
+ view_backward
)");
}

// ParallelAttention runs only CoreAttention again (checkpoint_core_attention); with FlashAttention there is none:
// nothing differs (megatron/legacy/model/transformer.py).
TEST(MegatronStep, PartOfAttentionMayRunAgain) {
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2)
          .but([](OddStep& step) {
            step.training.parallel.framework = Framework::megatron;
            step.training.parallel.vocabulary_multiple = 4;
            step.training.sequence_length = 6;
            step.training.precision = Precision::amp_bf16;
            step.model.dropout = 0.1;
            step.model.attention_dropout = 0.1;
          })
          .changed([](OddStep& step) { step.training.activation_checkpointing = ActivationCheckpointing::selective; }),
      R"(
)");
}

}  // namespace
}  // namespace ridgeline
