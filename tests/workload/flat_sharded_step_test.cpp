// What FullyShardedDataParallel and shards in the host memory do beside the step of one GPU.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

TEST(FlatShardedStep, FlatParametersAreGatheredAndReduced) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) {
    step.training.parallel.data = 2;
    step.training.parallel.strategy = DataStrategy::fsdp1;
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

constexpr char kFlatShardedStepListing1[] = R"(
[forward]
- fsdp_gather
+ fsdp_gather
+ optimizer_op +216t@2 copy_to_device 1x108 bf16 to gpu@2 (216 > 216)
+ optimizer_op +96t@2 copy_to_device 1x48 bf16 to gpu@2 (96 > 96)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12) +672t@2
    foreach_copy 4 tensors, 168 elements bf16@2 () -216 -96 -12 -12 event1@2 wait1@1
[forward layers.0]
- fsdp_gather
+ fsdp_gather
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +432t@2 copy_to_device 1x216 bf16 to gpu@2 (432 > 432)
+ optimizer_op +36t@2 copy_to_device 1x18 bf16 to gpu@2 (36 > 36)
+ optimizer_op +144t@2 copy_to_device 1x72 bf16 to gpu@2 (144 > 144)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +240t@2 copy_to_device 1x120 bf16 to gpu@2 (240 > 240)
+ optimizer_op +20t@2 copy_to_device 1x10 bf16 to gpu@2 (20 > 20)
+ optimizer_op +240t@2 copy_to_device 1x120 bf16 to gpu@2 (240 > 240)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12) +2368t@2
    foreach_copy 12 tensors, 592 elements bf16@2 () -12 -12 -432 -36 -144 -12 -12 -12 -240 -20 -240 -12 event4@2
    wait4@1
[backward]
- backward_first x28
+ backward_first x40
- fsdp_gather
+ fsdp_gather
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +432t@2 copy_to_device 1x216 bf16 to gpu@2 (432 > 432)
+ optimizer_op +36t@2 copy_to_device 1x18 bf16 to gpu@2 (36 > 36)
+ optimizer_op +144t@2 copy_to_device 1x72 bf16 to gpu@2 (144 > 144)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12)
+ optimizer_op +240t@2 copy_to_device 1x120 bf16 to gpu@2 (240 > 240)
+ optimizer_op +20t@2 copy_to_device 1x10 bf16 to gpu@2 (20 > 20)
+ optimizer_op +240t@2 copy_to_device 1x120 bf16 to gpu@2 (240 > 240)
+ optimizer_op +12t@2 copy_to_device 1x6 bf16 to gpu@2 (12 > 12) +2368t@2
    foreach_copy 12 tensors, 592 elements bf16@2 () -12 -12 -432 -36 -144 -12 -12 -12 -240 -20 -240 -12 event7@2
    wait7@1
[backward layers.0]
- collective
+ collective reduce_scatter 2368 bytes bf16, 2 ranks shard@3 (2368 > 1184) event11@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event12@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event13@3
+ optimizer_op copy_to_host 1x216 bf16 from gpu@3 (432 > 432) event14@3
+ optimizer_op copy_to_host 1x18 bf16 from gpu@3 (36 > 36) event15@3
+ optimizer_op copy_to_host 1x72 bf16 from gpu@3 (144 > 144) event16@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event17@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event18@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event19@3
+ optimizer_op copy_to_host 1x120 bf16 from gpu@3 (240 > 240) event20@3
+ optimizer_op copy_to_host 1x10 bf16 from gpu@3 (20 > 20) event21@3
+ optimizer_op copy_to_host 1x120 bf16 from gpu@3 (240 > 240) event22@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event23@3 event24@3 -1184
[backward]
- fsdp_reduce; collective; per_parameter_shard x16; per_parameter_zero_grad x16
+ fsdp_reduce wait11@0 -2368 +672t +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96 cast 1x336 bf16 (672 > 672)
    -408 -168 -24 -24 event25 wait25@3 +336g@3
+ collective reduce_scatter 672 bytes bf16, 2 ranks shard@3 (672 > 336) event26@3
+ optimizer_op copy_to_host 1x108 bf16 from gpu@3 (216 > 216) event27@3
+ optimizer_op copy_to_host 1x48 bf16 from gpu@3 (96 > 96) event28@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event29@3
+ optimizer_op copy_to_host 1x6 bf16 from gpu@3 (12 > 12) event30@3 event31@3 -336 wait24@0 wait31@0 wait26@0 -672
    host-waits12 host-waits13 host-waits14 host-waits15 host-waits16 host-waits17 host-waits18 host-waits19
    host-waits20 host-waits21 host-waits22 host-waits23 host-waits27 host-waits28 host-waits29 host-waits30 -2 -2
