// Layers of Megatron-LM over ranks.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kMegatronSplitStepListing1[] = R"(
[other]
- optimizer_op
[forward]
- pointwise x8
[other]
+ optimizer_op fill 1x880 fp32 (> 3520)
[forward]
+ pointwise x8 +80t fill 1x10 int64 (> 80) +168t
+ collective broadcast 80 bytes int64, 2 ranks tensor (80 > 80) copy_to_host 1x10 int64 from gpu (80) sync
    copy_to_device 1x21 int64 to gpu (168 > 168)
+ collective broadcast 168 bytes int64, 2 ranks tensor (168 > 168)
[forward embeddings]
- embedding
+ pointwise x5
+ masked_fill +18t eq 3x6 int64->bool (144 > 18) +18t eq 3x6 int64->bool (144 > 18) +18
    pointwise 3x6 bool,bool->bool (18 18 > 18) +144t copy 1x18 int64 (144 > 144) +144 add 3x6 int64 (144 > 144)
    masked_fill 3x6 int64,bool->int64 (144 18 > 144) -144 -18 -18
+ embedding +432t embedding 18 of 12x12 bf16 (288 144 > 432)
+ masked_fill masked_fill 18x12 bf16,bool->bf16 broadcast (432 18 > 432)
+ tensor_boundary
+ collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432) +48t arange 1x6 int64 (> 48) +144
    pointwise 3x6 int64 rows (48 > 144)
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
[forward head]
- megatron_linear
+ megatron_linear +432t mm 18x12x12 nt bf16 (432 288 > 432) +864 cast 18x12 bf16->fp32 (432 > 864)
- pointwise x10
+ pointwise x10 +72t sum 18x12 fp32 cols (864 > 72)
+ collective all_reduce 72 bytes fp32, 2 ranks tensor (72 > 72) add 18x12 fp32,fp32->fp32 broadcast (864 72 > 864)
- masked_fill; pointwise x5
+ masked_fill +18t eq 3x6 int64->bool (144 > 18) +18t eq 3x6 int64->bool (144 > 18) +18t
    pointwise 3x6 bool,bool->bool (18 18 > 18) +144t copy 1x18 int64 (144 > 144) +144 add 3x6 int64 (144 > 144)
    masked_fill 3x6 int64,bool->int64 (144 18 > 144) -144 -18 -18 +144t arange 1x18 int64 (> 144) +72t
    index 18x1 int64,int64->fp32 (144 144 > 72)
+ collective all_reduce 72 bytes fp32, 2 ranks tensor (72 > 72) pointwise 18x12 fp32 (864 > 864) +72t
    sum 18x12 fp32 cols (864 > 72)
+ collective all_reduce 72 bytes fp32, 2 ranks tensor (72 > 72) +72t pointwise 18x1 fp32 (72 > 72) +72t
    add 18x1 fp32,fp32->fp32 (72 72 > 72) div 18x12 fp32,fp32->fp32 broadcast (864 72 > 864)
+ pointwise x5 +72t fill 1x18 fp32 (> 72) +72t mul 1x18 fp32,fp32->fp32 (72 72 > 72) +4t +4t sum 1x18 fp32 (72 > 4)
    sum 1x18 fp32 (72 > 4) +4t div 1x1 fp32,fp32->fp32 (4 4 > 4) -4 -4 -72 -72 -72 -72 -72 -72 -144 -18 -72 -432
[backward head]
- pointwise x6; cast_backward; megatron_linear_backward
+ pointwise x6 +72t mul 1x18 fp32 broadcast (4 > 72) +144t arange 1x18 int64 (> 144) +72t
    cast 1x18 int64->fp32 (144 > 72) +72t index 1x18 int64,int64->fp32 (144 144 > 72) +72t
    add 1x18 fp32,fp32->fp32 (72 72 > 72) index 1x18 fp32,int64->fp32 (72 144 > 72)
    mul 18x12 fp32,fp32->fp32 broadcast (864 72 > 864) -72 -72 -72 -144 -72 -4 -144
