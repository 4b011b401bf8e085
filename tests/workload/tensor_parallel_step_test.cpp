// Layers of networks that are split over ranks by hand.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::odd_composition;

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
[backward layers.0]
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
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
[backward layers.0]
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
[backward embeddings]
- per_parameter_zero_grad x16
+ per_parameter_zero_grad x16 -408 -168 -24 -24 -432 -36 -144 -24 -24 -24 -240 -20 -240 -24 -24 -24
)");
}

TEST(TensorParallelStep, HalvesOfABertAreSplit) {
  EXPECT_EQ(OddStep(ModelFamily::bert)
                .but([](OddStep& step) { step.model.head = ModelHead::sequence_classification; })
                .changed([](OddStep& step) {
                  step.training.parallel.tensor = 2;
                  step.training.parallel.tensor_style = TensorStyle::by_hand;
                }),
            R"(
[forward layers.0.attention]
- linear
+ tensor_boundary
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- linear
+ linear +180 addmm 15x6x12 nt bf16 (360 144 12 > 180)
- attention_fused
+ attention_fused +180 +60 +16 +8 flash_attention 3x1x5x6 bf16 (180 180 180 > 180 60)
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
- backward_first x27
+ backward_first x31
[backward layers.0.feed_forward]
- view_backward; addmm_backward
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
[backward layers.0.attention]
- view_backward; addmm_backward
+ add_backward +24g sum 15x12 bf16 rows (360 > 24)
+ tensor_boundary_backward
- accumulate_grad
+ mm_backward +144g mm 12x6x15 tn bf16 (360 180 > 144) +180t mm 15x6x12 nn bf16 (360 144 > 180)
+ accumulate_grad
- attention_fused_backward
+ attention_fused_backward +180t +180t +180t
    flash_attention_backward 3x1x5x6 bf16 (180 180 180 180 180 60 > 180 180 180) -180 -180 -180 -180 -60 -180 -8 -16
- addmm_backward
+ view_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- fan_in_add; addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180
- fan_in_add
+ fan_in_add +360t add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -360
- addmm_backward
+ addmm_backward +360t mm 15x12x6 nn bf16 (180 144 > 360) +144g mm 6x12x15 tn bf16 (180 360 > 144) +12g
    sum 15x6 bf16 rows (180 > 12) -180 -360
+ tensor_boundary_backward
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
+ fan_in_add add_ 15x12 bf16,bf16->bf16 (360 360 > 360) -360
[backward embeddings]
- per_parameter_zero_grad x25
+ per_parameter_zero_grad x25 -408 -168 -72 -24 -24 -144 -12 -144 -12 -144 -12 -144 -24 -24 -24 -240 -20 -240 -24 -24
    -24 -288 -24 -96 -8
)");
}

