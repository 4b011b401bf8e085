// What ranks that see other data do beside the step of one GPU.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

TEST(DataParallelStep, BucketsAreReducedBesideTheBackwardPass) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) { step.training.parallel.data = 2; }), R"(
+ ddp_forward
[backward final_norm]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 1x12 bf16 (24 > 24)
[backward layers.0.feed_forward]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 12x20 bf16 (480 > 480)
+ ddp_hook scale 1x20 bf16 (40 > 40)
+ ddp_hook scale 20x12 bf16 (480 > 480)
[backward layers.0]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 1x12 bf16 (24 > 24)
[backward layers.0.attention]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 12x12 bf16 (288 > 288)
+ ddp_hook scale 1x36 bf16 (72 > 72)
+ ddp_hook scale 36x12 bf16 (864 > 864)
[backward layers.0]
+ ddp_hook scale 1x12 bf16 (24 > 24)
+ ddp_hook scale 1x12 bf16 (24 > 24)
[backward embeddings]
+ ddp_hook scale 7x12 bf16 (168 > 168)
- accumulate_grad
+ accumulate_grad
+ ddp_hook scale 17x12 bf16 (408 > 408)
+ collective event0 wait0@1 all_reduce 2992 bytes bf16, 2 ranks data@1 (2992 > 2992) event1@1 wait1@0
[backward]
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x240 bf16 (480 > 480)
+ ddp_copy_back copy 1x20 bf16 (40 > 40)
+ ddp_copy_back copy 1x240 bf16 (480 > 480)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x144 bf16 (288 > 288)
+ ddp_copy_back copy 1x36 bf16 (72 > 72)
+ ddp_copy_back copy 1x432 bf16 (864 > 864)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x12 bf16 (24 > 24)
+ ddp_copy_back copy 1x84 bf16 (168 > 168)
+ ddp_copy_back copy 1x204 bf16 (408 > 408) -2 -2
)");
}

constexpr char kDataParallelStepListing1[] = R"(
[backward layers.0.feed_forward]
+ collective event0 wait0@1 all_reduce 1072 bytes bf16, 2 ranks data@1 (1072 > 1072) event1@1
[backward layers.0.attention]
+ collective event2 wait2@1 all_reduce 1296 bytes bf16, 2 ranks data@1 (1296 > 1296) event3@1
[backward embeddings]
- collective
+ collective event4 wait4@1 all_reduce 624 bytes bf16, 2 ranks data@1 (624 > 624) event5@1 wait1@0
[backward]
- ddp_copy_back
+ ddp_copy_back copy 1x240 bf16 (480 > 480) wait3@0
- ddp_copy_back
+ ddp_copy_back copy 1x432 bf16 (864 > 864) wait5@0
)";

constexpr char kDataParallelStepListing2[] = R"(
[backward final_norm]
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
[backward layers.0.feed_forward]
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
- ddp_hook
+ ddp_hook scale 12x20 bf16 (480 > 480) -480
- ddp_hook
+ ddp_hook scale 1x20 bf16 (40 > 40) -40
- ddp_hook
+ ddp_hook scale 20x12 bf16 (480 > 480) -480
[backward layers.0]
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
[backward layers.0.attention]
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
- ddp_hook
+ ddp_hook scale 12x12 bf16 (288 > 288) -288
- ddp_hook
+ ddp_hook scale 1x36 bf16 (72 > 72) -72
- ddp_hook
+ ddp_hook scale 36x12 bf16 (864 > 864) -864
[backward layers.0]
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
- ddp_hook
+ ddp_hook scale 1x12 bf16 (24 > 24) -24
[backward embeddings]
- ddp_hook
+ ddp_hook scale 7x12 bf16 (168 > 168) -168
- ddp_hook; collective
[backward]
- ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back;
    ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back;
    ddp_copy_back; ddp_copy_back; per_parameter_zero_grad x16
