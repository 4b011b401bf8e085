// scaled_dot_product_attention without a fused kernel, by version: since PyTorch 2.5 in fp32 with a softmax that minds
// rows without a key, before in the type of the operands.
#include <gtest/gtest.h>

#include <variant>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

struct MathScores {
  int wide = 0, narrow = 0, selections = 0;
  std::int64_t saved = 0;  ///< bytes of activations allocated
};

MathScores math_scores(bool in_fp32) {
  ModelDescription model = load_model("llama-7b");
  model.layers = 2;
  TrainingDescription training;
  training.sequence_length = 256;
  training.precision = Precision::bf16;
  training.math_attention_in_fp32 = in_fp32;
  const OpTrace trace = training_run(model, training, AttentionChoice::math, 1);
  MathScores result;
  for (const Call& call : trace.calls) {
    const Op& op = trace.ops[call.op];
    if (const auto* product = std::get_if<Matmul>(&op); product != nullptr && product->batch > 1)
      ++(product->type == DType::fp32 ? result.wide : result.narrow);
    if (const auto* one = std::get_if<Pointwise>(&op))
      result.selections += one->function == PointwiseFunction::masked_fill && call.phase == Phase::forward ? 1 : 0;
  }
  for (const auto& storage : trace.storages)
    if (storage.category == Category::activations) result.saved += storage.bytes;
  return result;
}

TEST(MathAttention, CastsToFp32SincePyTorch25) {
  const MathScores now = math_scores(true), before = math_scores(false);
  EXPECT_EQ(now.narrow, 0);
  EXPECT_EQ(before.wide, 0);
  EXPECT_EQ(now.wide, before.narrow) << "the same products in another type";
  EXPECT_EQ(now.selections, before.selections + 2) << "a layer selects once more: rows that see nothing become zeros";
  EXPECT_LT(before.saved, now.saved);
}

}  // namespace
}  // namespace ridgeline
