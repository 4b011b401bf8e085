// Layers of a gpt2 that are split over ranks by hand.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

// Layers split as in Megatron-LM's paper (arXiv 1909.08053, figure 3), without its kernels: one of two heads, 10 of 20
// inner columns. The function before each half hands rows on and sums their gradient over ranks (15 · 12 · 2 = 360
// bytes), the one behind sums rows and hands gradients on; the bias of a row-parallel layer is added behind the sum,
// once.
TEST(TensorParallelStep, LayersOfAGpt2AreSplit) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2).changed([](OddStep& step) {
    step.training.parallel.tensor = 2;
    step.training.parallel.tensor_style = TensorStyle::by_hand;
  }),
            R"(
[forward layers.0.attention]
- linear
+ tensor_boundary
+ linear +540 addmm 15x18x12 nt bf16 (360 432 36 > 540)
- attention_fused
+ attention_fused +180 +60 +16 +8 flash_attention 3x1x5x6 causal bf16 (180 180 180 > 180 60)
- linear
+ linear +360t mm 15x12x6 nt bf16 (180 144 > 360)
+ tensor_boundary
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
+ pointwise +360t add 15x12 bf16,bf16->bf16 rows (360 24 > 360) -360
[forward layers.0.feed_forward]
- linear; pointwise; linear
+ tensor_boundary
+ linear +300 addmm 15x10x12 nt bf16 (360 240 20 > 300)
+ pointwise +300 gelu 15x10 bf16 (300 > 300)
+ linear +360t mm 15x12x10 nt bf16 (300 240 > 360)
+ tensor_boundary
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
+ pointwise +360t add 15x12 bf16,bf16->bf16 rows (360 24 > 360) -360
[backward]
- backward_first x20
+ backward_first x24
[backward final_norm]
- view_backward
[backward layers.0.feed_forward]
- addmm_backward
+ add_backward +24g sum 15x12 bf16 rows (360 > 24)
+ tensor_boundary_backward
- accumulate_grad
+ mm_backward +240g mm 12x10x15 tn bf16 (360 300 > 240) +300t mm 15x10x12 nn bf16 (360 240 > 300) -300
- pointwise_backward; addmm_backward
+ pointwise_backward +300t gelu_backward 15x10 bf16,bf16->bf16 (300 300 > 300) -300 -300
+ addmm_backward +360t mm 15x12x10 nn bf16 (300 240 > 360) +240g mm 10x12x15 tn bf16 (300 360 > 240) +20g
    sum 15x10 bf16 rows (300 > 20) -300 -360
+ accumulate_grad; view_backward; tensor_boundary_backward
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
[backward layers.0]
- view_backward
[backward layers.0.attention]
- addmm_backward
+ add_backward +24g sum 15x12 bf16 rows (360 > 24)
+ tensor_boundary_backward
- accumulate_grad
+ mm_backward +144g mm 12x6x15 tn bf16 (360 180 > 144) +180t mm 15x6x12 nn bf16 (360 144 > 180)
+ accumulate_grad
- attention_fused_backward
+ attention_fused_backward +180t +180t +180t
    flash_attention_backward 3x1x5x6 causal bf16 (180 180 180 180 180 60 > 180 180 180) -180 -540 -60 -180 -8 -16
- split_backward; addmm_backward
+ split_backward +540t cat 15x6 bf16 x3 joined (180 180 180 > 540) -180 -180 -180
+ view_backward
+ addmm_backward +360t mm 15x12x18 nn bf16 (540 432 > 360) +432g mm 18x12x15 tn bf16 (540 360 > 432) +36g
    sum 15x18 bf16 rows (540 > 36) -540 -360
+ tensor_boundary_backward
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
[backward embeddings]
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x16 -408 -168 -24 -24 -432 -36 -144 -24 -24 -24 -240 -20 -240 -24 -24 -24
)");
}

}  // namespace
}  // namespace ridgeline