TEST(TensorParallelStep, LayersOfACompositionAreSplit) {
  EXPECT_EQ(OddStep(odd_composition("projection: fused, feed_forward_kind: gated, looks_for_documents: false"))
                .changed([](OddStep& step) {
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
- linear; pointwise; linear; pointwise; linear
+ tensor_boundary
+ linear +300 addmm 15x10x12 nt bf16 (360 240 20 > 300)
+ pointwise +300 gelu 15x10 bf16 (300 > 300)
+ linear +300 addmm 15x10x12 nt bf16 (360 240 20 > 300)
+ pointwise +300 mul 15x10 bf16,bf16->bf16 (300 300 > 300)
+ linear +360t mm 15x12x10 nt bf16 (300 240 > 360)
+ tensor_boundary
+ collective all_reduce 360 bytes bf16, 2 ranks tensor (360 > 360)
+ pointwise +360t add 15x12 bf16,bf16->bf16 rows (360 24 > 360) -360
[backward]
- backward_first x25
+ backward_first x29
[backward final_norm]
- view_backward
[backward layers.0.feed_forward]
- addmm_backward
+ add_backward +24g sum 15x12 bf16 rows (360 > 24)
+ tensor_boundary_backward
- accumulate_grad
+ mm_backward +240g mm 12x10x15 tn bf16 (360 300 > 240) +300t mm 15x10x12 nn bf16 (360 240 > 300) -300
- pointwise_backward; addmm_backward
+ pointwise_backward +300t mul 15x10 bf16,bf16->bf16 (300 300 > 300) +300t mul 15x10 bf16,bf16->bf16 (300 300 > 300)
    -300 -300 -300
+ addmm_backward +360t mm 15x12x10 nn bf16 (300 240 > 360) +240g mm 10x12x15 tn bf16 (300 360 > 240) +20g
    sum 15x10 bf16 rows (300 > 20) -300
- pointwise_backward
+ accumulate_grad
- addmm_backward
+ pointwise_backward +300t gelu_backward 15x10 bf16,bf16->bf16 (300 300 > 300) -300 -300
+ view_backward
+ addmm_backward +360t mm 15x12x10 nn bf16 (300 240 > 360) +240g mm 10x12x15 tn bf16 (300 360 > 240) +20g
    sum 15x10 bf16 rows (300 > 20) -300 -360
+ tensor_boundary_backward
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
- per_parameter_zero_grad x17
+ per_parameter_zero_grad x17 -408 -432 -36 -144 -24 -24 -24 -240 -20 -240 -20 -240 -24 -24 -24 -24 -24
)");
}

constexpr char kTensorParallelStepListing1[] = R"(
[forward layers.0.attention]
- linear
+ tensor_boundary
+ linear +540t mm 15x18x36 nt bf16 (1080 1296 > 540)
- linear
+ linear +180t mm 15x6x36 nt bf16 (1080 432 > 180)
- linear
+ linear +180 mm 15x6x36 nt bf16 (1080 432 > 180)
- concatenate
+ concatenate +540t mul 45x6 bf16,bf16->bf16 broadcast (540 60 > 540) +270t scale 45x3 bf16 strided (270 > 270) +540t
    cat 45x3 bf16 x2 joined (270 270 > 540) -270 +540t mul 9x30 bf16,bf16->bf16 rows (540 60 > 540) -540 +540
    add 45x6 bf16,bf16->bf16 strided (540 540 > 540) -540 -540
- concatenate; attention_fused
+ concatenate +180t mul 3x30 bf16,bf16->bf16 rows (180 60 > 180) +90t scale 15x3 bf16 strided (90 > 90) +180t
    cat 15x3 bf16 x2 joined (90 90 > 180) -90 +180t mul 3x30 bf16,bf16->bf16 rows (180 60 > 180) -180 +180
    add 15x6 bf16,bf16->bf16 (180 180 > 180) -180 -180 -540 -180
+ attention_fused +540 +180 +16 +8 flash_attention 3x3x5x6 causal bf16 kv1 (540 180 180 > 540 180)
- linear
+ linear +1080t mm 15x36x18 nt bf16 (540 1296 > 1080)
+ tensor_boundary
+ collective all_reduce 1080 bytes bf16, 2 ranks tensor (1080 > 1080)
[forward layers.0.feed_forward]
- linear; pointwise; linear; pointwise; linear
+ tensor_boundary
+ linear +300 mm 15x10x36 nt bf16 (1080 720 > 300)
+ pointwise +300 silu 15x10 bf16 (300 > 300)
+ linear +300 mm 15x10x36 nt bf16 (1080 720 > 300)
+ pointwise +300 mul 15x10 bf16,bf16->bf16 (300 300 > 300)
+ linear +1080t mm 15x36x10 nt bf16 (300 720 > 1080)
+ tensor_boundary
+ collective all_reduce 1080 bytes bf16, 2 ranks tensor (1080 > 1080)
[backward final_norm]
+ tensor_boundary_backward
[backward layers.0.feed_forward]
- mm_backward
+ mm_backward +720g mm 36x10x15 tn bf16 (1080 300 > 720) +300t mm 15x10x36 nn bf16 (1080 720 > 300) -300
- pointwise_backward
+ pointwise_backward +300t mul 15x10 bf16,bf16->bf16 (300 300 > 300) +300t mul 15x10 bf16,bf16->bf16 (300 300 > 300)
    -300 -300 -300
- mm_backward
+ mm_backward +720g mm 10x36x15 tn bf16 (300 1080 > 720) +1080t mm 15x36x10 nn bf16 (300 720 > 1080) -300
- pointwise_backward
+ pointwise_backward +300t silu_backward 15x10 bf16,bf16->bf16 (300 300 > 300) -300 -300
- mm_backward
+ mm_backward +720g mm 10x36x15 tn bf16 (300 1080 > 720) +1080t mm 15x36x10 nn bf16 (300 720 > 1080) -300 -1080
+ tensor_boundary_backward
[backward layers.0]
+ collective all_reduce 1080 bytes bf16, 2 ranks tensor (1080 > 1080)
+ tensor_boundary_backward
[backward layers.0.attention]
- mm_backward
+ mm_backward +1296g mm 36x18x15 tn bf16 (1080 540 > 1296) +540t mm 15x18x36 nn bf16 (1080 1296 > 540)
- attention_fused_backward
+ attention_fused_backward +540t +180t +180t
    flash_attention_backward 3x3x5x6 causal bf16 kv1 (540 540 180 180 540 180 > 540 180 180) -540 -180 -540 -180 -180
    -540 -8 -16
- pointwise_backward
+ pointwise_backward +180t mul 3x30 bf16,bf16->bf16 rows (180 60 > 180)
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward; fan_in_add
+ pointwise_backward +90t scale 15x3 bf16 strided (90 > 90)
+ pointwise_backward +180t fill 15x6 bf16 (> 180) copy 15x3 bf16 permuted (90 > 180) -90
+ pointwise_backward +180t fill 15x6 bf16 (> 180) copy 15x3 bf16 permuted (90 > 180) -180
+ fan_in_add add_ 15x6 bf16,bf16->bf16 (180 180 > 180) -180
+ pointwise_backward +180t mul 3x30 bf16,bf16->bf16 rows (180 60 > 180) -180
+ fan_in_add add_ 15x6 bf16,bf16->bf16 (180 180 > 180) -180
- pointwise_backward
+ pointwise_backward +540t mul 45x6 bf16,bf16->bf16 broadcast (540 60 > 540) -60
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward; fan_in_add
+ pointwise_backward +270t scale 45x3 bf16 strided (270 > 270)
+ pointwise_backward +540t fill 45x6 bf16 (> 540) copy 45x3 bf16 permuted (270 > 540) -270
+ pointwise_backward +540t fill 45x6 bf16 (> 540) copy 45x3 bf16 permuted (270 > 540) -540
+ fan_in_add add_ 45x6 bf16,bf16->bf16 (540 540 > 540) -540
+ pointwise_backward +540t mul 45x6 bf16,bf16->bf16 broadcast (540 60 > 540) -540 -60
+ fan_in_add add_ 45x6 bf16,bf16->bf16 strided (540 540 > 540) -540
- mm_backward
+ mm_backward +432g mm 6x36x15 tn bf16 (180 1080 > 432) +1080t mm 15x36x6 nn bf16 (180 432 > 1080) -180
- view_backward_copy; mm_backward
+ mm_backward +432g mm 6x36x15 tn bf16 (180 1080 > 432) +1080t mm 15x36x6 nn bf16 (180 432 > 1080) -180
- view_backward_copy
+ view_backward_copy +540t copy 45x6 bf16 permuted (540 > 540) -540
- mm_backward
+ mm_backward +1296g mm 18x36x15 tn bf16 (540 1080 > 1296) +1080t mm 15x36x18 nn bf16 (540 1296 > 1080) -540 -1080
+ tensor_boundary_backward
[backward layers.0]
+ collective all_reduce 1080 bytes bf16, 2 ranks tensor (1080 > 1080)
[backward embeddings]
- per_parameter_zero_grad x12
+ per_parameter_zero_grad x12 -1224 -72 -1296 -432 -432 -1296 -72 -720 -720 -720 -72 -1224
)";

TEST(TensorParallelStep, LayersOfALlamaAreSplit) {
  EXPECT_EQ(OddStep(ModelFamily::llama).but([](OddStep& step) { step.model.plain = true; }).changed([](OddStep& step) {
    step.training.parallel.tensor = 2;
    step.training.parallel.tensor_style = TensorStyle::by_hand;
  }),
            kTensorParallelStepListing1);
}

}  // namespace
}  // namespace ridgeline
