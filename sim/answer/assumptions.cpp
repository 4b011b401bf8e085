#include "sim/answer/assumptions.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <future>
#include <optional>

#include "sim/answer/changes.h"
#include "sim/config/value.h"
#include "sim/hardware/load_host.h"
#include "sim/hardware/software_choice.h"
#include "sim/scenario/descriptions.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

struct Alternative {
  std::string assumed, set;  ///< in words; the other choice, as --set takes it
  std::function<void(Scenario&)> apply;
};

/// Whether the scenario's file, text or flags set the key or a part of it.
bool says(const AskedScenario& asked, const std::string& section, const std::string& key) {
  const std::string path = section.empty() ? key : section + "." + key;
  for (const config::Override& change : asked.changes)
    if (change.key == path || change.key.starts_with(path + ".")) return true;
  const config::Value root(asked.tree);
  if (section.empty()) return root[key].exists();
  return root[section].is_mapping() && root[section][key].exists();
}

std::vector<Alternative> alternatives(const Scenario& s) {
  std::vector<Alternative> out;
  if (s.asked == nullptr || s.recorded != nullptr) return out;
  const AskedScenario& asked = *s.asked;
  const std::string section = s.training.inference ? "inference" : "training";
  constexpr const char* kNewest = "pytorch-2.11";
  constexpr const char* kBefore = "pytorch-2.5";
  if (!says(asked, "", "software") && s.software.name == kNewest && has_code_for(load_software(kBefore), s.gpu))
    out.push_back({fmt::format("software {}, the newest that this GPU runs", kNewest),
                   fmt::format("software={}", kBefore), [](Scenario& c) { c.software = load_software(kBefore); }});
  const bool whole_types = s.training.precision == Precision::bf16 || s.training.precision == Precision::apex_o2;
  if (!says(asked, section, "tf32") && !s.training.matmuls_in_tf32() && !whole_types &&
      s.gpu.sm.rates.tensor_tf32 > 0.0)
    out.push_back({"TF32 off for fp32 matmuls, as PyTorch has it", fmt::format("{}.tf32=true", section),
                   [](Scenario& c) { c.training.tf32 = true; }});
  if (s.training.parallel.megatron()) return out;  // code of its own
  if (const auto type = s.training.autocast_type(); type && s.training.lora && !s.training.parallel.deepspeed() &&
                                                    !says(asked, section, "weight_dtype") && !s.training.inference)
    out.push_back({"frozen weights in fp32 under autocast", fmt::format("{}.weight_dtype={}", section, name_of(*type)),
                   [type](Scenario& c) { c.training.weight_dtype = *type; }});
  // Scores that no memory holds are not tried: their point-wise kernels are launched by the million.
  const double scores = 2.0 * static_cast<double>(s.training.micro_batch) * static_cast<double>(s.model.heads) *
                        std::pow(static_cast<double>(s.training.sequence_length), 2.0);
  if (!says(asked, section, "attention") && s.training.attention == AttentionRequest::sdpa &&
      scores < s.gpu.dram.capacity.value() && s.training.packed_lengths.empty() && s.training.parallel.context == 1)
    out.push_back({"attention by scaled_dot_product_attention", fmt::format("{}.attention=eager", section),
                   [](Scenario& c) { c.training.attention = AttentionRequest::eager; }});
  if (s.model.family == ModelFamily::llama && !says(asked, "model", "code") && !s.model.written_plain() &&
      !s.training.inference)
    out.push_back({"the code of Transformers", "model.code=plain", [](Scenario& c) { c.model.plain = true; }});
  return out;
}

std::optional<std::string> line_of(const Alternative& alternative, const StepRun& run, Descriptions& known) {
  constexpr double kWorthSaying = 0.05;
  keep_budget("trying other defaults");
  if (!accepts(run.scenario(), {&alternative.set, 1}, known)) return std::nullopt;
  Scenario changed = run.scenario();
  alternative.apply(changed);
  try {
    const StepRun other(run.session(), std::move(changed), run.engine());
    const double change = ratio(other.timeline().step, run.timeline().step) - 1.0;
    if (std::abs(change) < kWorthSaying) return std::nullopt;
    const bool software = alternative.set.starts_with("software=");
    const std::string flag =
        software ? "--software " + alternative.set.substr(std::size("software=") - 1) : "--set " + alternative.set;
    return fmt::format("assumed: {}; with {} the step takes {:.0f} % {}", alternative.assumed, flag,
                       100.0 * std::abs(change), change > 0.0 ? "longer" : "less");
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> assumptions_of(const StepRun& run) {
  const std::vector<Alternative> tried = alternatives(run.scenario());
  Descriptions known;
  std::vector<std::future<std::optional<std::string>>> trials;
  for (const Alternative& alternative : tried)
    trials.push_back(std::async(std::launch::async, with_same_budget([&] {
                                  return evaluated([&] { return line_of(alternative, run, known); });
                                })));
  std::vector<std::string> lines;
  for (auto& trial : trials)
    if (auto line = trial.get()) lines.push_back(std::move(*line));
  return lines;
}

}  // namespace ridgeline
