#include "sim/timeline/step_launches.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

/// Times the capacity; what was written outlives what was read by some of it.
constexpr double kGone = 4.0;

}  // namespace

std::vector<const Action*> launches_before(const StepProgram& program) {
  const auto step = program.steady_step();
  const auto begin = static_cast<std::size_t>(step.data() - program.actions.data());
  std::vector<const Action*> launches;
  const bool first = program.steps.size() < 2;
  for (std::size_t i = first ? begin + step.size() : begin;
       i-- > (first ? begin : 0) && launches.size() < kWarmUpLaunches;) {
    if (program.actions[i].kind == Action::Kind::launch) launches.push_back(&program.actions[i]);
  }
  std::reverse(launches.begin(), launches.end());
  return launches;
}

FurtherRuns::FurtherRuns(const StepProgram& program, const L2Spec& l2)
    : program_(program), repeat_(program.repeat_of_steady_step()) {
  double bytes = 0.0;
  for (std::uint32_t i = repeat_.actions.begin; i < repeat_.actions.end; ++i) {
    const Action& action = program.actions[i];
    if (action.kind != Action::Kind::allocate) continue;
    own_.emplace(action.index, static_cast<StorageId>(own_.size()));
    bytes += static_cast<double>(program.storages[action.index].bytes);
  }
  const double enough = std::ceil(kGone * l2.capacity.value() / std::max(1.0, bytes)) + 1.0;
  runs_ = static_cast<std::int64_t>(std::min(static_cast<double>(repeat_.times - 1), enough));
}

}  // namespace ridgeline
