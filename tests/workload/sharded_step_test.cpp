// What fully_shard and its like do beside the step of one GPU.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

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
[forward layers.0.feed_forward]
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
[forward layers.0.feed_forward]
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

constexpr char kShardedStepListing2[] = R"(
[forward]
- fsdp_gather; collective; fsdp_copy_out
+ fsdp_gather +3040t@2 foreach_copy 16 tensors, 760 elements bf16@2 () event1@2 wait1@1
+ collective all_gather 3040 bytes bf16, 2 ranks shard@1 (1520 > 3040) event2@1
+ fsdp_copy_out wait2@0 +408w +168w +24w +24w +864w +72w +288w +24w +24w +24w +480w +40w +480w +24w +24w +24w +384t
    copy_to_device 1x48 int64 to gpu (384 > 384) -384 copy 1x1520 bf16 (3040 > 3040) event3
[forward embeddings]
- fsdp_hooks
[forward layers.0]
- fsdp_gather; collective; fsdp_copy_out
[forward layers.0.feed_forward]
- fsdp_hooks
[backward]
- backward_first x28; fsdp_hooks; fsdp_gather; collective
+ backward_first x24
+ fsdp_hooks -3040
[backward final_norm]
- fsdp_hooks
[backward layers.0]
- fsdp_copy_out; fsdp_hooks; fsdp_reduce; collective
[backward embeddings]
- accumulate_grad
[backward]
- fsdp_reduce; collective
+ accumulate_grad -408 -168 -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24
+ fsdp_reduce +3040t +384t copy_to_device 1x48 int64 to gpu (384 > 384) -384 cast 1x1520 bf16 (3040 > 3040) -408 -168
    -24 -24 -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 -24 -24 event4 wait4@3 +1520g@3
+ collective reduce_scatter 3040 bytes bf16, 2 ranks shard@3 (3040 > 1520) event5@3 event6@3 wait6@0 wait5@0 -3040 -2
    -2
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x16 -1520
)";

constexpr char kShardedStepListing3[] = R"(
[forward layers.0.feed_forward]
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

TEST(ShardedStep, GroupsStayWholeOrAreWrappedOtherwise) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) { step.training.parallel.reshard_after_forward.ranks = 1; }),
            kShardedStepListing1);
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) { step.training.parallel.wrap = 0; }),
            kShardedStepListing2);
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) { step.training.parallel.strategy = DataStrategy::zero2; }),
            kShardedStepListing3);
}

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

TEST(ShardedStep, GroupsAreReplicated) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 4;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) {
                  step.training.parallel.strategy = DataStrategy::hsdp;
                  step.training.parallel.replicate = 2;
                }),
            R"(
[forward]
- fsdp_gather; collective; fsdp_copy_out
+ fsdp_gather +672t@2 foreach_copy 4 tensors, 168 elements bf16@2 () event1@2 wait1@1
+ collective all_gather 672 bytes bf16, 2 ranks shard@1 (336 > 672) event2@1
+ fsdp_copy_out wait2@0 +408w +168w +24w +24w +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96
    copy 1x336 bf16 (672 > 672) event3
[forward layers.0]
- fsdp_gather; collective; fsdp_copy_out
+ fsdp_gather +2368t@2 foreach_copy 12 tensors, 592 elements bf16@2 () event4@2 wait4@1
+ collective all_gather 2368 bytes bf16, 2 ranks shard@1 (1184 > 2368) event5@1
+ fsdp_copy_out wait3@2 wait3@1 wait5@0 +24w +24w +864w +72w +288w +24w +24w +24w +480w +40w +480w +24w +288t
    copy_to_device 1x36 int64 to gpu (288 > 288) -288 copy 1x1184 bf16 (2368 > 2368) event6 -672
[backward]
- fsdp_gather; collective
+ fsdp_gather +2368t@2 foreach_copy 12 tensors, 592 elements bf16@2 () event7@2 wait7@1
+ collective all_gather 2368 bytes bf16, 2 ranks shard@1 (1184 > 2368) event8@1
[backward layers.0]
- fsdp_reduce; collective
+ fsdp_reduce +2368t +288t copy_to_device 1x36 int64 to gpu (288 > 288) -288 cast 1x1184 bf16 (2368 > 2368) -24 -24
    -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 event10 wait10@3 +1184g@3
+ collective reduce_scatter 2368 bytes bf16, 2 ranks shard@3 (2368 > 1184) event11@3 wait11@4
+ collective all_reduce 1184 bytes bf16, 2 ranks replicate@4 (1184 > 1184) event12@4
[backward]
- fsdp_reduce; collective
+ fsdp_reduce wait11@0 -2368 +672t +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96 cast 1x336 bf16 (672 > 672)
    -408 -168 -24 -24 event13 wait13@3 +336g@3
+ collective reduce_scatter 672 bytes bf16, 2 ranks shard@3 (672 > 336) event14@3 wait14@4
+ collective all_reduce 336 bytes bf16, 2 ranks replicate@4 (336 > 336) event15@4 wait12@0 wait15@0 wait14@0 -672 -2
    -2
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x16 -1184 -336
)");
}

}  // namespace
}  // namespace ridgeline
