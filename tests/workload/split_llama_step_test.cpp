// Layers of a llama that are split over ranks by DTensors.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kSplitLlamaStepListing1[] = R"(
[forward embeddings]
- embedding
+ pointwise x5
+ masked_fill +18t eq 3x6 int64->bool (144 > 18) +18t eq 3x6 int64->bool (144 > 18) +18
    pointwise 3x6 bool,bool->bool (18 18 > 18) +144t copy 1x18 int64 (144 > 144) +144 add 3x6 int64 (144 > 144)
    masked_fill 3x6 int64,bool->int64 (144 18 > 144) -144 -18 -18
+ embedding +1296t embedding 18 of 9x36 bf16 (648 144 > 1296)
+ masked_fill masked_fill 18x36 bf16,bool->bf16 broadcast (1296 18 > 1296)
+ dtensor_op
+ dtensor_redistribute +1296 copy 1x648 bf16 (1296 > 1296)
+ collective event0 wait0@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event1@1 wait1@0 -1296
[forward layers.0.attention]
- linear
+ dtensor_op x12
+ linear +648t mm 18x18x36 nt bf16 (1296 1296 > 648)
+ dtensor_op x5
- linear
+ linear +216t mm 18x6x36 nt bf16 (1296 432 > 216)
+ dtensor_op x5
- linear
+ linear +216 mm 18x6x36 nt bf16 (1296 432 > 216)
+ dtensor_op x5
- concatenate
+ concatenate +648t mul 54x6 bf16,bf16->bf16 broadcast (648 72 > 648) +324t scale 54x3 bf16 strided (324 > 324) +648t
    cat 54x3 bf16 x2 joined (324 324 > 648) -324 +648t mul 9x36 bf16,bf16->bf16 rows (648 72 > 648) -648 +648
    add 54x6 bf16,bf16->bf16 strided (648 648 > 648) -648 -648
- concatenate; attention_fused
+ concatenate +216t mul 3x36 bf16,bf16->bf16 rows (216 72 > 216) +108t scale 18x3 bf16 strided (108 > 108) +216t
    cat 18x3 bf16 x2 joined (108 108 > 216) -108 +216t mul 3x36 bf16,bf16->bf16 rows (216 72 > 216) -216 +216
    add 18x6 bf16,bf16->bf16 (216 216 > 216) -216 -216 -648 -216
+ attention_fused +648 +216 +16 +8 flash_attention 3x3x6x6 causal bf16 kv1 (648 216 216 > 648 216)
- linear
+ linear +1296t mm 18x36x18 nt bf16 (648 1296 > 1296)
+ dtensor_op x5
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event2 wait2@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event3@1 wait3@0 -1296
[forward layers.0.feed_forward]
- linear; pointwise; linear; pointwise; linear
+ dtensor_op x12
+ linear +360 mm 18x10x36 nt bf16 (1296 720 > 360)
+ dtensor_op x5
+ pointwise +360 silu 18x10 bf16 (360 > 360)
+ linear +360 mm 18x10x36 nt bf16 (1296 720 > 360)
+ dtensor_op x5
+ pointwise +360 mul 18x10 bf16,bf16->bf16 (360 360 > 360)
+ linear +1296t mm 18x36x10 nt bf16 (360 720 > 1296)
+ dtensor_op x5
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event4 wait4@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event5@1 wait5@0 -1296
[forward final_norm]
- view
[forward head]
- linear
+ dtensor_op x12
+ linear +324t mm 18x9x36 nt bf16 (1296 648 > 324)
+ dtensor_op x5
+ dtensor_redistribute +648t
+ collective event6 wait6@1 all_gather 648 bytes bf16, 2 ranks tensor@1 (324 > 648) event7@1 wait7@0 +648t
    copy 18x18 bf16 permuted (648 > 648) -648 -324 +1296t cast 18x18 bf16->fp32 (648 > 1296)
[backward head]
+ dtensor_op_backward +324t copy 18x9 bf16 permuted (648 > 324) -648
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +648g mm 9x36x18 tn bf16 (324 1296 > 648) +1296t mm 18x36x9 nn bf16 (324 648 > 1296) -324 -1296
- view_backward
+ dtensor_op_backward
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event8 wait8@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event9@1 wait9@0 -1296
[backward final_norm]
+ dtensor_op_backward; dtensor_op_backward; dtensor_op_backward x4
[backward layers.0.feed_forward]
- mm_backward
+ mm_backward +720g mm 36x10x18 tn bf16 (1296 360 > 720) +360t mm 18x10x36 nn bf16 (1296 720 > 360) -360
- pointwise_backward
+ pointwise_backward +360t mul 18x10 bf16,bf16->bf16 (360 360 > 360) +360t mul 18x10 bf16,bf16->bf16 (360 360 > 360)
    -360 -360 -360
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +720g mm 10x36x18 tn bf16 (360 1296 > 720) +1296t mm 18x36x10 nn bf16 (360 720 > 1296) -360
- pointwise_backward
+ pointwise_backward +360t silu_backward 18x10 bf16,bf16->bf16 (360 360 > 360) -360 -360
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +720g mm 10x36x18 tn bf16 (360 1296 > 720) +1296t mm 18x36x10 nn bf16 (360 720 > 1296) -360 -1296
+ dtensor_op_backward
[backward layers.0]
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event10 wait10@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event11@1 wait11@0 -1296
+ dtensor_op_backward; dtensor_op_backward; dtensor_op_backward x4
[backward layers.0.attention]
- mm_backward
+ mm_backward +1296g mm 36x18x18 tn bf16 (1296 648 > 1296) +648t mm 18x18x36 nn bf16 (1296 1296 > 648)
- attention_fused_backward
+ attention_fused_backward +648t +216t +216t
    flash_attention_backward 3x3x6x6 causal bf16 kv1 (648 648 216 216 648 216 > 648 216 216) -648 -216 -648 -216 -216
    -648 -8 -16