+ cast_backward +432t cast 18x12 fp32->bf16 (864 > 432) -864
+ megatron_linear_backward +432t mm 18x12x12 nn bf16 (432 288 > 432)
+ collective event0 wait0@1 all_reduce 432 bytes bf16, 2 ranks tensor@1 (432 > 432) event1@1 +288g
    mm 12x12x18 tn bf16 (432 432 > 288) wait1@0 -432 -432
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
[backward embeddings]
- embedding_backward; fan_in_add
+ tensor_boundary_backward
+ masked_fill_backward +432t masked_fill 18x12 bf16,bool->bf16 strided (432 18 > 432) -432 -18
+ embedding_backward +288t embedding_dense_backward 18 of 12x12 bf16 (432 144 > 288) -432 -144
+ fan_in_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
- main_gradient_hook
+ main_gradient_hook add_ 12x12 fp32,bf16->fp32 (576 288 > 576) -288 -4 -4
    foreach_copy 16 tensors, 880 elements fp32 (576 336 48 48 864 72 288 48 48 48 480 40 480 48 48 48 288 168 24 24 432 36 144 24 24 24 240 20 240 24 24 24)
)";

TEST(MegatronSplitStep, LayersAreSplit) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .changed([](OddStep& step) { step.training.parallel.tensor = 2; }),
            kMegatronSplitStepListing1);
}

constexpr char kMegatronSplitStepListing2[] = R"(
[forward embeddings]
- dropout
[forward layers.0]
- layer_norm_module
[forward layers.0.attention]
- megatron_linear
[forward embeddings]
+ tensor_boundary +216t copy 1x108 bf16 (216 > 216) -432
+ dropout +108 +216 native_dropout 108 bf16 (216 > 216 108) -216
[forward layers.0]
+ layer_norm_module +216 +36 +36 native_layer_norm 9x12 bf16 (216 24 24 > 216 36 36)
+ megatron_linear +432t
[forward layers.0.attention]
+ collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) +648t mm 18x18x12 nt bf16 (432 432 > 648) -432
    +648t add 18x18 bf16,bf16->bf16 rows (648 36 > 648) -648
- tensor_boundary; collective
[forward layers.0]
- megatron_function
[forward layers.0.feed_forward]
- layer_norm_module; megatron_linear
+ tensor_boundary +216t
[forward layers.0.attention]
+ collective reduce_scatter 432 bytes bf16, 2 ranks tensor (432 > 216) -432
[forward layers.0]
+ megatron_function +108 +216
    triton_poi_fused_bias_dropout_add 9x12 bf16, 3 in, 2 out 150 instructions (216 216 24 > 216 108) -216
[forward layers.0.feed_forward]
+ layer_norm_module +216 +36 +36 native_layer_norm 9x12 bf16 (216 24 24 > 216 36 36)
+ megatron_linear +432t
+ collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) +360 mm 18x10x12 nt bf16 (432 240 > 360) -432
- tensor_boundary; collective; megatron_function
[forward head]
- layer_norm_module; megatron_linear
+ tensor_boundary +216t
[forward layers.0.feed_forward]
+ collective reduce_scatter 432 bytes bf16, 2 ranks tensor (432 > 216) -432
+ megatron_function +108 +216
    triton_poi_fused_bias_dropout_add 9x12 bf16, 3 in, 2 out 150 instructions (216 216 24 > 216 108) -216
[forward head]
+ layer_norm_module +216 +36 +36 native_layer_norm 9x12 bf16 (216 24 24 > 216 36 36)
+ megatron_linear +432t
+ collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) +432t mm 18x12x12 nt bf16 (432 288 > 432) -432
    +864 cast 18x12 bf16->fp32 (432 > 864)
