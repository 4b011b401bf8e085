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

// ScheduleGPipe and Schedule1F1B (torch/distributed/pipelining/schedules.py), three micro-batches. GPipe's first rank
// sends all and waits for its sends before the backward pass; the last receives each, waits, and waits for the
// gradients it sent at the end. 1F1B's first rank runs two forward passes, then sends and receives at once: an
// activation out, a gradient in (15 · 12 · 2 = 360 bytes each). Gradients are divided by the number of micro-batches
// one by one (scale_grads).
TEST(PipelineExchange, EachRankOfOneStage) {
  EXPECT_EQ(exchanges(PipelineSchedule::gpipe, 0, 1, 3), kPipelineExchangeListing1);
  EXPECT_EQ(exchanges(PipelineSchedule::gpipe, 1, 1, 3), kPipelineExchangeListing2);
  EXPECT_EQ(exchanges(PipelineSchedule::one_forward_one_backward, 0, 1, 3), kPipelineExchangeListing3);
  EXPECT_EQ(exchanges(PipelineSchedule::one_forward_one_backward, 1, 1, 3), kPipelineExchangeListing4);
}

}  // namespace
}  // namespace ridgeline