- pointwise_backward
+ pointwise_backward +216t mul 3x36 bf16,bf16->bf16 rows (216 72 > 216)
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward; fan_in_add
+ pointwise_backward +108t scale 18x3 bf16 strided (108 > 108)
+ pointwise_backward +216t fill 18x6 bf16 (> 216) copy 18x3 bf16 permuted (108 > 216) -108
+ pointwise_backward +216t fill 18x6 bf16 (> 216) copy 18x3 bf16 permuted (108 > 216) -216
+ fan_in_add add_ 18x6 bf16,bf16->bf16 (216 216 > 216) -216
+ pointwise_backward +216t mul 3x36 bf16,bf16->bf16 rows (216 72 > 216) -216
+ fan_in_add add_ 18x6 bf16,bf16->bf16 (216 216 > 216) -216
- pointwise_backward
+ pointwise_backward +648t mul 54x6 bf16,bf16->bf16 broadcast (648 72 > 648) -72
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward; fan_in_add
+ pointwise_backward +324t scale 54x3 bf16 strided (324 > 324)
+ pointwise_backward +648t fill 54x6 bf16 (> 648) copy 54x3 bf16 permuted (324 > 648) -324
+ pointwise_backward +648t fill 54x6 bf16 (> 648) copy 54x3 bf16 permuted (324 > 648) -648
+ fan_in_add add_ 54x6 bf16,bf16->bf16 (648 648 > 648) -648
+ pointwise_backward +648t mul 54x6 bf16,bf16->bf16 broadcast (648 72 > 648) -648 -72
+ fan_in_add add_ 54x6 bf16,bf16->bf16 strided (648 648 > 648) -648
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +432g mm 6x36x18 tn bf16 (216 1296 > 432) +1296t mm 18x36x6 nn bf16 (216 432 > 1296) -216
- view_backward_copy
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +432g mm 6x36x18 tn bf16 (216 1296 > 432) +1296t mm 18x36x6 nn bf16 (216 432 > 1296) -216
- view_backward_copy
+ view_backward_copy +648t copy 54x6 bf16 permuted (648 > 648) -648
+ dtensor_op_backward; dtensor_op_backward x4
- mm_backward
+ mm_backward +1296g mm 18x36x18 tn bf16 (648 1296 > 1296) +1296t mm 18x36x18 nn bf16 (648 1296 > 1296) -648 -1296
+ dtensor_op_backward
[backward layers.0]
+ dtensor_redistribute +1296t copy 1x648 bf16 (1296 > 1296)
+ collective event12 wait12@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event13@1 wait13@0 -1296
[backward embeddings]
- embedding_backward
+ dtensor_op_backward; dtensor_op_backward
+ masked_fill_backward +1296t masked_fill 18x36 bf16,bool->bf16 broadcast (1296 18 > 1296) -1296 -18
+ embedding_backward +648g embedding_dense_backward 18 of 9x36 bf16 (1296 144 > 648) -1296 -144
- per_parameter_zero_grad x12
+ per_parameter_shard x12
+ per_parameter_zero_grad x12 -648 -72 -1296 -432 -432 -1296 -72 -720 -720 -720 -72 -648
)";

TEST(SplitLlamaStep, LayersAreSplit) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                  step.model.vocabulary = 18;
                  step.training.sequence_length = 6;
                })
                .changed([](OddStep& step) { step.training.parallel.tensor = 2; }),
            kSplitLlamaStepListing1);
}

constexpr char kSplitLlamaStepListing2[] = R"(
[forward embeddings]
- dtensor_redistribute; collective
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648
+ collective event0 wait0@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event1@1 wait1@0 -1296
    -1296
[forward layers.0]
- layer_norm_module; dtensor_op x12
+ layer_norm_module +648t +36 rms_norm 9x36 bf16 (648 72 > 648 36)
+ dtensor_op
+ dtensor_redistribute +1296t
+ collective event2 wait2@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event3@1 wait3@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296 -648
[forward layers.0.attention]
- dtensor_redistribute; collective
[forward layers.0]
- pointwise; layer_norm_module; dtensor_op x12
[forward layers.0.attention]
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event4 wait4@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event5@1 wait5@0 -1296
    -1296
