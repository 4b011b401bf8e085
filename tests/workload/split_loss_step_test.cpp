// The loss of scores that are split over ranks, and what a split llama may do otherwise.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

TEST(SplitLossStep, TheLossIsOfSplitScores) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                  step.model.vocabulary = 18;
                  step.training.sequence_length = 6;
                })
                .but([](OddStep& step) { step.training.parallel.tensor = 2; })
                .changed([](OddStep& step) { step.training.parallel.loss_parallel = true; }),
            R"(
[forward head]
- dtensor_op x5; dtensor_redistribute; collective
+ dtensor_op x5 +648t cast 18x9 bf16->fp32 (324 > 648)
+ dtensor_op x2
[forward head.loss]
- cross_entropy
+ dtensor_op x3
[forward head]
+ pointwise x20 +72t sum 18x9 fp32 cols (648 > 72)
+ dtensor_redistribute +72t copy 1x18 fp32 (72 > 72)
+ collective event6 wait6@1 all_reduce 72 bytes fp32, 2 ranks tensor@1 (72 > 72) event7@1 wait7@0 -72 +648t
    add 18x9 fp32,fp32->fp32 broadcast (648 72 > 648) +648t pointwise 18x9 fp32 (648 > 648) +72t
    sum 18x9 fp32 cols (648 > 72)
+ dtensor_redistribute +72t copy 1x18 fp32 (72 > 72)
+ collective event8 wait8@1 all_reduce 72 bytes fp32, 2 ranks tensor@1 (72 > 72) event9@1 wait9@0 -72 -648 +72t
    pointwise 18x1 fp32 (72 > 72) +648 add 18x9 fp32,fp32->fp32 broadcast (648 72 > 648) -72 -72 -648 -72 +144t
    pointwise 1x18 int64 (144 > 144) +144t pointwise 1x18 int64 (144 > 144) -144 +144t
    pointwise 1x18 int64 (144 > 144) -144 +144t pointwise 1x18 int64 (144 > 144) -144 +144t
    pointwise 1x18 int64 (144 > 144) -144 +144t pointwise 1x18 int64 (144 > 144) -144 +72t
    gather 18x1 int64->fp32 (144 > 72)
+ dtensor_redistribute +72t copy 1x18 fp32 (72 > 72)
+ collective event10 wait10@1 all_reduce 72 bytes fp32, 2 ranks tensor@1 (72 > 72) event11@1 wait11@0 +4t
    sum 1x18 fp32 (72 > 4) -72 -72 -144 -648 -324
[backward head.loss]
- nll_backward; log_softmax_backward
+ dtensor_op_backward; dtensor_op_backward x2
[backward head]
+ pointwise x14 +648t fill 18x9 fp32 (> 648) +144t pointwise 1x18 int64 (144 > 144) +144t
    pointwise 1x18 int64 (144 > 144) -144 +144t pointwise 1x18 int64 (144 > 144) -144 +144t
    pointwise 1x18 int64 (144 > 144) -144 +144t pointwise 1x18 int64 (144 > 144) -144 +144t
    pointwise 1x18 int64 (144 > 144) -144 +72t pointwise 1x18 int64->fp32 (144 > 72)
    index 1x18 int64->fp32 (144 > 72) -72 +648t pointwise 18x9 fp32 (648 > 648) +648t
    add 18x9 fp32,fp32->fp32 (648 648 > 648) -648 +72t mul 18x1 fp32 broadcast (4 > 72) +648t
    mul 18x9 fp32,fp32->fp32 broadcast (648 72 > 648) -72 -648 -144 -648 -4 -648
[backward head.loss]
- cast_backward
[backward head]
- dtensor_op_backward
+ dtensor_op_backward
+ cast_backward +324t cast 18x9 fp32->bf16 (648 > 324) -648
+ dtensor_op_backward
- collective
+ collective event12 wait12@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event13@1 wait13@0 -1296
[backward layers.0]
- collective
+ collective event14 wait14@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event15@1 wait15@0 -1296
- collective
+ collective event16 wait16@1 all_reduce 1296 bytes bf16, 2 ranks tensor@1 (1296 > 1296) event17@1 wait17@0 -1296
)");
}

