// What ranks that see other data do beside the step of one GPU.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

// DistributedDataParallel (torch/csrc/distributed/c10d/reducer.cpp): the hook of each parameter divides its gradient by
// the ranks into the bucket; all 1496 numbers fit one (2992 bytes), which is reduced on NCCL's stream when the last
// gradient is there. At the end each gradient is copied back from the bucket.
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

// Buckets are filled backward until they hold bucket_cap: 24 + 24 + 24 + 480 + 40 + 480 = 1072 bytes are over 1000,
// then 1296, and 624 are left. Each is reduced as soon as it is full; what is copied back waits for its own bucket.
// Looking for parameters that the loss does not reach walks the graph: the host only.
TEST(DataParallelStep, BucketsDiffer) {
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.bucket_cap = 1000;
      }),
      kDataParallelStepListing1);
  EXPECT_EQ(
      OddStep(ModelFamily::gpt2).but([](OddStep& step) { step.training.parallel.data = 2; }).changed([](OddStep& step) {
        step.training.parallel.find_unused_parameters = true;
      }),
      R"(
+ ddp_unused x16
)");
}

// In no_sync no hook runs in the first micro-batch: gradients only add up.
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

// The buffer of GPT-2's written-out causal mask is broadcast before each forward pass, unless that is off.
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

}  // namespace
}  // namespace ridgeline
