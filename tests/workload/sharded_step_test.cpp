// What fully_shard and its like do beside the step of one GPU.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

// fully_shard (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py) on two ranks. Shards of a group are copied
// into one buffer (on stream 2), gathered (1) and split into parameters (0): a block's twelve are 2368 bytes; tables
// and last norm, of 17, 7, 12 and 12 rows made even, 432 + 192 + 24 + 24 = 672. A block is freed behind its forward
// pass and gathered again backward. Its gradients are copied into one buffer and reduced on stream 3: half of it (1184)
// stays.
TEST(ShardedStep, ShardsAreGatheredAndReduced) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) {
    step.training.parallel.data = 2;
    step.training.parallel.strategy = DataStrategy::fsdp;
  }),
            R"(
+ event0 wait0@2 wait0@1
+ fsdp_hooks
[forward]
+ fsdp_gather +672t@2 foreach_copy 4 tensors, 168 elements bf16@2 () event1@2 wait1@1
+ collective all_gather 672 bytes bf16, 2 ranks shard@1 (336 > 672) event2@1
+ fsdp_copy_out wait2@0 +408w +168w +24w +24w +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96
    copy 1x336 bf16 (672 > 672) event3
[forward embeddings]
+ fsdp_hooks
[forward layers.0]
+ fsdp_gather +2368t@2 foreach_copy 12 tensors, 592 elements bf16@2 () event4@2 wait4@1
+ collective all_gather 2368 bytes bf16, 2 ranks shard@1 (1184 > 2368) event5@1
+ fsdp_copy_out wait3@2 wait3@1 wait5@0 +24w +24w +864w +72w +288w +24w +24w +24w +480w +40w +480w +24w +288t
    copy_to_device 1x36 int64 to gpu (288 > 288) -288 copy 1x1184 bf16 (2368 > 2368) event6 -672
+ fsdp_hooks -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24
[forward head.loss]
+ fsdp_hooks
[backward]
- backward_first x20
+ backward_first x28
+ fsdp_hooks -2368
+ fsdp_gather +2368t@2 foreach_copy 12 tensors, 592 elements bf16@2 () event7@2 wait7@1
+ collective all_gather 2368 bytes bf16, 2 ranks shard@1 (1184 > 2368) event8@1
[backward final_norm]
+ fsdp_hooks
[backward layers.0]
+ fsdp_copy_out wait8@0 +24w +24w +864w +72w +288w +24w +24w +24w +480w +40w +480w +24w +288t
    copy_to_device 1x36 int64 to gpu (288 > 288) -288 copy 1x1184 bf16 (2368 > 2368) event9 wait9@2 wait9@1 -2368
+ fsdp_hooks -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24
+ fsdp_reduce +2368t +288t copy_to_device 1x36 int64 to gpu (288 > 288) -288 cast 1x1184 bf16 (2368 > 2368) -24 -24
    -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 event10 wait10@3 +1184g@3
+ collective reduce_scatter 2368 bytes bf16, 2 ranks shard@3 (2368 > 1184) event11@3 event12@3
[backward embeddings]
- accumulate_grad; per_parameter_zero_grad x16
+ accumulate_grad -408 -168 -24 -24
[backward]
+ fsdp_reduce wait11@0 -2368 +672t +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96 cast 1x336 bf16 (672 > 672)
    -408 -168 -24 -24 event13 wait13@3 +336g@3
+ collective reduce_scatter 672 bytes bf16, 2 ranks shard@3 (672 > 336) event14@3 event15@3 wait12@0 wait15@0
    wait14@0 -672 -2 -2
+ per_parameter_shard x16
+ per_parameter_zero_grad x16 -1184 -336
)");
}

constexpr char kShardedStepListing1[] = R"(
[forward layers.0]
- fsdp_hooks
+ fsdp_hooks
[backward]
- fsdp_gather; collective
[backward layers.0]
- fsdp_copy_out; fsdp_reduce; collective
+ fsdp_reduce +2368t +288t copy_to_device 1x36 int64 to gpu (288 > 288) -288 cast 1x1184 bf16 (2368 > 2368) -24 -24
    -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 event7 wait7@3 +1184g@3
+ collective reduce_scatter 2368 bytes bf16, 2 ranks shard@3 (2368 > 1184) event8@3 event9@3
[backward]
- fsdp_reduce; collective
+ fsdp_reduce wait8@0 -2368 +672t +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96 cast 1x336 bf16 (672 > 672)
    -408 -168 -24 -24 event10 wait10@3 +336g@3
+ collective reduce_scatter 672 bytes bf16, 2 ranks shard@3 (672 > 336) event11@3 event12@3 wait9@0 wait12@0 wait11@0
    -672 -2 -2
)";

// A block that is not freed behind its forward pass is not gathered backward.
TEST(ShardedStep, GroupsMayStayWhole) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) { step.training.parallel.reshard_after_forward.ranks = 1; }),
            kShardedStepListing1);
}

// With sums in fp32 the copy into the buffer casts (2368 > 4736 bytes), and the reduced half is cast back.
TEST(ShardedStep, TypesAreThoseOfGatheredParametersAndSums) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) { step.training.parallel.reduce_type = DType::fp32; }),
            R"(
[backward layers.0]
- fsdp_reduce; collective
+ fsdp_reduce +4736t +288t copy_to_device 1x36 int64 to gpu (288 > 288) -288 cast 1x1184 bf16->fp32 (2368 > 4736) -24
    -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 event10 wait10@3 +2368t@3
+ collective reduce_scatter 4736 bytes fp32, 2 ranks shard@3 (4736 > 2368) event11@3 +1184g@3
    cast 1x592 fp32->bf16@3 (2368 > 1184) -2368 event12@3
[backward]
- fsdp_reduce; collective
+ fsdp_reduce wait11@0 -4736 +1344t +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96
    cast 1x336 bf16->fp32 (672 > 1344) -408 -168 -24 -24 event13 wait13@3 +672t@3
+ collective reduce_scatter 1344 bytes fp32, 2 ranks shard@3 (1344 > 672) event14@3 +336g@3
    cast 1x168 fp32->bf16@3 (672 > 336) -672 event15@3 wait12@0 wait15@0 wait14@0 -1344 -2 -2
)");
}

}  // namespace
}  // namespace ridgeline
