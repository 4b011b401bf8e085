// Direct preference optimization: two passes of the trained network's size, of which one has a backward pass.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline::preferences {
namespace {

TrainingDescription pairs_of(std::optional<PreferenceDescription> preference, bool lora = false) {
  TrainingDescription training;
  training.micro_batch = 4;
  training.sequence_length = 128;
  training.precision = Precision::amp_bf16;
  training.preference = preference;
  if (lora) training.lora.emplace();
  return training;
}

OpTrace run_pairs(std::optional<PreferenceDescription> preference, bool lora = false) {
  return training_run(load_model("smollm2-135m"), pairs_of(preference, lora), AttentionChoice::flash);
}

struct Sums {
  std::int64_t attention = 0, attention_backward = 0, weights = 0;
};
Sums sums_of(const OpTrace& trace) {
  Sums sums;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const auto* attention = std::get_if<Attention>(&trace.ops[trace.calls[trace.records[i].index].op]);
    if (attention != nullptr) ++(attention->backward ? sums.attention_backward : sums.attention);
  }
  for (const Storage& storage : trace.storages)
    if (storage.category == Category::weights) sums.weights += storage.bytes;
  return sums;
}

TEST(Preference, TheReferenceRunsForwardAloneBesideItsOwnWeights) {
  const Sums plain = sums_of(run_pairs(std::nullopt)), pairs = sums_of(run_pairs(PreferenceDescription{}));
  EXPECT_EQ(pairs.attention, 2 * plain.attention);
  EXPECT_EQ(pairs.attention_backward, plain.attention_backward);
  EXPECT_EQ(pairs.weights, 2 * plain.weights);
}

TEST(Preference, PrecomputedLogProbabilitiesNeedNoReference) {
  const Sums plain = sums_of(run_pairs(std::nullopt)),
             pairs = sums_of(run_pairs(PreferenceDescription{ReferenceModel::precomputed}));
  EXPECT_EQ(pairs.attention, plain.attention);
  EXPECT_EQ(pairs.weights, plain.weights);
}

TEST(Preference, UnderAdaptersTheNetworkWithoutThemIsTheReference) {
  const OpTrace plain = run_pairs(std::nullopt, true), pairs = run_pairs(PreferenceDescription{}, true);
  EXPECT_EQ(sums_of(pairs).attention, 2 * sums_of(plain).attention);
  EXPECT_EQ(sums_of(pairs).weights, sums_of(plain).weights);
  // Products of the second pass are those of the layers, without the two of each adapter.
  const auto products = [](const OpTrace& trace) {
    std::int64_t count = 0;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
      if (trace.records[i].kind == Record::Kind::op) {
        const Call& call = trace.calls[trace.records[i].index];
        count += call.phase == Phase::forward && std::holds_alternative<Matmul>(trace.ops[call.op]) ? 1 : 0;
      }
    return count;
  };
  constexpr std::int64_t kBlocks = 30, kAdapted = 2;
  EXPECT_EQ(2 * products(plain) - products(pairs), kBlocks * kAdapted * 2);
}

}  // namespace
}  // namespace ridgeline::preferences
