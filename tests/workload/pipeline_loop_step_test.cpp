// What ranks of pipelines of two stages a rank exchange, and when they wait.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

/// What rank `rank` of two does with so many stages, each of one block, besides computing them.
std::string loop_exchanges(
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

constexpr char kPipelineLoopStepListing1[] = R"(
pipeline_chunk; pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_chunk
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 wait3@0
pipeline_chunk
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait7@0
pipeline_chunk
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1
pipeline_exchange event12 wait12@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event13@1 wait13@0
pipeline_chunk; backward_call
pipeline_exchange event14 wait14@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event15@1 -360
pipeline_exchange event16 wait16@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event17@1 wait17@0
pipeline_chunk; per_parameter_accumulate x6; backward_call
pipeline_exchange event18 wait18@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event19@1 -360
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
pipeline_exchange event20 wait20@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event21@1 wait21@0
pipeline_chunk; backward_call
pipeline_exchange event22 wait22@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event23@1 wait23@0
pipeline_chunk; per_parameter_accumulate x8; backward_call
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait19@0 -360
per_parameter_zero_grad x14 -408 -168 -24 -864 -288 -24 -480 -480 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineLoopStepListing2[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait9@0
pipeline_chunk
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1
pipeline_chunk; backward_call
pipeline_exchange event12 wait12@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event13@1 -360
pipeline_exchange event14 wait14@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event15@1 wait11@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_exchange event16 wait16@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event17@1 -360
pipeline_exchange event18 wait18@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event19@1
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) wait15@0
pipeline_chunk; backward_call
pipeline_exchange event20 wait20@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event21@1 -360 wait19@0
pipeline_chunk; per_parameter_accumulate x6; backward_call
pipeline_exchange event22 wait22@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event23@1 -360
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait23@0 -2 -2 -510
per_parameter_zero_grad x14 -24 -864 -288 -24 -480 -480 -24 -864 -288 -24 -480 -480 -24 -408
)";

constexpr char kPipelineLoopStepListing3[] = R"(
pipeline_chunk; pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk; pipeline_chunk; backward_call; pipeline_split x48
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 -360
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1
pipeline_chunk; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call; pipeline_chunk; pipeline_chunk
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_split x48
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1 -360
pipeline_exchange event12 wait12@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event13@1
pipeline_chunk; per_parameter_accumulate x8; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call; backward_call
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) wait13@0
pipeline_chunk; pipeline_chunk; backward_call
pipeline_exchange event14 wait14@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event15@1 wait15@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8; backward_call
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait11@0 -2 -2 -510
per_parameter_zero_grad x16 -408 -168 -24 -864 -288 -24 -480 -480 -24 -864 -288 -24 -480 -480 -24 -408
)";

constexpr char kPipelineLoopStepListing4[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_chunk
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait3@0
pipeline_chunk
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1
pipeline_chunk
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait7@0
pipeline_chunk; backward_call; pipeline_split x38; pipeline_chunk; backward_call; backward_call; backward_call;
    backward_call; backward_call; backward_call
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1
pipeline_chunk; backward_call; pipeline_split x38
pipeline_exchange event12 wait12@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event13@1 -360
pipeline_chunk; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call;
    pipeline_chunk; backward_call; pipeline_split x38; pipeline_chunk; per_parameter_accumulate x6; backward_call;
    backward_call; backward_call; backward_call; backward_call; backward_call
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
pipeline_chunk; backward_call; pipeline_split x38
pipeline_exchange event14 wait14@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event15@1 -360
pipeline_chunk; per_parameter_accumulate x6; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait15@0 -360
per_parameter_zero_grad x12 -24 -864 -288 -24 -480 -480 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineLoopStepListing5[] = R"(
pipeline_chunk; pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_chunk
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1 wait3@0
pipeline_chunk
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait7@0
pipeline_chunk
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1
pipeline_exchange event12 wait12@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event13@1 wait13@0
pipeline_chunk; backward_call; pipeline_split x38
pipeline_exchange event14 wait14@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event15@1 -360
pipeline_chunk; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call
pipeline_exchange event16 wait16@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event17@1 wait17@0
pipeline_chunk; backward_call; pipeline_split x38
pipeline_exchange event18 wait18@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event19@1 -360
pipeline_chunk; per_parameter_accumulate x6; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call
pipeline_exchange event20 wait20@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event21@1
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait21@0
pipeline_chunk; pipeline_chunk; backward_call
pipeline_exchange event22 wait22@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event23@1 wait23@0
pipeline_chunk; pipeline_chunk; per_parameter_accumulate x8; backward_call
optimizer_op scale 17x12 bf16 (408 > 408)
optimizer_op scale 7x12 bf16 (168 > 168)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait19@0 -360
per_parameter_zero_grad x14 -408 -168 -24 -864 -288 -24 -480 -480 -24 -864 -288 -24 -480 -480
)";

constexpr char kPipelineLoopStepListing6[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
pipeline_chunk
pipeline_exchange event6 wait6@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event7@1
pipeline_exchange event8 wait8@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event9@1 wait9@0
pipeline_chunk
pipeline_exchange event10 wait10@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event11@1
pipeline_chunk; backward_call; pipeline_split x48
pipeline_exchange event12 wait12@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event13@1 -360
pipeline_exchange event14 wait14@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event15@1 wait11@0
pipeline_chunk; pipeline_chunk
backward_call +2t fill 1x1 bf16 (> 2)
pipeline_split x48
pipeline_exchange event16 wait16@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event17@1 -360
pipeline_exchange event18 wait18@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event19@1
pipeline_chunk; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call; pipeline_chunk; backward_call; pipeline_split x38
pipeline_exchange event20 wait20@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event21@1 -360
pipeline_chunk; per_parameter_accumulate x8; backward_call; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call; backward_call
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) wait19@0
pipeline_chunk; backward_call; pipeline_split x38
pipeline_exchange event22 wait22@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event23@1 -360
pipeline_chunk; backward_call; backward_call; backward_call; backward_call; backward_call; backward_call;
    pipeline_chunk; per_parameter_accumulate x6; backward_call; backward_call; backward_call; backward_call;
    backward_call; backward_call
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480) wait23@0 -2 -2 -510
per_parameter_zero_grad x14 -24 -864 -288 -24 -480 -480 -24 -864 -288 -24 -480 -480 -24 -408
)";

TEST(PipelineLoopStep, EachRankOfTwoStages) {
  EXPECT_EQ(loop_exchanges(PipelineSchedule::interleaved, 0, 2, 2), kPipelineLoopStepListing1);
  EXPECT_EQ(loop_exchanges(PipelineSchedule::interleaved, 1, 2, 2), kPipelineLoopStepListing2);
  EXPECT_EQ(loop_exchanges(PipelineSchedule::zbv, 0, 2, 2), kPipelineLoopStepListing3);
  EXPECT_EQ(loop_exchanges(PipelineSchedule::zbv, 1, 2, 2), kPipelineLoopStepListing4);
  EXPECT_EQ(loop_exchanges(PipelineSchedule::interleaved_zero_bubble, 0, 2, 2), kPipelineLoopStepListing5);
  EXPECT_EQ(loop_exchanges(PipelineSchedule::interleaved_zero_bubble, 1, 2, 2), kPipelineLoopStepListing6);
}

}  // namespace
}  // namespace ridgeline
