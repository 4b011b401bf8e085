// Layers of Megatron-LM over ranks.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;
using testing_support::under;

constexpr char kMegatronSplitStepListing1[] = R"(
[forward layers.0.attention]
- megatron_linear
+ megatron_linear +648t mm 18x18x12 nt bf16 (432 432 > 648) +648t add 18x18 bf16,bf16->bf16 rows (648 36 > 648) -648
- contiguous
+ contiguous +216 copy 18x6 bf16 permuted (216 > 216)
- contiguous
+ contiguous +216 copy 18x6 bf16 permuted (216 > 216)
- contiguous
+ contiguous +216 copy 18x6 bf16 permuted (216 > 216)
- attention_fused
+ attention_fused +216 +72 +16 +8 flash_attention 3x1x6x6 causal bf16 dropout (216 216 216 > 216 72)
- contiguous; view; megatron_linear
+ contiguous +216 copy 18x6 bf16 permuted (216 > 216)
+ view -648
+ megatron_linear +432t mm 18x12x6 nt bf16 (216 144 > 432)
+ tensor_boundary
+ collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
[forward layers.0.feed_forward]
- megatron_linear; megatron_function; megatron_linear
+ megatron_linear +360 mm 18x10x12 nt bf16 (432 240 > 360)
+ megatron_function +360 triton_poi_fused_bias_gelu 18x10 bf16, 2 in, 1 out 20 instructions (360 20 > 360)
+ megatron_linear +432t mm 18x12x10 nt bf16 (360 240 > 432)
+ tensor_boundary
+ collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
[backward layers.0.feed_forward]
- megatron_linear_backward
+ megatron_linear_backward +360t mm 18x10x12 nn bf16 (432 240 > 360) +240g mm 12x10x18 tn bf16 (432 360 > 240) -432
    -360
- main_gradient_hook; megatron_function_backward
+ main_gradient_hook add_ 12x10 fp32,bf16->fp32 (480 240 > 480) -240
+ megatron_function_backward +360t
    triton_poi_fused_bias_gelu_back 18x10 bf16, 3 in, 1 out 35 instructions (360 360 20 > 360) +20g
    sum 18x10 bf16 rows (360 > 20) -360 -360
- main_gradient_hook; megatron_linear_backward
+ main_gradient_hook add_ 1x10 fp32,bf16->fp32 (40 20 > 40) -20
+ megatron_linear_backward +432t mm 18x12x10 nn bf16 (360 240 > 432)
+ collective event2 wait2@1 all_reduce 432 bytes bf16, 2 ranks tensor@1 (432 > 432) event3@1 +240g
    mm 10x12x18 tn bf16 (360 432 > 240) wait3@0 -360 -432
- main_gradient_hook
+ main_gradient_hook add_ 10x12 fp32,bf16->fp32 (480 240 > 480) -240
[backward layers.0.attention]
- megatron_linear_backward
+ megatron_linear_backward +216t mm 18x6x12 nn bf16 (432 144 > 216) +144g mm 12x6x18 tn bf16 (432 216 > 144) -432
    -216
- main_gradient_hook
+ main_gradient_hook add_ 12x6 fp32,bf16->fp32 (288 144 > 288) -144
- attention_fused_backward
+ attention_fused_backward +216t +216t +216t
    flash_attention_backward 3x1x6x6 causal bf16 dropout (216 216 216 216 216 72 > 216 216 216) -216 -216 -216 -216
    -72 -216 -8 -16
- split_backward; megatron_linear_backward
+ split_backward +648t cat 18x6 bf16 x3 joined strided (216 216 216 > 648) -216 -216 -216
+ megatron_linear_backward +432t mm 18x12x18 nn bf16 (648 432 > 432)
+ collective event4 wait4@1 all_reduce 432 bytes bf16, 2 ranks tensor@1 (432 > 432) event5@1 +432g
    mm 18x12x18 tn bf16 (648 432 > 432) wait5@0 +36g sum 18x18 bf16 rows (648 > 36) -648 -432
- main_gradient_hook
+ main_gradient_hook add_ 18x12 fp32,bf16->fp32 (864 432 > 864) -432
- main_gradient_hook
+ main_gradient_hook add_ 1x18 fp32,bf16->fp32 (72 36 > 72) -36
)";

// ColumnParallelLinear and RowParallelLinear (megatron/core/tensor_parallel/layers.py) on one of two ranks: one head of
// 6 (18 columns of queries, keys and values), 10 of 20 inner columns. Results of row-parallel products are summed (18 ·
// 12 · 2 = 432 bytes). Backward the gradient of a column-parallel product's input is summed while the weight's is
// computed (LinearWithGradAccumulationAndAsyncCommunication); row-parallel ones need no exchange. Each gradient is
// added to the buffer in fp32 and freed.
TEST(MegatronSplitStep, LayersAreSplit) {
  EXPECT_EQ(under(OddStep(ModelFamily::gpt2)
                      .but([](OddStep& step) {
                        step.training.parallel.framework = Framework::megatron;
                        step.training.parallel.vocabulary_multiple = 4;
                        step.training.sequence_length = 6;
                        step.training.precision = Precision::amp_bf16;
                        step.model.dropout = 0.1;
                        step.model.attention_dropout = 0.1;
                      })
                      .changed([](OddStep& step) { step.training.parallel.tensor = 2; }),
                  {"forward layers.0.attention", "forward layers.0.feed_forward", "backward layers.0.feed_forward",
                   "backward layers.0.attention"}),
            kMegatronSplitStepListing1);
}

}  // namespace
}  // namespace ridgeline
