// A step of a rank of a pipeline: what it computes and exchanges.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

constexpr char kPipelineStepListing1[] = R"(
pipeline_chunk
[other]
pipeline_exchange event0 wait0@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event1@1 wait1@0
pipeline_chunk
[forward layers.1]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward layers.1.attention]
linear +1080 mm 15x36x12 nt bf16 (360 864 > 1080)
split; view; transpose; view; transpose; view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t mm 15x12x12 nt bf16 (360 288 > 360)
dropout_off
[forward layers.1]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward layers.1.feed_forward]
linear +600 mm 15x20x12 nt bf16 (360 480 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t mm 15x12x20 nt bf16 (600 480 > 360)
dropout_off
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward final_norm]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward head]
linear +510t mm 15x17x12 nt bf16 (360 408 > 510)
view; view
[forward]
cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2 +2 nll_loss 15x17 bf16 (510 120 > 2)
pipeline_chunk; backward_call
[backward]
backward_first x15 +2t fill 1x1 bf16 (> 2)
nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2
log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
view_backward; view_backward
[backward head]
mm_backward +408g mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
view_backward; view_backward; accumulate_grad
[backward final_norm]
layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
accumulate_grad; add_backward; view_backward
[backward layers.1.feed_forward]
mm_backward +480g mm 12x20x15 tn bf16 (360 600 > 480) +600t mm 15x20x12 nn bf16 (360 480 > 600) -600
view_backward; view_backward; accumulate_grad
pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
mm_backward +480g mm 20x12x15 tn bf16 (600 360 > 480) +360t mm 15x12x20 nn bf16 (600 480 > 360) -600 -360
view_backward; view_backward; accumulate_grad
[backward layers.1]
layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; add_backward; view_backward
[backward layers.1.attention]
mm_backward +288g mm 12x12x15 tn bf16 (360 360 > 288) +360t mm 15x12x12 nn bf16 (360 288 > 360)
view_backward; view_backward; accumulate_grad; view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
split_backward +1080t cat 15x12 bf16 x3 joined (360 360 360 > 1080) -360 -360 -360
view_backward
mm_backward +864g mm 36x12x15 tn bf16 (1080 360 > 864) +360t mm 15x12x36 nn bf16 (1080 864 > 360) -1080 -360
view_backward; view_backward; accumulate_grad
[backward layers.1]
layer_norm_backward +360t +24g native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad
accumulate_grad -2
[backward]
pipeline_exchange event2 wait2@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event3@1 wait3@0
pipeline_chunk
[forward layers.1]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward layers.1.attention]
linear +1080 mm 15x36x12 nt bf16 (360 864 > 1080)
split; view; transpose; view; transpose; view; transpose
attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
transpose; view; view
linear +360t mm 15x12x12 nt bf16 (360 288 > 360)
dropout_off
[forward layers.1]
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward layers.1.feed_forward]
linear +600 mm 15x20x12 nt bf16 (360 480 > 600)
pointwise +600 gelu 15x20 bf16 (600 > 600)
linear +360t mm 15x12x20 nt bf16 (600 480 > 360)
dropout_off
pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[forward final_norm]
layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 without bias (360 24 > 360 60 60)
[forward head]
linear +510 mm 15x17x12 nt bf16 (360 408 > 510) -510
view; view
[forward]
cross_entropy +510 log_softmax 15x17 bf16 (510 > 510) +2 +2 nll_loss 15x17 bf16 (510 120 > 2)
pipeline_chunk; per_parameter_accumulate x8
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
nll_backward +510t nll_loss_backward 15x17 bf16 (2 120 > 510) -2
log_softmax_backward +510t log_softmax_backward 15x17 bf16 (510 510 > 510) -510 -510
view_backward; view_backward
[backward head]
mm_backward +408t mm 17x12x15 tn bf16 (510 360 > 408) +360t mm 15x12x17 nn bf16 (510 408 > 360) -510 -360
view_backward; view_backward; accumulate_grad
accumulate_grad_add add_ 17x12 bf16,bf16->bf16 (408 408 > 408) -408
[backward final_norm]
layer_norm_backward +360t +24t native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
accumulate_grad
accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
add_backward; view_backward
[backward layers.1.feed_forward]
mm_backward +480t mm 12x20x15 tn bf16 (360 600 > 480) +600t mm 15x20x12 nn bf16 (360 480 > 600) -600
view_backward; view_backward; accumulate_grad
accumulate_grad_add add_ 12x20 bf16,bf16->bf16 (480 480 > 480) -480
pointwise_backward +600t gelu_backward 15x20 bf16,bf16->bf16 (600 600 > 600) -600 -600
view_backward
mm_backward +480t mm 20x12x15 tn bf16 (600 360 > 480) +360t mm 15x12x20 nn bf16 (600 480 > 360) -600 -360
view_backward; view_backward; accumulate_grad
accumulate_grad_add add_ 20x12 bf16,bf16->bf16 (480 480 > 480) -480
[backward layers.1]
layer_norm_backward +360t +24t native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -360 -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad
accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
add_backward; view_backward
[backward layers.1.attention]
mm_backward +288t mm 12x12x15 tn bf16 (360 360 > 288) +360t mm 15x12x12 nn bf16 (360 288 > 360)
view_backward; view_backward; accumulate_grad
accumulate_grad_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
view_backward; view_backward
attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -360 -1080 -120 -360 -8 -16
view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
split_backward +1080t cat 15x12 bf16 x3 joined (360 360 360 > 1080) -360 -360 -360
view_backward
mm_backward +864t mm 36x12x15 tn bf16 (1080 360 > 864) +360t mm 15x12x36 nn bf16 (1080 864 > 360) -1080 -360
view_backward; view_backward; accumulate_grad
accumulate_grad_add add_ 36x12 bf16,bf16->bf16 (864 864 > 864) -864
[backward layers.1]
layer_norm_backward +360t +24t native_layer_norm_backward 15x12 bf16 without bias (360 360 24 60 60 > 360 24) -360
    -60 -60
fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
accumulate_grad; accumulate_grad
accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24 -2 -360
[backward]
pipeline_exchange event4 wait4@1 send_recv 360 bytes bf16, 2 ranks pipeline@1 (360 > 360) event5@1 wait5@0
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 36x12 bf16 (864 > 864)
optimizer_op scale 12x12 bf16 (288 > 288)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 20x12 bf16 (480 > 480)
optimizer_op scale 12x20 bf16 (480 > 480)
optimizer_op scale 1x12 bf16 (24 > 24)
optimizer_op scale 17x12 bf16 (408 > 408) -2 -2 -510 -360
per_parameter_zero_grad x8 -24 -864 -288 -24 -480 -480 -24 -408
)";

TEST(PipelineStep, TheLastRankOf1F1BTakesTurns) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.model.layers = 2;
                  step.model.bias = false;
                  step.model.tie_embeddings = false;
                  step.training.gradient_accumulation = 2;
                  step.training.parallel.pipeline = 2;
                  step.training.parallel.pipeline_rank = 1;
                  step.training.parallel.schedule = PipelineSchedule::one_forward_one_backward;
                  step.training.parallel.virtual_stages = 1;
                })
                .text(),
            kPipelineStepListing1);
}

}  // namespace
}  // namespace ridgeline
