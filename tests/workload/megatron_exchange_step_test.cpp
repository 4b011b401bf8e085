// What ranks of pipelines of Megatron-LM exchange.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kMegatronExchangeStepListing1[] = R"(
pipeline_chunk
pipeline_exchange event0 wait0@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event1@3 wait1@0 sync +2
    -432
pipeline_chunk
pipeline_exchange +432 event2 wait2@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event3@3 wait3@0 sync
    +2 -432
pipeline_chunk
pipeline_exchange +432 event4 wait4@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event5@3 wait5@0 sync
    +2 -432
pipeline_chunk
pipeline_exchange event6 wait6@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event7@3 wait7@0 sync +2
    -432
pipeline_exchange +432 event8 wait8@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event9@3 wait9@0 sync
pipeline_chunk; backward_call
pipeline_exchange +432t event10 wait10@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event11@3 wait11@0
    sync -432
pipeline_chunk; backward_call
pipeline_exchange +432t event12 wait12@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event13@3 wait13@0
    sync -432
pipeline_chunk; backward_call
pipeline_exchange +432t event14 wait14@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event15@3 wait15@0
    sync
pipeline_chunk; backward_call
collective all_reduce 960 bytes fp32, 2 ranks embedding (960 > 960)
    foreach_copy 26 tensors, 2692 elements fp32 (960 336 48 48 1728 144 576 48 48 48 960 80 960 48 48 48 1728 144 576 48 48 48 960 80 960 48 480 168 24 24 864 72 288 24 24 24 480 40 480 24 24 24 864 72 288 24 24 24 480 40 480 24)
)";

constexpr char kMegatronExchangeStepListing2[] = R"(
pipeline_exchange +432t event0 wait0@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event1@3 wait1@0 sync
pipeline_chunk
pipeline_exchange +432 event2 wait2@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event3@3 wait3@0 sync
    +2 -432
pipeline_chunk
pipeline_exchange +432 event4 wait4@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event5@3 wait5@0 sync
    +2 -432
pipeline_chunk; pipeline_chunk
backward_call +4t fill 1x1 fp32 (> 4)
pipeline_exchange +432t event6 wait6@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event7@3 wait7@0 sync
    -432
pipeline_chunk; pipeline_chunk
backward_call +4t fill 1x1 fp32 (> 4)
pipeline_exchange +432t event8 wait8@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event9@3 wait9@0 sync
    -432
pipeline_chunk; backward_call
pipeline_exchange +432t event10 wait10@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event11@3 wait11@0
    sync -432
pipeline_chunk; backward_call
pipeline_exchange event12 wait12@3 send_recv 432 bytes bf16, 2 ranks pipeline@3 (432 > 432) event13@3 wait13@0 sync
    -432
collective all_reduce 960 bytes fp32, 2 ranks embedding (960 > 960)
    foreach_copy 27 tensors, 2632 elements fp32 (48 48 1728 144 576 48 48 48 960 80 960 48 48 48 1728 144 576 48 48 48 960 80 960 48 48 48 960 24 24 864 72 288 24 24 24 480 40 480 24 24 24 864 72 288 24 24 24 480 40 480 24 24 24 480)
)";

// forward_backward_pipelining_with_interleaving (megatron/core/pipeline_parallel/schedules.py), two micro-batches, two
// stages a rank. The first rank runs all four forward passes first: nothing comes to its first stage, its second waits
// for the last rank. The last rank runs two, then a forward and a backward pass in turn. A sent activation leaves one
// number (deallocate_output_tensor: 18 · 12 · 2 = 432 bytes go, 2 come), and the host synchronizes behind each exchange
// (p2p_communication.py). Both ranks have a copy of the tied table and add up its gradient (20 · 12 · 4 = 960).
TEST(MegatronExchangeStep, RanksOfTwoStages) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.model.layers = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.training.gradient_accumulation = 2;
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.parallel.pipeline = 2;
                  step.training.parallel.pipeline_rank = 0;
                  step.training.parallel.virtual_stages = 2;
                  step.training.parallel.schedule = PipelineSchedule::interleaved;
                })
                .about({"pipeline", "collective", "backward_call", "tensor_boundary"}),
            kMegatronExchangeStepListing1);
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.model.layers = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.training.gradient_accumulation = 2;
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.parallel.pipeline = 2;
                  step.training.parallel.pipeline_rank = 1;
                  step.training.parallel.virtual_stages = 2;
                  step.training.parallel.schedule = PipelineSchedule::interleaved;
                })
                .about({"pipeline", "collective", "backward_call", "tensor_boundary"}),
            kMegatronExchangeStepListing2);
}

constexpr char kMegatronExchangeStepListing3[] = R"(
pipeline_chunk
collective broadcast 80 bytes int64, 2 ranks tensor (80 > 80) copy_to_host 1x10 int64 from gpu (80) sync
    copy_to_device 1x21 int64 to gpu (168 > 168)
collective broadcast 168 bytes int64, 2 ranks tensor (168 > 168)
tensor_boundary
collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432) +48t arange 1x6 int64 (> 48) +144
    pointwise 3x6 int64 rows (48 > 144)
tensor_boundary
collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
tensor_boundary
collective all_reduce 432 bytes bf16, 2 ranks tensor (432 > 432)
pipeline_exchange event0 wait0@4 send_recv 216 bytes bf16, 2 ranks pipeline@4 (432 > 432) event1@4 wait1@0 sync +2
    -432
pipeline_exchange +216t event2 wait2@4 send_recv 216 bytes bf16, 2 ranks pipeline@4 (216 > 216) event3@4 wait3@0 sync
pipeline_chunk +432
collective all_gather 432 bytes bf16, 2 ranks tensor (216 > 432) -216
backward_call
collective event4 wait4@1 all_reduce 432 bytes bf16, 2 ranks tensor@1 (432 > 432) event5@1 +240g
    mm 10x12x18 tn bf16 (360 432 > 240) wait5@0 -360 -432
collective event6 wait6@1 all_reduce 432 bytes bf16, 2 ranks tensor@1 (432 > 432) event7@1 +432g
    mm 18x12x18 tn bf16 (648 432 > 432) wait7@0 +36g sum 18x18 bf16 rows (648 > 36) -648 -432
tensor_boundary_backward
collective all_reduce 576 bytes fp32, 2 ranks embedding (576 > 576)
    foreach_copy 14 tensors, 856 elements fp32 (576 336 48 48 864 72 288 48 48 48 480 40 480 48 288 168 24 24 432 36 144 24 24 24 240 20 240 24)
)";

// Each of two tensor parallel ranks sends its half of an activation (216 of 432 bytes), and receivers gather both
// (scatter_gather_tensors in p2p_communication.py of Megatron-LM 3). Sizes and tokens of a batch are broadcast among
// tensor parallel ranks; the embedding and both halves of the block are summed over them, backward beside the weight's
// product.
TEST(MegatronExchangeStep, TensorRanksSendAPart) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.model.layers = 2;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.training.gradient_accumulation = 1;
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.parallel.pipeline = 2;
                  step.training.parallel.pipeline_rank = 0;
                  step.training.parallel.virtual_stages = 1;
                  step.training.parallel.tensor = 2;
                })
                .about({"pipeline", "collective", "backward_call", "tensor_boundary"}),
            kMegatronExchangeStepListing3);
}

}  // namespace
}  // namespace ridgeline