constexpr char kSplitLossStepListing1[] = R"(
[forward layers.0]
- collective
[forward layers.0.attention]
+ collective event2 wait2@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event3@1 wait3@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
+ dtensor_redistribute +1296t
+ collective event4 wait4@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event5@1 wait5@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
+ dtensor_redistribute +1296t
+ collective event6 wait6@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event7@1 wait7@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- collective
+ collective event8 wait8@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event9@1 wait9@0 -1296
    -1296 -648
[forward layers.0]
- collective
[forward layers.0.feed_forward]
+ collective event10 wait10@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event11@1 wait11@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
+ dtensor_redistribute +1296t
+ collective event12 wait12@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event13@1 wait13@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- collective
+ collective event14 wait14@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event15@1 wait15@0 -1296
    -1296 -648
[forward head]
- collective
+ collective event16 wait16@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event17@1 wait17@0 +1296
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- collective
+ collective event18 wait18@1 all_gather 648 bytes bf16, 2 ranks tensor@1 (324 > 648) event19@1 wait19@0 +648t
    copy 18x18 bf16 permuted (648 > 648) -648 -324 +1296t cast 18x18 bf16->fp32 (648 > 1296)
[backward head]
- collective
+ collective event20 wait20@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event21@1 wait21@0 -1296
    -1296
[backward layers.0.feed_forward]
- collective
+ collective event22 wait22@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event23@1 wait23@0 +1296t
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- mm_backward
+ mm_backward +720g mm 10x36x18 tn bf16 (360 1296 > 720) +1296t mm 18x36x10 nn bf16 (360 720 > 1296) -360 -1296
+ dtensor_op_backward
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event24 wait24@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event25@1 wait25@0 -1296
    -1296
- fan_in_add
[backward layers.0]
- collective
[backward layers.0.feed_forward]
+ collective event26 wait26@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event27@1 wait27@0 -1296
    -1296
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
[backward layers.0.attention]
- collective
+ collective event28 wait28@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event29@1 wait29@0 +1296t
    copy 18x36 bf16 permuted (1296 > 1296) -1296
- mm_backward
+ mm_backward +432g mm 6x36x18 tn bf16 (216 1296 > 432) +1296t mm 18x36x6 nn bf16 (216 432 > 1296) -216 -1296
+ dtensor_op_backward
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event30 wait30@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event31@1 wait31@0 -1296
    -1296
- mm_backward
+ mm_backward +432g mm 6x36x18 tn bf16 (216 1296 > 432) +1296t mm 18x36x6 nn bf16 (216 432 > 1296) -216 -1296
- fan_in_add
+ dtensor_op_backward
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
+ collective event32 wait32@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event33@1 wait33@0 -1296
    -1296
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
- fan_in_add
[backward layers.0]
- collective
[backward layers.0.attention]
+ collective event34 wait34@1 reduce_scatter 1296 bytes bf16, 2 ranks tensor@1 (1296 > 648) event35@1 wait35@0 -1296
    -1296
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
[backward embeddings]
- collective
+ collective event36 wait36@1 all_gather 1296 bytes bf16, 2 ranks tensor@1 (648 > 1296) event37@1 wait37@0 +1296t
    copy 18x36 bf16 permuted (1296 > 1296) -1296 -648
[backward]
- collective
+ collective event38 wait38@1 all_reduce 72 bytes bf16, 2 ranks tensor@1 (72 > 72) event39@1 wait39@0 -72
- collective
+ collective event40 wait40@1 all_reduce 72 bytes bf16, 2 ranks tensor@1 (72 > 72) event41@1 wait41@0 -72
- collective
+ collective event42 wait42@1 all_reduce 72 bytes bf16, 2 ranks tensor@1 (72 > 72) event43@1 wait43@0 -72
)";

TEST(SplitLossStep, EachProjectionMayGatherItsOwnInput) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                  step.model.vocabulary = 18;
                  step.training.sequence_length = 6;
                })
                .but([](OddStep& step) {
                  step.training.parallel.tensor = 2;
                  step.training.parallel.sequence_parallel = true;
                })
                .changed([](OddStep& step) { step.training.parallel.prepared_inputs = false; }),
            kSplitLossStepListing1);
}