[backward embeddings]
+ ddp_hook scale 17x12 bf16 (408 > 408) -408
+ collective event0 wait0@1 all_reduce 2992 bytes bf16, 2 ranks data@1 (2992 > 2992) event1@1 wait1@0 -2 -2
+ per_parameter_zero_grad x16
)";

constexpr char kDataParallelStepListing3[] = R"(
[backward final_norm]
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
[backward layers.0.feed_forward]
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
- ddp_hook
+ ddp_hook copy 1x240 bf16 (480 > 480)
- ddp_hook
+ ddp_hook copy 1x20 bf16 (40 > 40)
- ddp_hook
+ ddp_hook copy 1x240 bf16 (480 > 480)
[backward layers.0]
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
[backward layers.0.attention]
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
- ddp_hook
+ ddp_hook copy 1x144 bf16 (288 > 288)
- ddp_hook
+ ddp_hook copy 1x36 bf16 (72 > 72)
- ddp_hook
+ ddp_hook copy 1x432 bf16 (864 > 864)
[backward layers.0]
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
- ddp_hook
+ ddp_hook copy 1x12 bf16 (24 > 24)
[backward embeddings]
- ddp_hook
+ ddp_hook copy 1x84 bf16 (168 > 168)
- ddp_hook; collective
+ ddp_hook copy 1x204 bf16 (408 > 408)
+ ddp_compression +2992t cast 1x1496 bf16->fp16 (2992 > 2992) scale 1x1496 fp16 (2992 > 2992)
+ collective event0 wait0@1 all_reduce 2992 bytes fp16, 2 ranks data@1 (2992 > 2992) event1@1 wait1@2
    cast 1x1496 fp16->bf16@2 (2992 > 2992) event2@2 wait2@0 -2992
)";

constexpr char kDataParallelStepListing4[] = R"(
[backward]
+ zero_broadcast
[optimizer]
+ collective event2 wait2@1 broadcast 1504 bytes bf16, 2 ranks data@1 (1504 > 1504) event3@1
+ zero_broadcast
+ collective event4 wait4@1 broadcast 1488 bytes bf16, 2 ranks data@1 (1488 > 1488) event5@1 wait3@0 wait5@0
)";

TEST(DataParallelStep, BucketsDiffer) {
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.bucket_cap = 1000;
      }),
      kDataParallelStepListing1);
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.gradient_as_bucket_view = true;
      }),
      kDataParallelStepListing2);
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.find_unused_parameters = true;
      }),
      R"(
+ ddp_unused x16
)");
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.compression = GradientCompression::fp16;
      }),
      kDataParallelStepListing3);
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.strategy = DataStrategy::zero1;
        step.training.parallel.parameters_as_bucket_view = true;
      }),
      kDataParallelStepListing4);
}

TEST(DataParallelStep, StatesAreSpreadOverRanks) {
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.strategy = DataStrategy::zero1;
      }),
      R"(
