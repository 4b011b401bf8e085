// What Megatron-LM keeps and copies in fp32 beside parameters and logits of 16 bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/training_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kTokens = 32;

TrainingDescription in_fp16() {
  TrainingDescription t;
  t.micro_batch = 2, t.sequence_length = kTokens, t.precision = Precision::amp_fp16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.framework = Framework::megatron;
  return t;
}

/// A table of 1,000 words is padded to 1,024.
OpTrace trained(const TrainingDescription& t) {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = 3, model.heads = 8, model.hidden = 64, model.feed_forward = 256;
  model.vocabulary = 1000, model.max_positions = kTokens;
  return testing_support::checked(training_run(model, t, AttentionChoice::flash));
}

std::int64_t state(const OpTrace& trace) {
  std::int64_t sum = 0;
  for (const Storage& storage : trace.storages)
    sum += storage.category == Category::optimizer_state ? storage.bytes : 0;
  return sum;
}

TEST(MegatronPrecision, without_fp32_copies_megatron_updates_parameters_themselves) {
  TrainingDescription t = in_fp16();
  const OpTrace with = trained(t);
  t.parallel.fp32_copies = false;
  const OpTrace without = trained(t);
  EXPECT_EQ(state(with) - state(without), 4 * with.parameters);
  const auto looks = [](const OpTrace& trace) {
    return std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
      const auto* list = std::get_if<MultiTensor>(&op);
      return list != nullptr && list->function == MultiTensorFunction::unscale;
    });
  };
  EXPECT_TRUE(looks(with));
  EXPECT_FALSE(looks(without));
}

// --fp16-lm-cross-entropy: no copy of the logits in fp32, whose bytes are twice those of the logits.
TEST(MegatronPrecision, a_loss_in_16_bits_copies_no_logits) {
  constexpr std::int64_t kSequences = 5;  // so that nothing else is as large
  const std::int64_t logits = kSequences * kTokens * 1024;
  const auto wide = [&](const OpTrace& trace) {
    return std::any_of(trace.storages.begin(), trace.storages.end(),
                       [&](const Storage& storage) { return storage.bytes == 4 * logits; });
  };
  TrainingDescription t = in_fp16();
  t.micro_batch = kSequences;
  EXPECT_TRUE(wide(trained(t)));
  t.parallel.fp16_cross_entropy = true;
  EXPECT_FALSE(wide(trained(t)));
}

// Its losses are in 16 bits and made wide before their mean, so that autograd hands their gradient back in 16 bits: no
// kernel over the logits reads numbers of another type.
TEST(MegatronPrecision, a_loss_in_16_bits_has_a_gradient_in_16_bits) {
  constexpr std::int64_t kSequences = 5, kLogits = kSequences * kTokens * 1024;
  TrainingDescription t = in_fp16();
  t.micro_batch = kSequences;
  t.parallel.fp16_cross_entropy = true;
  int over_logits = 0;
  for (const Op& op : trained(t).ops) {
    const auto* kernel = std::get_if<Pointwise>(&op);
    if (kernel == nullptr || kernel->elements() != kLogits) continue;
    ++over_logits;
    for (int i = 0; i < kernel->input_count; ++i) EXPECT_EQ(kernel->inputs[i], DType::fp16);
    EXPECT_EQ(kernel->output, DType::fp16);
  }
  EXPECT_GE(over_logits, 4) << "less the largest, the exponential, over the sum, times the gradient";
}

}  // namespace
}  // namespace ridgeline