+ per_parameter_for_loop x16; host_update_for_loop; per_parameter_zero_grad x16
)";

TEST(FlatShardedStep, ShardsMayLiveInTheHostsMemory) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                })
                .changed([](OddStep& step) { step.training.parallel.offload = true; }),
            kFlatShardedStepListing1);
}

TEST(FlatShardedStep, GradientsOfMicroBatchesAreAddedUp) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.data = 2;
                  step.training.parallel.strategy = DataStrategy::fsdp;
                  step.training.gradient_accumulation = 2;
                })
                .changed([](OddStep& step) { step.training.parallel.no_sync = true; }),
            R"(
[backward layers.0]
- fsdp_reduce; collective
[backward embeddings]
- accumulate_grad
[backward]
- fsdp_reduce; collective
+ accumulate_grad -408 -168 -24 -24 -2 -2 event10 wait10@2 wait10@1
[forward]
- fsdp_gather; collective; fsdp_copy_out
+ fsdp_gather +672t@2 foreach_copy 4 tensors, 168 elements bf16@2 () event11@2 wait11@1
+ collective all_gather 672 bytes bf16, 2 ranks shard@1 (336 > 672) event12@1
+ fsdp_copy_out wait12@0 +408w +168w +24w +24w +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96
    copy 1x336 bf16 (672 > 672) event13
[forward layers.0]
- fsdp_gather; collective; fsdp_copy_out
+ fsdp_gather +2368t@2 foreach_copy 12 tensors, 592 elements bf16@2 () event14@2 wait14@1
+ collective all_gather 2368 bytes bf16, 2 ranks shard@1 (1184 > 2368) event15@1
+ fsdp_copy_out wait13@2 wait13@1 wait15@0 +24w +24w +864w +72w +288w +24w +24w +24w +480w +40w +480w +24w +288t
    copy_to_device 1x36 int64 to gpu (288 > 288) -288 copy 1x1184 bf16 (2368 > 2368) event16 -672
[backward]
- fsdp_gather; collective
+ fsdp_gather +2368t@2 foreach_copy 12 tensors, 592 elements bf16@2 () event17@2 wait17@1
+ collective all_gather 2368 bytes bf16, 2 ranks shard@1 (1184 > 2368) event18@1
[backward layers.0]
- fsdp_copy_out
+ fsdp_copy_out wait18@0 +24w +24w +864w +72w +288w +24w +24w +24w +480w +40w +480w +24w +288t
    copy_to_device 1x36 int64 to gpu (288 > 288) -288 copy 1x1184 bf16 (2368 > 2368) event19 wait19@2 wait19@1 -2368
- fsdp_hooks; fsdp_reduce; collective
+ fsdp_hooks add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
    add_ 36x12 bf16,bf16->bf16 (864 864 > 864) -864 add_ 1x36 bf16,bf16->bf16 (72 72 > 72) -72
    add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288 add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
    add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
    add_ 20x12 bf16,bf16->bf16 (480 480 > 480) -480 add_ 1x20 bf16,bf16->bf16 (40 40 > 40) -40
    add_ 12x20 bf16,bf16->bf16 (480 480 > 480) -480 add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -24 -24 -864 -72 -288
    -24 -24 -24 -480 -40 -480 -24
+ fsdp_reduce +2368t +288t copy_to_device 1x36 int64 to gpu (288 > 288) -288 cast 1x1184 bf16 (2368 > 2368) -24 -24
    -864 -72 -288 -24 -24 -24 -480 -40 -480 -24 event20 wait20@3 +1184g@3
+ collective reduce_scatter 2368 bytes bf16, 2 ranks shard@3 (2368 > 1184) event21@3 event22@3
[backward embeddings]
- accumulate_grad
[backward]
- fsdp_reduce; collective
+ accumulate_grad add_ 17x12 bf16,bf16->bf16 (408 408 > 408) -408 add_ 7x12 bf16,bf16->bf16 (168 168 > 168) -168
    add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -408 -168 -24 -24
+ fsdp_reduce wait21@0 -2368 +672t +96t copy_to_device 1x12 int64 to gpu (96 > 96) -96 cast 1x336 bf16 (672 > 672)
    -408 -168 -24 -24 event23 wait23@3 +336g@3
+ collective reduce_scatter 672 bytes bf16, 2 ranks shard@3 (672 > 336) event24@3 event25@3 wait22@0 wait25@0
    wait24@0 -672 -2 -2
)");
}

}  // namespace
}  // namespace ridgeline
