#include "sim/scenario/assumed_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/units/user_error.h"
#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

constexpr std::string_view kAssumed = "because nothing was said";
constexpr std::string_view kBatchKey = "training.micro_batch", kLengthKey = "training.sequence_length";

bool assumes(const Scenario& scenario, std::string_view key) {
  if (!scenario.asked) return false;
  const auto& changes = scenario.asked->changes;
  const auto last = std::find_if(changes.rbegin(), changes.rend(), [&](const auto& one) { return one.key == key; });
  return last != changes.rend() && last->origin == kAssumed;
}

}  // namespace

std::int64_t usual_length(const ModelDescription& model) {
  constexpr std::int64_t kUsual = 1024;
  if (const std::int64_t only = only_length(model); only > 0) return only;
  return model.has_position_table() ? std::min(kUsual, model.max_positions) : kUsual;
}

void assume_sizes(ScenarioSource& source) {
  if (source.file || source.recording || !source.text.empty()) return;
  const config::Override* model = nullptr;
  bool batch = false, length = false, other = false;
  for (const config::Override& change : source.overrides) {
    if (change.key == "model") model = &change;
    batch = batch || change.key == kBatchKey;
    length = length || change.key == kLengthKey;
    // Sections that come whole, other tools' files and models in use say their sizes themselves.
    other = other || change.key == "training" || change.key == "trace" || change.key == "from" ||
            change.key.starts_with("inference");
  }
  if (model == nullptr || other || (batch && length)) return;
  const std::string name = model->value;
  std::int64_t tokens = 0;
  try {
    if (!length) tokens = usual_length(load_model(name));
  } catch (const UserError&) {
    return;  // told where the question is read
  }
  if (!length)
    source.overrides.insert(source.overrides.begin(),
                            {std::string(kLengthKey), std::to_string(tokens), std::string(kAssumed)});
  if (!batch) source.overrides.insert(source.overrides.begin(), {std::string(kBatchKey), "1", std::string(kAssumed)});
}

std::string assumed_sizes(const Scenario& scenario) {
  const bool batch = assumes(scenario, kBatchKey);
  const bool length = assumes(scenario, kLengthKey) && scenario.training.sequence_length > 1;
  const std::int64_t tokens = scenario.training.sequence_length;
  if (batch && length) return fmt::format("{} x {} tokens", scenario.training.micro_batch, tokens);
  if (length) return fmt::format("{} tokens", tokens);
  return batch ? fmt::format("batch {}", scenario.training.micro_batch) : "";
}

}  // namespace ridgeline
