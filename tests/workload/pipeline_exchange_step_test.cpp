// What ranks of pipelines exchange, and when they wait.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

/// What rank `rank` of two does with so many stages, each of one block, besides computing them.
std::string exchanges(
    PipelineSchedule schedule, std::int64_t rank, std::int64_t stages, std::int64_t micro_batches,
    const OddStep::Change& change = [](OddStep&) {}) {
  OddStep step(ModelFamily::gpt2);
  step.model.layers = 2 * stages;
  step.model.bias = false;
  step.model.tie_embeddings = false;
  step.training.gradient_accumulation = micro_batches;
  step.training.parallel.pipeline = 2;
  step.training.parallel.pipeline_rank = rank;
  step.training.parallel.schedule = schedule;
  step.training.parallel.virtual_stages = stages;
  return step.but(change).about(
      {"pipeline", "collective", "backward_call", "per_parameter", "optimizer_op", "fsdp", "ddp"});
}

constexpr char kPipelineExchangeListing1[] = R"(
pipeline_chunk; pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_chunk
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait1@0 wait3@0
    wait5@0
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 wait7@0
pipeline_chunk; backward_call
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait9@0
pipeline_chunk; per_parameter_accumulate x8; backward_call
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1 wait11@0
pipeline_chunk; per_parameter_accumulate x8; backward_call
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) -360
per_parameter_zero_grad x8 -408 -168 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineExchangeListing2[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1 wait3@0
pipeline_chunk
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk; pipeline_chunk; backward_call
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1
pipeline_chunk; per_parameter_accumulate x8
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1
pipeline_chunk; per_parameter_accumulate x8
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1 wait7@0 -360
    wait9@0 -360 wait11@0
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) -2 -2 -2 -510 -360
per_parameter_zero_grad x8 -24 -864 -288 -24 -480 -480 -24 -408
)";

constexpr char kPipelineExchangeListing3[] = R"(
pipeline_chunk; pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1 wait3@0
pipeline_chunk; backward_call; pipeline_chunk
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk; per_parameter_accumulate x8; backward_call
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 wait7@0
pipeline_chunk; per_parameter_accumulate x8; backward_call
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) -360
per_parameter_zero_grad x8 -408 -168 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineExchangeListing4[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk; pipeline_chunk; backward_call
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1 wait3@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 wait7@0
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) -2 -2 -2 -510 -360
per_parameter_zero_grad x8 -24 -864 -288 -24 -480 -480 -24 -408
)";

constexpr char kPipelineExchangeListing5[] = R"(
pipeline_chunk; pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk; pipeline_chunk; backward_call
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1
pipeline_chunk
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait7@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8; backward_call
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1 wait11@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8; backward_call
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait9@0 -360
per_parameter_zero_grad x8 -408 -168 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineExchangeListing6[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_chunk; backward_call; pipeline_split x48
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 -360 wait3@0
pipeline_chunk; pipeline_chunk
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_split x48
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 -360
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1
pipeline_chunk; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call; pipeline_chunk; pipeline_chunk
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_split x48
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1 -360
pipeline_chunk; per_parameter_accumulate x8; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call; backward_call; pipeline_chunk; per_parameter_accumulate x8; backward_call;
    backward_call; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) wait11@0 -2 -2 -2 -510
per_parameter_zero_grad x8 -24 -864 -288 -24 -480 -480 -24 -408
)";

TEST(PipelineExchange, EachRankOfOneStage) {
  EXPECT_EQ(exchanges(PipelineSchedule::gpipe, 0, 1, 3), kPipelineExchangeListing1);
  EXPECT_EQ(exchanges(PipelineSchedule::gpipe, 1, 1, 3), kPipelineExchangeListing2);
  EXPECT_EQ(exchanges(PipelineSchedule::one_forward_one_backward, 0, 1, 3), kPipelineExchangeListing3);
  EXPECT_EQ(exchanges(PipelineSchedule::one_forward_one_backward, 1, 1, 3), kPipelineExchangeListing4);
  EXPECT_EQ(exchanges(PipelineSchedule::zb1p, 0, 1, 3), kPipelineExchangeListing5);
  EXPECT_EQ(exchanges(PipelineSchedule::zb1p, 1, 1, 3), kPipelineExchangeListing6);
}

