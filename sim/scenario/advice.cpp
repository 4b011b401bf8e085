// Changes people make to a training step, each tried by predicting it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/prediction.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

struct Candidate {
  std::string change, why;
  Scenario scenario;
};

std::vector<Candidate> candidates_for(const Scenario& s, const Prediction& base) {
  std::vector<Candidate> out;
  const auto add = [&](std::string change, std::string why, const auto& apply) {
    Candidate candidate{std::move(change), std::move(why), s};
    apply(candidate.scenario);
    out.push_back(std::move(candidate));
  };
  const bool predicts_tokens = s.model.head == ModelHead::language_model || s.model.head == ModelHead::masked_lm ||
                               s.model.head == ModelHead::pretraining;
  if (predicts_tokens && s.model.vocabulary % 64 != 0) {
    const std::int64_t padded = (s.model.vocabulary + 63) / 64 * 64;
    add(fmt::format("model.vocabulary={}", padded), "a multiple of 64 suits the tensor cores' tiles",
        [&](Scenario& c) { c.model.vocabulary = padded; });
  }
  const MathRates& rates = s.gpu.sm.rates;
  const Precision precision = s.training.precision;
  if (precision == Precision::fp32 && rates.tensor_tf32 > 0)
    add("training.precision=tf32", "matrix products on the tensor cores, fp32 in memory",
        [](Scenario& c) { c.training.precision = Precision::tf32; });
  if (precision == Precision::fp32 || precision == Precision::tf32) {
    if (rates.tensor_bf16 > 0)
      add("training.precision=amp-bf16", "half the bytes and faster tensor cores",
          [](Scenario& c) { c.training.precision = Precision::amp_bf16; });
    else if (rates.tensor_fp16 > 0)
      add("training.precision=amp-fp16", "half the bytes and tensor cores",
          [](Scenario& c) { c.training.precision = Precision::amp_fp16; });
  }
  if (s.training.attention == AttentionRequest::eager)
    add("training.attention=sdpa", "the score matrix is never written",
        [](Scenario& c) { c.training.attention = AttentionRequest::sdpa; });
  const OptimizerDescription& optimizer = s.training.optimizer;
  const bool has_fused = optimizer.kind == OptimizerKind::adamw || optimizer.kind == OptimizerKind::adam ||
                         optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::sgd_momentum;
  if (has_fused && optimizer.implementation != OptimizerImplementation::fused)
    add("training.optimizer.implementation=fused", "one sweep over weights and states",
        [](Scenario& c) { c.training.optimizer.implementation = OptimizerImplementation::fused; });
  if (s.training.activation_checkpointing == ActivationCheckpointing::block)
    add("training.activation_checkpointing=none", "no second forward pass",
        [](Scenario& c) { c.training.activation_checkpointing = ActivationCheckpointing::none; });
  if (s.training.gradient_accumulation > 1) {
    const std::int64_t batch = s.training.micro_batch * s.training.gradient_accumulation;
    add(fmt::format("training.micro_batch={} training.gradient_accumulation=1", batch),
        "one larger batch fills the GPU better", [&](Scenario& c) {
          c.training.micro_batch = batch;
          c.training.gradient_accumulation = 1;
        });
  }
  if (!s.cuda_graphs && ratio(base.idle, base.step.time) > 0.1)
    add("training.cuda_graphs=true", "the GPU waits for the host now", [](Scenario& c) { c.cuda_graphs = true; });
  return out;
}

}  // namespace

std::vector<Advice> find_advice(const Scenario& scenario, std::string_view engine, const Prediction& base) {
  constexpr double kWorthSaying = 0.02;  // of the step
  std::vector<Advice> out;
  for (const Candidate& candidate : candidates_for(scenario, base)) {
    try {
      const Prediction changed = predict(candidate.scenario, engine);
      const Seconds saved = base.step.time - changed.step.time;
      if (!changed.memory.fits || ratio(saved, base.step.time) < kWorthSaying) continue;
      out.push_back({candidate.change, saved, candidate.why});
    } catch (const UserError&) {
      continue;  // the change cannot be had on this GPU
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Advice& a, const Advice& b) { return a.time_saved > b.time_saved; });
  return out;
}

}  // namespace ridgeline