[forward layers.0]
+ pointwise +648 add 9x36 bf16,bf16->bf16 (648 648 > 648) -648
+ layer_norm_module +648t +36 rms_norm 9x36 bf16 (648 72 > 648 36)
+ dtensor_op
+ dtensor_redistribute +1296t
+ collective event6 wait6@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event7@1 wait7@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296 -648
[forward layers.0.feed_forward]
- dtensor_redistribute; collective
[forward layers.0]
- pointwise
[forward final_norm]
- layer_norm_module; dtensor_op x12
[forward layers.0.feed_forward]
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event8 wait8@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event9@1 wait9@0 -1296
    -1296
[forward layers.0]
+ pointwise +648 add 9x36 bf16,bf16->bf16 (648 648 > 648) -648
[forward final_norm]
+ layer_norm_module +648t +36 rms_norm 9x36 bf16 (648 72 > 648 36)
+ dtensor_op
+ dtensor_redistribute +1296t
[forward head]
+ collective event10 wait10@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event11@1 wait11@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- collective
+ collective event12 wait12@1 all_gather 648 bytes bf16, 2 ranks tensor@1 (324 > 648) event13@1 wait13@0 +648t
    copy 18x18 bf16 permuted (648 > 648) -648 -324 +1296t cast 18x18 bf16->fp32 (648 > 1296)
[forward head.loss]
- cross_entropy
+ cross_entropy +1296 log_softmax 18x18 fp32 (1296 > 1296) +4t +4 nll_loss 18x18 fp32 (1296 144 > 4) -1296 -648 -648
[backward head]
- dtensor_redistribute; collective
[backward final_norm]
- layer_norm_backward
[backward head]
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event14 wait14@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event15@1 wait15@0 -1296
    -1296
+ dtensor_op_backward
[backward final_norm]
+ layer_norm_backward +648t +72g rms_norm_backward 9x36 bf16 (648 648 72 36 > 648 72) -648 -648 -36
+ dtensor_redistribute +1296t
[backward layers.0.feed_forward]
+ collective event16 wait16@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event17@1 wait17@0 +1296t
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- mm_backward
+ mm_backward +720g mm 36x10x18 tn bf16 (1296 360 > 720) +360t mm 18x10x36 nn bf16 (1296 720 > 360) -1296 -360
[backward layers.0]
- dtensor_redistribute; collective; layer_norm_backward; fan_in_add
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event18 wait18@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event19@1 wait19@0 -1296
    -1296
+ dtensor_op_backward
+ layer_norm_backward +648t +72g rms_norm_backward 9x36 bf16 (648 648 72 36 > 648 72) -648 -648 -36
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
+ dtensor_redistribute +1296t
[backward layers.0.attention]
+ collective event20 wait20@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event21@1 wait21@0 +1296t
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- mm_backward
+ mm_backward +1296g mm 36x18x18 tn bf16 (1296 648 > 1296) +648t mm 18x18x36 nn bf16 (1296 1296 > 648) -1296
[backward layers.0]
- dtensor_redistribute; collective; layer_norm_backward; fan_in_add
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event22 wait22@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event23@1 wait23@0 -1296
    -1296
+ dtensor_op_backward
+ layer_norm_backward +648t +72g rms_norm_backward 9x36 bf16 (648 648 72 36 > 648 72) -648 -648 -36
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
+ dtensor_redistribute +1296t
[backward embeddings]
+ collective event24 wait24@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event25@1 wait25@0 +1296t
    copy 18x36 bf16 permuted (1296 > 1296) -1296 -648
[backward]
+ dtensor_redistribute +72t copy 1x36 bf16 (72 > 72)
+ collective event26 wait26@1 all_reduce 72 bytes bf16, 2 ranks tensor@1 (72 > 72) event27@1 wait27@0 -72
+ dtensor_redistribute +72t copy 1x36 bf16 (72 > 72)
+ collective event28 wait28@1 all_reduce 72 bytes bf16, 2 ranks tensor@1 (72 > 72) event29@1 wait29@0 -72
+ dtensor_redistribute +72t copy 1x36 bf16 (72 > 72)
+ collective event30 wait30@1 all_reduce 72 bytes bf16, 2 ranks tensor@1 (72 > 72) event31@1 wait31@0 -72
)";

TEST(SplitLlamaStep, TheSequenceIsSplitToo) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                  step.model.vocabulary = 18;
                  step.training.sequence_length = 6;
                })
                .but([](OddStep& step) { step.training.parallel.tensor = 2; })
                .changed([](OddStep& step) { step.training.parallel.sequence_parallel = true; }),
            kSplitLlamaStepListing2);
}

}  // namespace
}  // namespace ridgeline
