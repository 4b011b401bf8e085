// A step of Megatron-LM with a small gpt2, and what its switches do otherwise.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kMegatronStepListing1[] = R"(
[other]
optimizer_op fill 1x1532 fp32 (> 6128)
[forward]
pointwise x8 +80t fill 1x10 int64 (> 80) +168t copy_to_host 1x10 int64 from gpu (80) sync
    copy_to_device 1x21 int64 to gpu (168 > 168)
pointwise x6 copy 3x6 int64 permuted (168 > 144) copy 3x6 int64 permuted (168 > 144) -168 -80
[forward embeddings]
embedding +432t embedding 18 of 20x12 bf16 (480 144 > 432) +48t arange 1x6 int64 (> 48) +144
    pointwise 3x6 int64 rows (48 > 144)
embedding +432t embedding 18 of 7x12 bf16 (168 144 > 432)
pointwise +432t add 18x12 bf16,bf16->bf16 (432 432 > 432) -432 -432 -48
transpose
contiguous +432t copy 18x12 bf16 permuted (432 > 432) -432
dropout +216 +432 native_dropout 216 bf16 (432 > 432 216) -432
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
[forward head]
layer_norm_module +432 +72 +72 native_layer_norm 18x12 bf16 (432 24 24 > 432 72 72)
megatron_linear +720t mm 18x20x12 nt bf16 (432 480 > 720) +1440 cast 18x20 bf16->fp32 (720 > 1440)
cast; megatron_function
pointwise x10 +72t sum 18x20 fp32 cols (1440 > 72) add 18x20 fp32,fp32->fp32 broadcast (1440 72 > 1440)
pointwise x5
masked_fill +18t eq 3x6 int64->bool (144 > 18) +18t eq 3x6 int64->bool (144 > 18) +18t
    pointwise 3x6 bool,bool->bool (18 18 > 18) +144t copy 1x18 int64 (144 > 144) +144 add 3x6 int64 (144 > 144)
    masked_fill 3x6 int64,bool->int64 (144 18 > 144) -144 -18 -18 +144t arange 1x18 int64 (> 144) +72t
    index 18x1 int64,int64->fp32 (144 144 > 72) pointwise 18x20 fp32 (1440 > 1440) +72t
    sum 18x20 fp32 cols (1440 > 72) +72t pointwise 18x1 fp32 (72 > 72) +72t add 18x1 fp32,fp32->fp32 (72 72 > 72)
    div 18x20 fp32,fp32->fp32 broadcast (1440 72 > 1440)
pointwise x5 +72t fill 1x18 fp32 (> 72) +72t mul 1x18 fp32,fp32->fp32 (72 72 > 72) +4t +4t sum 1x18 fp32 (72 > 4)
    sum 1x18 fp32 (72 > 4) +4t div 1x1 fp32,fp32->fp32 (4 4 > 4) -4 -4 -72 -72 -72 -72 -72 -72 -144 -18 -72 -720
[forward]
pointwise x2 +4t copy 1x1 fp32 (4 > 4) +4t div 1x1 fp32 (4 > 4) -4 -4
loss_division +4 div 1x1 fp32 (4 > 4) -4
[backward]
backward_call +4t fill 1x1 fp32 (> 4)
backward_first x40
pointwise_backward +4t div 1x1 fp32 (4 > 4)
megatron_function_backward; pointwise_backward x4
[backward head]
pointwise x6 +72t mul 1x18 fp32 broadcast (4 > 72) +144t arange 1x18 int64 (> 144) +72t
    cast 1x18 int64->fp32 (144 > 72) +72t index 1x18 int64,int64->fp32 (144 144 > 72) +72t
    add 1x18 fp32,fp32->fp32 (72 72 > 72) index 1x18 fp32,int64->fp32 (72 144 > 72)
    mul 18x20 fp32,fp32->fp32 broadcast (1440 72 > 1440) -72 -72 -72 -144 -72 -4 -144
cast_backward +720t cast 18x20 fp32->bf16 (1440 > 720) -1440
megatron_linear_backward +432t mm 18x12x20 nn bf16 (720 480 > 432) +480g mm 20x12x18 tn bf16 (720 432 > 480) -720
    -432
