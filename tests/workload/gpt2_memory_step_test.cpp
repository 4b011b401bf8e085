// What a small gpt2 keeps for its backward pass and runs again, and gradients that stay.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

const OddStep kKeptGpt2(ModelFamily::gpt2);

// torch.utils.checkpoint without reentry: forward nothing of the block stays but its input; the first tensor that
// backward asks for runs the block again, which stops behind the last tensor that is needed: the second linear of the
// feed-forward part does not run. What each operation keeps is freed in another order, for checkpoint holds it.
TEST(Gpt2MemoryStep, ACheckpointedBlockKeepsItsInputAndRunsAgain) {
  EXPECT_EQ(
      kKeptGpt2.changed([](OddStep& step) { step.training.activation_checkpointing = ActivationCheckpointing::block; }),
      R"(
[forward layers.0]
- layer_norm
[forward layers.0.attention]
- linear
+ checkpoint_segment
[forward layers.0]
+ layer_norm +360t +60t +60t native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -60 -60
[forward layers.0.attention]
+ linear +1080t addmm 15x36x12 nt bf16 (360 864 72 > 1080)
- attention_fused
+ attention_fused +360t +120t +16t +8t flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120) -120 -16 -8
- dropout_off
[forward layers.0]
- pointwise; layer_norm
[forward layers.0.feed_forward]
- linear; pointwise
+ dropout_off -1080 -360 -360
[forward layers.0]
+ pointwise +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ layer_norm +360t +60t +60t native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60) -60 -60
[forward layers.0.feed_forward]
+ linear +600t addmm 15x20x12 nt bf16 (360 480 40 > 600) -360
+ pointwise +600t gelu 15x20 bf16 (600 > 600) -600
- dropout_off
[forward layers.0]
- pointwise
+ dropout_off -600
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward; checkpoint_recompute
[backward layers.0]
+ layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward layers.0.attention]
+ linear +1080 addmm 15x36x12 nt bf16 (360 864 72 > 1080)
+ split; view; transpose; view; transpose; view; transpose
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
+ transpose; view; view
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ dropout_off
[backward layers.0]
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360
+ layer_norm +360 +60 +60 native_layer_norm 15x12 bf16 (360 24 24 > 360 60 60)
[backward layers.0.feed_forward]
+ linear +600 addmm 15x20x12 nt bf16 (360 480 40 > 600)
+ pointwise +600 gelu 15x20 bf16 (600 > 600)
+ linear +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g mm 12x20x15 tn bf16 (360 600 > 480) -600 +24g
    sum 15x12 bf16 rows (360 > 24)
- addmm_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480g mm 20x12x15 tn bf16 (600 360 > 480) -360 +40g
    sum 15x20 bf16 rows (600 > 40) -600
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -60 -60
    -360 -360
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    flash_attention_backward 3x2x5x6 causal bf16 (360 360 360 360 360 120 > 360 360 360) -16 -8 -360 -120 -1080 -360
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864g mm 36x12x15 tn bf16 (1080 360 > 864) -360 +72g
    sum 15x36 bf16 rows (1080 > 72) -1080
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24g +24g native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -60 -60
    -360 -360
)");
}