[backward head]
- megatron_linear_backward; collective; layer_norm_backward
+ megatron_linear_backward +432t
+ collective event0 wait0@1 all_gather 432 bytes bf16, 2 ranks tensor@1 (216 > 432) event1@1 +432t
    mm 18x12x12 nn bf16 (432 288 > 432) wait1@0 +216t
+ collective event2 wait2@1 reduce_scatter 432 bytes bf16, 2 ranks tensor@1 (432 > 216) event3@1 +288g
    mm 12x12x18 tn bf16 (432 432 > 288) wait3@0 -432 -432 -432 -216
+ layer_norm_backward +216t +24g +24g native_layer_norm_backward 9x12 bf16 (216 216 24 36 36 > 216 24 24) -216 -216
    -36 -36
[backward layers.0.feed_forward]
- megatron_function_backward
+ megatron_function_backward +216t native_dropout_backward 9x12 bf16,bool->bf16 (216 108 > 216) +24g
    sum 9x12 bf16 rows (216 > 24) -108
- megatron_linear_backward
+ megatron_linear_backward +432t
+ collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) +360t mm 18x10x12 nn bf16 (432 240 > 360) +240g
    mm 12x10x18 tn bf16 (432 360 > 240) -432 -216 -360
- megatron_linear_backward; collective
+ megatron_linear_backward +432t
+ collective event4 wait4@1 all_gather 432 bytes bf16, 2 ranks tensor@1 (216 > 432) event5@1 +432t
    mm 18x12x10 nn bf16 (360 240 > 432) wait5@0 +216t
+ collective event6 wait6@1 reduce_scatter 432 bytes bf16, 2 ranks tensor@1 (432 > 216) event7@1 +240g
    mm 10x12x18 tn bf16 (360 432 > 240) wait7@0 -432 -432 -360 -216
- layer_norm_backward; fan_in_add
+ layer_norm_backward +216t +24g +24g native_layer_norm_backward 9x12 bf16 (216 216 24 36 36 > 216 24 24) -216 -216
    -36 -36
+ fan_in_add add_ 9x12 bf16,bf16->bf16 (216 216 > 216) -216
[backward layers.0]
- megatron_function_backward
+ megatron_function_backward +216t native_dropout_backward 9x12 bf16,bool->bf16 (216 108 > 216) +24g
    sum 9x12 bf16 rows (216 > 24) -108
[backward layers.0.attention]
- megatron_linear_backward
+ megatron_linear_backward +432t
+ collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) +216t mm 18x6x12 nn bf16 (432 144 > 216) +144g
    mm 12x6x18 tn bf16 (432 216 > 144) -432 -216 -216
- megatron_linear_backward; collective
+ megatron_linear_backward +432t
+ collective event8 wait8@1 all_gather 432 bytes bf16, 2 ranks tensor@1 (216 > 432) event9@1 +432t
    mm 18x12x18 nn bf16 (648 432 > 432) wait9@0 +216t
+ collective event10 wait10@1 reduce_scatter 432 bytes bf16, 2 ranks tensor@1 (432 > 216) event11@1 +432g
    mm 18x12x18 tn bf16 (648 432 > 432) wait11@0 -432 -432 +36g sum 18x18 bf16 rows (648 > 36) -648 -216
[backward layers.0]
- layer_norm_backward; fan_in_add
+ layer_norm_backward +216t +24g +24g native_layer_norm_backward 9x12 bf16 (216 216 24 36 36 > 216 24 24) -216 -216
    -36 -36
+ fan_in_add add_ 9x12 bf16,bf16->bf16 (216 216 > 216) -216
[backward embeddings]
- pointwise_backward
+ pointwise_backward +216t native_dropout_backward 9x12 bf16,bool->bf16 (216 108 > 216) -216 -108
+ tensor_boundary_backward +432t
+ collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) -216
- main_gradient_hook
+ main_gradient_hook add_ 12x12 fp32,bf16->fp32 (576 288 > 576) -288 -4 -4
[optimizer]
+ optimizer_op x7 +288t copy 1x72 fp32 (3520 > 288)
+ collective all_reduce 288 bytes fp32, 2 ranks tensor (288 > 288) copy 1x12 fp32 (288 > 3520)
    copy 1x12 fp32 (288 > 3520) copy 1x12 fp32 (288 > 3520) copy 1x12 fp32 (288 > 3520) copy 1x12 fp32 (288 > 3520)
    copy 1x12 fp32 (288 > 3520) -288
    foreach_copy 16 tensors, 880 elements fp32 (576 336 48 48 864 72 288 48 48 48 480 40 480 48 48 48 288 168 24 24 432 36 144 24 24 24 240 20 240 24 24 24)
)";