constexpr char kPipelineExchangeListing7[] = R"(
pipeline_chunk; pipeline_chunk; ddp_forward
pipeline_exchange event0 wait0@2 send_recv 360 bytes bf16, 2 ranks pipeline@2 (360 > 360) event1@2
pipeline_chunk; ddp_forward
pipeline_exchange event2 wait2@2 send_recv 360 bytes bf16, 2 ranks pipeline@2 (360 > 360) event3@2 wait3@0
pipeline_chunk; backward_call
pipeline_exchange event4 wait4@2 send_recv 360 bytes bf16, 2 ranks pipeline@2 (360 > 360) event5@2 wait5@0
pipeline_chunk; per_parameter_accumulate x8; ddp_forward; backward_call
ddp_hook scale 12x20 bf16 (480 > 480) -480
ddp_hook scale 20x12 bf16 (480 > 480) -480
ddp_hook scale 1x12 bf16 (24 > 24) -24
ddp_hook scale 12x12 bf16 (288 > 288) -288
ddp_hook scale 36x12 bf16 (864 > 864) -864
ddp_hook scale 1x12 bf16 (24 > 24) -24
ddp_hook scale 7x12 bf16 (168 > 168) -168
ddp_hook scale 17x12 bf16 (408 > 408)
collective event6 wait6@1 all_reduce 2736 bytes bf16, 2 ranks data@1 (2736 > 2736) event7@1 -408 wait7@0
ddp_copy_back copy 1x240 bf16 (480 > 480)
ddp_copy_back copy 1x240 bf16 (480 > 480)
ddp_copy_back copy 1x12 bf16 (24 > 24)
ddp_copy_back copy 1x144 bf16 (288 > 288)
ddp_copy_back copy 1x432 bf16 (864 > 864)
ddp_copy_back copy 1x12 bf16 (24 > 24)
ddp_copy_back copy 1x84 bf16 (168 > 168)
ddp_copy_back copy 1x204 bf16 (408 > 408)
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) -360
per_parameter_zero_grad x8 -408 -168 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineExchangeListing8[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@4 send_recv 360 bytes bf16, 2 ranks pipeline@4 (360 > 360) event1@4 wait1@0
pipeline_chunk event2 wait2@2 wait2@1
fsdp_hooks
fsdp_gather +456t@2 foreach_copy 2 tensors, 114 elements bf16@2 () event3@2 wait3@1
collective all_gather 456 bytes bf16, 2 ranks shard@1 (228 > 456) event4@1
fsdp_copy_out wait4@0 +24w +408w +48t copy_to_device 1x6 int64 to gpu (48 > 48) -48 copy 1x228 bf16 (456 > 456)
    event5
fsdp_hooks
fsdp_gather +2160t@2 foreach_copy 6 tensors, 540 elements bf16@2 () event6@2 wait6@1
collective all_gather 2160 bytes bf16, 2 ranks shard@1 (1080 > 2160) event7@1
fsdp_copy_out wait5@2 wait5@1 wait7@0 +24w +864w +288w +24w +480w +480w +144t
    copy_to_device 1x18 int64 to gpu (144 > 144) -144 copy 1x1080 bf16 (2160 > 2160) event8 -456
fsdp_hooks -24 -864 -288 -24 -480 -480
fsdp_hooks; pipeline_chunk
fsdp_hooks -2160
fsdp_gather +2160t@2 foreach_copy 6 tensors, 540 elements bf16@2 () event9@2 wait9@1
collective all_gather 2160 bytes bf16, 2 ranks shard@1 (1080 > 2160) event10@1
backward_call; fsdp_hooks
fsdp_copy_out wait10@0 +24w +864w +288w +24w +480w +480w +144t copy_to_device 1x18 int64 to gpu (144 > 144) -144
    copy 1x1080 bf16 (2160 > 2160) event11 wait11@2 wait11@1 -2160
fsdp_hooks
pipeline_exchange event12 wait12@4 send_recv 360 bytes bf16, 2 ranks pipeline@4 (360 > 360) event13@4 wait13@0
pipeline_chunk event14 wait14@2 wait14@1
fsdp_hooks; fsdp_hooks
fsdp_hooks -24 -864 -288 -24 -480 -480
fsdp_hooks -510
pipeline_chunk; per_parameter_accumulate x8; fsdp_hooks
fsdp_gather +2160t@2 foreach_copy 6 tensors, 540 elements bf16@2 () event15@2 wait15@1
collective all_gather 2160 bytes bf16, 2 ranks shard@1 (1080 > 2160) event16@1
backward_call +2t fill 1x1 bf16 (> 2)
fsdp_hooks
fsdp_copy_out wait16@0 +24w +864w +288w +24w +480w +480w +144t copy_to_device 1x18 int64 to gpu (144 > 144) -144
    copy 1x1080 bf16 (2160 > 2160) event17 wait17@2 wait17@1 -2160
fsdp_hooks add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 add_ 36x12 bf16,bf16->bf16 (864 864 > 864) -864
    add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288 add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
    add_ 20x12 bf16,bf16->bf16 (480 480 > 480) -480 add_ 12x20 bf16,bf16->bf16 (480 480 > 480) -480
pipeline_exchange event18 wait18@4 send_recv 360 bytes bf16, 2 ranks pipeline@4 (360 > 360) event19@4 wait19@0 -24
    -408
fsdp_reduce +456t +48t copy_to_device 1x6 int64 to gpu (48 > 48) -48 cast 1x228 bf16 (456 > 456) -24 -408 event20
    wait20@3 +228g@3
collective reduce_scatter 456 bytes bf16, 2 ranks shard@3 (456 > 228) event21@3 event22@3 -24 -864 -288 -24 -480 -480
fsdp_reduce wait21@0 -456 +2160t +144t copy_to_device 1x18 int64 to gpu (144 > 144) -144
    cast 1x1080 bf16 (2160 > 2160) -24 -864 -288 -24 -480 -480 event23 wait23@3 +1080g@3
collective reduce_scatter 2160 bytes bf16, 2 ranks shard@3 (2160 > 1080) event24@3 event25@3 wait25@0 wait22@0
    wait24@0 -2160
optimizer_op scale 1x6 bf16 (12 > 12)
optimizer_op scale 1x216 bf16 (432 > 432)
optimizer_op scale 1x72 bf16 (144 > 144)
optimizer_op scale 1x6 bf16 (12 > 12)
optimizer_op scale 1x120 bf16 (240 > 240)
optimizer_op scale 1x120 bf16 (240 > 240)
optimizer_op scale 1x6 bf16 (12 > 12)
optimizer_op scale 1x108 bf16 (216 > 216) -2 -2 -510 -360
per_parameter_shard x8
per_parameter_zero_grad x8 -1080 -228
)";

TEST(PipelineExchange, SeveralRanksOfAStage) {
  EXPECT_EQ(exchanges(PipelineSchedule::one_forward_one_backward, 0, 1, 2,
                      [](OddStep& step) { step.training.parallel.data = 2; }),
            kPipelineExchangeListing7);
  EXPECT_EQ(exchanges(PipelineSchedule::one_forward_one_backward, 1, 1, 2,
                      [](OddStep& step) {
                        step.training.parallel.data = 2;
                        step.training.parallel.strategy = DataStrategy::fsdp;
                      }),
            kPipelineExchangeListing8);
}

}  // namespace
}  // namespace ridgeline
