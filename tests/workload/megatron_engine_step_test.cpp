// The loss of TransformerEngine under Megatron-LM.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

// cross_entropy_forward of TransformerEngine (transformer_engine/pytorch/triton/cross_entropy.py): losses (18 · 4 = 72
// bytes) and, for each row, maximum, sum and target's score (3 · 18 · 4 = 216) start as zeros; one kernel fills these,
// the second writes losses and, over the logits in bf16, their gradient. Backward a gradient that is not the number one
// multiplies them: torch.equal is asked with a tensor made on the host, for whose copy the host waits.
TEST(MegatronEngineStep, LossesAndGradientsAreOfTwoKernels) {
  EXPECT_EQ(OddStep(ModelFamily::gpt2)
                .but([](OddStep& step) {
                  step.training.parallel.framework = Framework::megatron;
                  step.training.parallel.vocabulary_multiple = 4;
                  step.training.sequence_length = 6;
                  step.training.precision = Precision::amp_bf16;
                  step.model.dropout = 0.1;
                  step.model.attention_dropout = 0.1;
                })
                .but([](OddStep& step) { step.training.parallel.transformer_engine = true; })
                .changed([](OddStep& step) { step.training.parallel.cross_entropy_fusion = true; }),
            R"(
[forward head]
- megatron_linear; cast
+ megatron_linear +720 mm 18x20x12 nt bf16 (432 480 > 720)
- pointwise x10; pointwise x5; masked_fill; pointwise x5
+ pointwise x2 +72t fill 1x18 fp32 (> 72) +216t fill 1x54 fp32 (> 216)
    triton_red_fused_online_softmax 18x20 bf16, 2 in, 1 out 10 instructions (720 144 > 216)
    triton_red_fused_cross_entropy 18x20 bf16, 3 in, 2 out 10 instructions (720 144 216 > 720 72)
+ pointwise x5 +72t fill 1x18 fp32 (> 72) +72t mul 1x18 fp32,fp32->fp32 (72 72 > 72) +4t +4t sum 1x18 fp32 (72 > 4)
    sum 1x18 fp32 (72 > 4) +4t div 1x1 fp32,fp32->fp32 (4 4 > 4) -4 -4 -72 -72 -216 -72
[backward]
- pointwise_backward x4
[backward head]
- pointwise x6; cast_backward
+ pointwise_backward x4 +72t mul 1x18 fp32 broadcast (4 > 72)
+ pointwise +4t copy_to_device 1x1 fp32 to gpu (4 > 4) sync
    triton_red_fused_element_mul 18x20 bf16, 2 in, 1 out 2 instructions (720 72 > 720) -4 -72 -4
)");
}

}  // namespace
}  // namespace ridgeline