TEST(MegatronSplitStep, TheSequenceIsSplitToo) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .but([](OddStep& step) { step.training.parallel.tensor = 2; })
                .changed([](OddStep& step) { step.training.parallel.sequence_parallel = true; }),
            kMegatronSplitStepListing2);
}

TEST(MegatronSplitStep, TheHostMayWaitForEachExchange) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .but([](OddStep& step) { step.training.parallel.tensor = 2; })
                .changed([](OddStep& step) { step.training.parallel.async_all_reduce = false; }),
            R"(
[forward layers.0.attention]
- megatron_linear
+ tensor_boundary; tensor_boundary
+ linear +648t addmm 18x18x12 nt bf16 (432 432 36 > 648)
- megatron_linear
+ linear +432t mm 18x12x6 nt bf16 (216 144 > 432)
+ tensor_boundary
[forward layers.0.feed_forward]
- megatron_linear
+ tensor_boundary; tensor_boundary
+ linear +360 mm 18x10x12 nt bf16 (432 240 > 360)
- megatron_linear
+ linear +432t mm 18x12x10 nt bf16 (360 240 > 432)
+ tensor_boundary
[forward head]
- megatron_linear
+ tensor_boundary; tensor_boundary
+ linear +432t mm 18x12x12 nt bf16 (432 288 > 432) +864 cast 18x12 bf16->fp32 (432 > 864)
[backward head]
- megatron_linear_backward; collective
+ view_backward
+ mm_backward +288t mm 12x12x18 tn bf16 (432 432 > 288) +432t mm 18x12x12 nn bf16 (432 288 > 432) -432 -432
+ view_backward; view_backward; tensor_boundary_backward
+ collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
[backward layers.0.feed_forward]
- megatron_linear_backward
+ tensor_boundary_backward; view_backward
+ mm_backward +240g mm 12x10x18 tn bf16 (432 360 > 240) +360t mm 18x10x12 nn bf16 (432 240 > 360) -432 -360
+ view_backward; view_backward
- megatron_linear_backward; collective
+ view_backward
+ mm_backward +240g mm 10x12x18 tn bf16 (360 432 > 240) +432t mm 18x12x10 nn bf16 (360 240 > 432) -360 -432
+ view_backward; view_backward; tensor_boundary_backward
+ collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
[backward layers.0.attention]
- megatron_linear_backward
+ tensor_boundary_backward; view_backward
+ mm_backward +144g mm 12x6x18 tn bf16 (432 216 > 144) +216t mm 18x6x12 nn bf16 (432 144 > 216) -432 -216
+ view_backward; view_backward
- megatron_linear_backward; collective; accumulate_grad; main_gradient_hook
+ view_backward
+ addmm_backward +432t mm 18x12x18 nn bf16 (648 432 > 432) +432g mm 18x12x18 tn bf16 (648 432 > 432) +36g
    sum 18x18 bf16 rows (648 > 36) -648 -432
+ view_backward; accumulate_grad
+ main_gradient_hook add_ 18x12 fp32,bf16->fp32 (864 432 > 864) -432
+ view_backward; tensor_boundary_backward
+ collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
[backward embeddings]
- fan_in_add
+ fan_in_add +288g add 12x12 bf16,bf16->bf16 (288 288 > 288) -288 -288
)");
}

}  // namespace
}  // namespace ridgeline
