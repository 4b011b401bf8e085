// Changes people make to a training step: to make it faster, to make it smaller. Nothing but memory is
// predicted here.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/config/override.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

class Session;
struct Descriptions;

struct Change {
  std::string set;  ///< as --set takes it; several keys are separated by a space
  std::string why;
  std::function<void(Scenario&)> apply;
};

/// Changes as --set takes them, several parted by a space.
std::vector<config::Override> overrides_of(std::span<const std::string> sets);
/// Says whether the program takes the scenario with these changes. True of a scenario that nobody asked for in words,
/// and of recorded steps, whose reader knows no other refusals. `known` is of one question: a file may have changed
/// since.
bool accepts(const Scenario& scenario, std::span<const std::string> sets, Descriptions& known);
/// The scenario with the change, as the program reads it where somebody asked for it in words: choices that it leaves
/// unsaid are made anew. Nothing where the program refuses it.
std::optional<Scenario> with_change(const Scenario& scenario, const Change& change, Descriptions& known);

/// Parts of a step that some changes shorten.
struct StepShares {
  double idle = 0.0;         ///< the GPU waits
  double elementwise = 0.0;  ///< point-wise kernels, norms and copies
};
/// Those that may save time on this GPU.
std::vector<Change> time_changes(const Scenario& scenario, const StepShares& shares);
/// Those that may save memory, the cheapest in time first. None changes what is computed but for rounding.
std::vector<Change> memory_changes(const Scenario& scenario);
/// Changes that together let a scenario fit its device: one alone if that is enough, else the one that saves most and
/// again. Empty where nothing helps.
std::vector<std::string> changes_that_make_it_fit(Session& session, const Scenario& scenario);

}  // namespace ridgeline