// torchtitan's policy for create_selective_checkpoint_contexts (torch/utils/checkpoint.py) saves what every second
// product and attention gave: these results (1080, 600, 360 bytes) stay and are not computed again; the host still
// makes the calls. Without early stop the last product and the sum run again too.
TEST(Gpt2MemoryStep, ABlockMayKeepWhatEverySecondProductGave) {
  EXPECT_EQ(
      kKeptGpt2
          .but([](OddStep& step) {
            step.model.bias = false;
            step.training.activation_checkpointing = ActivationCheckpointing::block;
          })
          .changed([](OddStep& step) { step.training.activation_checkpointing = ActivationCheckpointing::operations; }),
      R"(
[forward layers.0.attention]
- linear
+ linear +1080 mm 15x36x12 nt bf16 (360 864 > 1080)
- attention_fused
+ attention_fused +360 +120 +16 +8 flash_attention 3x2x5x6 causal bf16 (360 360 360 > 360 120)
- dropout_off
+ dropout_off -360
[forward layers.0.feed_forward]
- linear; pointwise
+ linear +600 mm 15x20x12 nt bf16 (360 480 > 600) -360
+ pointwise +600t gelu 15x20 bf16 (600 > 600)
[backward layers.0.attention]
- linear
+ linear
- attention_fused
+ attention_fused
[backward layers.0.feed_forward]
- linear
+ linear
)");
  EXPECT_EQ(
      kKeptGpt2.but([](OddStep& step) { step.training.activation_checkpointing = ActivationCheckpointing::block; })
          .changed([](OddStep& step) { step.training.checkpoint_stops_early = false; }),
      R"(
[backward layers.0.feed_forward]
- linear
+ linear +360 addmm 15x12x20 nt bf16 (600 480 24 > 360)
+ dropout_off
[backward layers.0]
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360 +600t mm 15x20x12 nn bf16 (360 480 > 600) +480g
    mm 12x20x15 tn bf16 (360 600 > 480) -600 +24g sum 15x12 bf16 rows (360 > 24)
)");
}

// AccumulateGrad adds in place to a gradient that is there (torch/csrc/autograd/functions/accumulate_grad.h): new ones
// are temporaries of the size of the weight and go.
TEST(Gpt2MemoryStep, GradientsThatAreKeptAreAddedTo) {
  EXPECT_EQ(kKeptGpt2.changed([](OddStep& step) { step.training.clears_gradients = false; }), R"(
[backward final_norm]
- layer_norm_backward
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
[backward layers.0.feed_forward]
- addmm_backward
+ addmm_backward +600t mm 15x20x12 nn bf16 (360 480 > 600) +480t mm 12x20x15 tn bf16 (360 600 > 480) +24t
    sum 15x12 bf16 rows (360 > 24) -600
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ accumulate_grad_add add_ 12x20 bf16,bf16->bf16 (480 480 > 480) -480
- addmm_backward
+ addmm_backward +360t mm 15x12x20 nn bf16 (600 480 > 360) +480t mm 20x12x15 tn bf16 (600 360 > 480) +40t
    sum 15x20 bf16 rows (600 > 40) -600 -360
+ accumulate_grad_add add_ 1x20 bf16,bf16->bf16 (40 40 > 40) -40
+ accumulate_grad_add add_ 20x12 bf16,bf16->bf16 (480 480 > 480) -480
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288t mm 12x12x15 tn bf16 (360 360 > 288) +24t
    sum 15x12 bf16 rows (360 > 24)
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ accumulate_grad_add add_ 12x12 bf16,bf16->bf16 (288 288 > 288) -288
- addmm_backward
+ addmm_backward +360t mm 15x12x36 nn bf16 (1080 864 > 360) +864t mm 36x12x15 tn bf16 (1080 360 > 864) +72t
    sum 15x36 bf16 rows (1080 > 72) -1080 -360
+ accumulate_grad_add add_ 1x36 bf16,bf16->bf16 (72 72 > 72) -72
+ accumulate_grad_add add_ 36x12 bf16,bf16->bf16 (864 864 > 864) -864
[backward layers.0]
- layer_norm_backward
+ layer_norm_backward +360t +24t +24t native_layer_norm_backward 15x12 bf16 (360 360 24 60 60 > 360 24 24) -360 -360
    -60 -60
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
+ accumulate_grad_add add_ 1x12 bf16,bf16->bf16 (24 24 > 24) -24
[backward embeddings]
- embedding_backward
+ embedding_backward +168t embedding_dense_backward 5 of 7x12 bf16 (120 40 > 168) -120 -40
+ accumulate_grad_add add_ 7x12 bf16,bf16->bf16 (168 168 > 168) -168
- fan_in_add; accumulate_grad; per_parameter_zero_grad x16
+ fan_in_add +408t add 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -408
+ accumulate_grad
+ accumulate_grad_add add_ 17x12 bf16,bf16->bf16 (408 408 > 408) -408 -2 -2
)");
}

}  // namespace
}  // namespace ridgeline
