#include "sim/scenario/whole_run.h"

#include <cmath>

#include "sim/scenario/step_amount.h"

namespace ridgeline {

using config::Mapping;
using config::Range;
using config::Value;

std::optional<WholeRun> read_run(const Value& section) {
  if (!section.exists() || section.is("none")) return std::nullopt;
  const Mapping mapping(section, {"steps", "tokens", "examples", "epochs"});
  WholeRun run;
  int given = 0;
  const auto amount = [&](std::string_view key, std::optional<double>& out) {
    if (!mapping.has(key)) return;
    constexpr double kMost = 1e18;
    out = mapping[key].number({0.0, kMost, true});
    ++given;
  };
  amount("steps", run.steps);
  amount("tokens", run.tokens);
  amount("examples", run.examples);
  if (given != 1) section.fail("says how much is trained once: expected steps, tokens or examples");
  constexpr double kMostEpochs = 1e6;
  if (mapping.has("epochs") && !run.examples) mapping["epochs"].fail("counts passes over examples: expected examples");
  run.epochs = mapping["epochs"].number({0.0, kMostEpochs, true}, 1.0);
  return run;
}

double steps_of(const WholeRun& run, const StepAmount& amount) {
  if (run.steps) return std::ceil(*run.steps);
  if (run.tokens) return amount.tokens > 0.0 ? std::ceil(*run.tokens / amount.tokens) : 0.0;
  return amount.samples > 0.0 ? std::ceil(*run.examples * run.epochs / amount.samples) : 0.0;
}

}  // namespace ridgeline