layer_norm_backward +432t +24g +24g native_layer_norm_backward 18x12 bf16 (432 432 24 72 72 > 432 24 24) -432 -432
    -72 -72
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
accumulate_grad
main_gradient_hook add_ 1x12 fp32,bf16->fp32 (48 24 > 48) -24
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
[backward embeddings]
pointwise_backward +432t native_dropout_backward 18x12 bf16,bool->bf16 (432 216 > 432) -432 -216
view_backward; view_backward; add_backward
embedding_backward +168g embedding_dense_backward 18 of 7x12 bf16 (432 144 > 168) -144
accumulate_grad
main_gradient_hook add_ 7x12 fp32,bf16->fp32 (336 168 > 336) -168
embedding_backward +480t embedding_dense_backward 18 of 20x12 bf16 (432 144 > 480) -432
fan_in_add add_ 20x12 bf16,bf16->bf16 (480 480 > 480) -480
accumulate_grad
main_gradient_hook add_ 20x12 fp32,bf16->fp32 (960 480 > 960) -480 -4 -4
    foreach_copy 16 tensors, 1532 elements fp32 (960 336 48 48 1728 144 576 48 48 48 960 80 960 48 48 48 480 168 24 24 864 72 288 24 24 24 480 40 480 24 24 24)
)";

TEST(MegatronStep, RunsTheModulesOfTheNetworkForwardAndTheirFormulasBackward) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .text(),
            kMegatronStepListing1);
}

TEST(MegatronStep, EagerAttentionIsOfFusedKernels) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .changed([](OddStep& step) { step.attention = AttentionChoice::eager; }),
            R"(
[forward]
- pointwise x6
+ pointwise x6 copy 3x6 int64 permuted (168 > 144) copy 3x6 int64 permuted (168 > 144) +144t fill 6x6 fp32 (> 144)
    pointwise 6x6 fp32 (144 > 144) +36t eq 6x6 fp32->bool (144 > 36) -36 -144 -168 -80
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

TEST(MegatronStep, TheLossMayBeOfSixteenBits) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .changed([](OddStep& step) { step.training.parallel.fp16_cross_entropy = true; }),
            R"(
[forward head]
- megatron_linear
+ megatron_linear +720 mm 18x20x12 nt bf16 (432 480 > 720)
- pointwise x10
+ pointwise x10 +36t sum 18x20 bf16 cols (720 > 36) add 18x20 bf16,bf16->bf16 broadcast (720 36 > 720)
- masked_fill; pointwise x5
+ masked_fill +18t eq 3x6 int64->bool (144 > 18) +18t eq 3x6 int64->bool (144 > 18) +18t
    pointwise 3x6 bool,bool->bool (18 18 > 18) +144t copy 1x18 int64 (144 > 144) +144 add 3x6 int64 (144 > 144)
    masked_fill 3x6 int64,bool->int64 (144 18 > 144) -144 -18 -18 +144t arange 1x18 int64 (> 144) +36t
    index 18x1 int64,int64->bf16 (144 144 > 36) pointwise 18x20 bf16 (720 > 720) +36t sum 18x20 bf16 cols (720 > 36)
    +36t pointwise 18x1 bf16 (36 > 36) +36t add 18x1 bf16,bf16->bf16 (36 36 > 36)
    div 18x20 bf16,bf16->bf16 broadcast (720 36 > 720) +72t cast 18x1 bf16->fp32 (36 > 72)
+ pointwise x5 +72t fill 1x18 fp32 (> 72) +72t mul 1x18 fp32,fp32->fp32 (72 72 > 72) +4t +4t sum 1x18 fp32 (72 > 4)
    sum 1x18 fp32 (72 > 4) +4t div 1x1 fp32,fp32->fp32 (4 4 > 4) -4 -4 -72 -72 -72 -36 -36 -36 -36 -144 -18 -36
[backward head]
- pointwise x6; cast_backward
+ pointwise x6 +72t mul 1x18 fp32 broadcast (4 > 72)
+ cast_backward +36t cast 1x18 fp32->bf16 (72 > 36) -72 +144t arange 1x18 int64 (> 144) +72t
    cast 1x18 int64->fp32 (144 > 72) +72t index 1x18 int64,int64->fp32 (144 144 > 72) +72t
    add 1x18 fp32,fp32->fp32 (72 72 > 72) index 1x18 fp32,int64->fp32 (72 144 > 72)
    mul 18x20 bf16,bf16->bf16 broadcast (720 36 > 720) -72 -72 -72 -144 -36 -4 -144
)");
}

}  // namespace
}  // namespace ridgeline