constexpr char kSplitLossStepListing2[] = R"(
[forward embeddings]
- dtensor_redistribute
+ dtensor_redistribute +1296t copy 18x36 bf16 permuted (1296 > 1296) +648t
[forward layers.0]
- layer_norm_module; dtensor_op
+ pointwise x6 +1296 cast 9x36 bf16->fp32 (648 > 1296) +1296t pow 9x36 fp32 (1296 > 1296) +36t
    mean 9x36 fp32 (1296 > 36) -1296 +36t add 9x1 fp32 (36 > 36) +36 sqrt 9x1 fp32 (36 > 36) -36 +1296t
    mul 9x36 fp32,fp32->fp32 broadcast (1296 36 > 1296) +648 cast 9x36 fp32->bf16 (1296 > 648) +648t
    mul 9x36 bf16,bf16->bf16 rows (72 648 > 648) -1296 -36
+ dtensor_op x8
- pointwise; layer_norm_module; dtensor_op
+ pointwise +648t add 9x36 bf16,bf16->bf16 (648 648 > 648) -648
+ pointwise x6 +1296 cast 9x36 bf16->fp32 (648 > 1296) +1296t pow 9x36 fp32 (1296 > 1296) +36t
    mean 9x36 fp32 (1296 > 36) -1296 +36t add 9x1 fp32 (36 > 36) +36 sqrt 9x1 fp32 (36 > 36) -36 +1296t
    mul 9x36 fp32,fp32->fp32 broadcast (1296 36 > 1296) +648 cast 9x36 fp32->bf16 (1296 > 648) +648t
    mul 9x36 bf16,bf16->bf16 rows (72 648 > 648) -1296 -36
+ dtensor_op x8
- pointwise
[forward final_norm]
- layer_norm_module; dtensor_op
[forward layers.0]
+ pointwise +648t add 9x36 bf16,bf16->bf16 (648 648 > 648) -648 -648
[forward final_norm]
+ pointwise x6 +1296 cast 9x36 bf16->fp32 (648 > 1296) +1296t pow 9x36 fp32 (1296 > 1296) +36t
    mean 9x36 fp32 (1296 > 36) -1296 +36t add 9x1 fp32 (36 > 36) +36 sqrt 9x1 fp32 (36 > 36) -36 +1296t
    mul 9x36 fp32,fp32->fp32 broadcast (1296 36 > 1296) +648 cast 9x36 fp32->bf16 (1296 > 648) +648t
    mul 9x36 bf16,bf16->bf16 rows (72 648 > 648) -1296 -36
+ dtensor_op x8 -648 -648
[backward final_norm]
- layer_norm_backward
+ dtensor_op_backward x7
+ pointwise_backward +648t mul 9x36 bf16,bf16->bf16 rows (648 72 > 648) +648t
    mul 9x36 bf16,bf16->bf16 (648 648 > 648) +72g sum 9x36 bf16 rows (648 > 72) -648 -648 -648
+ cast_backward +1296t cast 9x36 bf16->fp32 (648 > 1296) -648
+ pointwise_backward +1296t mul 9x36 fp32,fp32->fp32 (1296 1296 > 1296) +1296t
    mul 9x36 fp32,fp32->fp32 broadcast (1296 36 > 1296) +36t sum 9x36 fp32 cols (1296 > 36) -1296 -1296
+ pointwise_backward +36t pow 9x1 fp32 (36 > 36) +36t scale 9x1 fp32 (36 > 36) +36t
    mul 9x1 fp32,fp32->fp32 (36 36 > 36) -36 -36 -36 -36
+ pointwise_backward +1296t div 9x36 fp32 strided (36 > 1296) -36
+ pointwise_backward +1296t copy 1x324 fp32 (1296 > 1296) +1296t scale 9x36 fp32 (1296 > 1296) +1296t
    mul 9x36 fp32,fp32->fp32 (1296 1296 > 1296) -1296 -1296 -1296 -1296