[backward]
+ zero_broadcast
[optimizer]
+ collective event2 wait2@1 broadcast 408 bytes bf16, 2 ranks data@1 (408 > 408) event3@1
+ zero_broadcast
+ collective event4 wait4@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event5@1
+ zero_broadcast
+ collective event6 wait6@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event7@1
+ zero_broadcast
+ collective event8 wait8@1 broadcast 864 bytes bf16, 2 ranks data@1 (864 > 864) event9@1
+ zero_broadcast
+ collective event10 wait10@1 broadcast 72 bytes bf16, 2 ranks data@1 (72 > 72) event11@1
+ zero_broadcast
+ collective event12 wait12@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event13@1
+ zero_broadcast
+ collective event14 wait14@1 broadcast 40 bytes bf16, 2 ranks data@1 (40 > 40) event15@1
+ zero_broadcast
+ collective event16 wait16@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event17@1
+ zero_broadcast
+ collective event18 wait18@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event19@1
+ zero_broadcast
+ collective event20 wait20@1 broadcast 168 bytes bf16, 2 ranks data@1 (168 > 168) event21@1
+ zero_broadcast
+ collective event22 wait22@1 broadcast 288 bytes bf16, 2 ranks data@1 (288 > 288) event23@1
+ zero_broadcast
+ collective event24 wait24@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event25@1
+ zero_broadcast
+ collective event26 wait26@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event27@1
+ zero_broadcast
+ collective event28 wait28@1 broadcast 480 bytes bf16, 2 ranks data@1 (480 > 480) event29@1
+ zero_broadcast
+ collective event30 wait30@1 broadcast 480 bytes bf16, 2 ranks data@1 (480 > 480) event31@1
+ zero_broadcast
+ collective event32 wait32@1 broadcast 24 bytes bf16, 2 ranks data@1 (24 > 24) event33@1 wait3@0 wait5@0 wait7@0
    wait9@0 wait11@0 wait13@0 wait15@0 wait17@0 wait19@0 wait21@0 wait23@0 wait25@0 wait27@0 wait29@0 wait31@0
    wait33@0
)");
}

TEST(DataParallelStep, GradientsWaitForTheLastMicroBatch) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.gradient_accumulation = 2;
                })
                .changed([](OddStep& step) { step.training.parallel.no_sync = true; }),
            R"(
[backward final_norm]
- ddp_hook; ddp_hook
[backward layers.0.feed_forward]
- ddp_hook; ddp_hook; ddp_hook; ddp_hook
[backward layers.0]
- ddp_hook; ddp_hook
[backward layers.0.attention]
- ddp_hook; ddp_hook; ddp_hook; ddp_hook
[backward layers.0]
- ddp_hook; ddp_hook
[backward embeddings]
- ddp_hook; accumulate_grad; ddp_hook; collective
[backward]
- ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back;
    ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back; ddp_copy_back;
    ddp_copy_back; ddp_copy_back
+ accumulate_grad -2 -2
[backward embeddings]
- collective
+ collective event0 wait0@1 all_reduce 2992 bytes bf16, 2 ranks data@1 (2992 > 2992) event1@1 -408 wait1@0
)");
}

TEST(DataParallelStep, BuffersAreSent) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.attention = AttentionChoice::eager;
                })
                .changed([](OddStep& step) { step.training.parallel.broadcast_buffers = false; }),
            R"(
[forward]
- collective; ddp_copy_back
[backward]
- backward_first x31
+ backward_first x29
[backward embeddings]
- collective
+ collective event0 wait0@1 all_reduce 2992 bytes bf16, 2 ranks data@1 (2992 > 2992) event1@1 wait1@0
)");
}

TEST(DataParallelStep, ApexExchangesGradientsBehindThePass) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) {
    step.training.parallel.data = 2;
    step.training.data_parallel = DataParallel::apex;
  }),
            R"(
[backward final_norm]
+ ddp_hook; ddp_hook
[backward layers.0.feed_forward]
+ ddp_hook; ddp_hook; ddp_hook; ddp_hook
[backward layers.0]
+ ddp_hook; ddp_hook
[backward layers.0.attention]
+ ddp_hook; ddp_hook; ddp_hook; ddp_hook
[backward layers.0]
+ ddp_hook; ddp_hook
[backward embeddings]
+ ddp_hook
- accumulate_grad
+ accumulate_grad
+ ddp_hook +2992t foreach_copy 16 tensors, 1496 elements bf16 () event0 wait0@1
+ collective all_reduce 2992 bytes bf16, 2 ranks data@1 (2992 > 2992) scale 1x1496 bf16@1 (2992 > 2992)
    foreach_copy 16 tensors, 1496 elements bf16@1 () -2992 event1@1 wait1@0 event2@1 wait2@0 -2 -2
)");
}

}  // namespace
}  // namespace ridgeline