+ fan_in_add add_ 9x36 fp32,fp32->fp32 (1296 1296 > 1296) -1296
+ cast_backward +648t cast 9x36 fp32->bf16 (1296 > 648) -1296
+ add_backward
[backward layers.0]
- layer_norm_backward; fan_in_add
+ dtensor_op_backward x7
+ pointwise_backward +648t mul 9x36 bf16,bf16->bf16 rows (648 72 > 648) +648t
    mul 9x36 bf16,bf16->bf16 (648 648 > 648) +72g sum 9x36 bf16 rows (648 > 72) -648 -648 -648
+ cast_backward +1296t cast 9x36 bf16->fp32 (648 > 1296) -648
+ pointwise_backward +1296t mul 9x36 fp32,fp32->fp32 (1296 1296 > 1296) +1296t
    mul 9x36 fp32,fp32->fp32 broadcast (1296 36 > 1296) +36t sum 9x36 fp32 cols (1296 > 36) -1296 -1296
+ pointwise_backward +36t pow 9x1 fp32 (36 > 36) +36t scale 9x1 fp32 (36 > 36) +36t
    mul 9x1 fp32,fp32->fp32 (36 36 > 36) -36 -36 -36 -36
+ pointwise_backward +1296t div 9x36 fp32 strided (36 > 1296) -36
+ pointwise_backward +1296t copy 1x324 fp32 (1296 > 1296) +1296t scale 9x36 fp32 (1296 > 1296) +1296t
    mul 9x36 fp32,fp32->fp32 (1296 1296 > 1296) -1296 -1296 -1296 -1296
+ fan_in_add add_ 9x36 fp32,fp32->fp32 (1296 1296 > 1296) -1296
+ cast_backward +648t cast 9x36 fp32->bf16 (1296 > 648) -1296
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
+ add_backward
- layer_norm_backward; fan_in_add
+ dtensor_op_backward x7
+ pointwise_backward +648t mul 9x36 bf16,bf16->bf16 rows (648 72 > 648) +648t
    mul 9x36 bf16,bf16->bf16 (648 648 > 648) +72g sum 9x36 bf16 rows (648 > 72) -648 -648 -648
+ cast_backward +1296t cast 9x36 bf16->fp32 (648 > 1296) -648
+ pointwise_backward +1296t mul 9x36 fp32,fp32->fp32 (1296 1296 > 1296) +1296t
    mul 9x36 fp32,fp32->fp32 broadcast (1296 36 > 1296) +36t sum 9x36 fp32 cols (1296 > 36) -1296 -1296
+ pointwise_backward +36t pow 9x1 fp32 (36 > 36) +36t scale 9x1 fp32 (36 > 36) +36t
    mul 9x1 fp32,fp32->fp32 (36 36 > 36) -36 -36 -36 -36
+ add_backward
+ pointwise_backward +1296t div 9x36 fp32 strided (36 > 1296) -36
+ pointwise_backward +1296t copy 1x324 fp32 (1296 > 1296) +1296t scale 9x36 fp32 (1296 > 1296) +1296t
    mul 9x36 fp32,fp32->fp32 (1296 1296 > 1296) -1296 -1296 -1296 -1296
+ fan_in_add add_ 9x36 fp32,fp32->fp32 (1296 1296 > 1296) -1296
+ cast_backward +648t cast 9x36 fp32->bf16 (1296 > 648) -1296
+ fan_in_add add_ 9x36 bf16,bf16->bf16 (648 648 > 648) -648
)";

TEST(SplitLossStep, NormsMayBeOfManyOperations) {
  EXPECT_EQ(OddStep(ModelFamily::llama)
                .but([](OddStep& step) {
                  step.model.plain = true;
                  step.model.fused_norms = true;
                  step.model.vocabulary = 18;
                  step.training.sequence_length = 6;
                })
                .but([](OddStep& step) {
                  step.training.parallel.tensor = 2;
                  step.training.parallel.sequence_parallel = true;
                })
                .changed([](OddStep& step) { step.model.fused_norms = false; }),
            kSplitLossStepListing2);
}

}  // namespace
}  // namespace ridgeline
