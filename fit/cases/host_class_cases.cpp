// Forward and backward passes of steps that the GPU waits for, as their host was timed, each with the speed that the
// host had then.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "fit/cases/host_class_costs.h"
#include "fit/law_problem.h"
#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/study/validation/host_steps.h"
#include "sim/workload/host_class.h"

namespace ridgeline::fit {
namespace {

const std::vector<Place<HostClassCosts>> kPlaces{
#include "sim/timing/tables/host_classes_fields.inc"
};

/// Equal groups of host work in one pass: work of `class_index`, so many occurrences of it at once, with so many
/// launches.
struct Groups {
  std::size_t class_index = 0;
  double occurrences = 0, launches = 0, count = 0;
};

struct Pass {
  std::vector<Groups> groups;
  double scale = 1.0, launch_call = 0;  ///< seconds
  double backward = 1.0;                ///< of the host: how much slower the thread of the backward pass is
  std::vector<double> costs;            ///< of each class [s], where they are not fitted
};

/// As plan_issues of sim/timeline does it: a launch costs at least the launch call.
double seconds_of(const Pass& pass, const std::vector<double>& costs) {
  double sum = 0.0;
  for (const Groups& group : pass.groups) {
    const double thread = in_backward_thread(static_cast<HostClass>(group.class_index)) ? pass.backward : 1.0,
                 cost = costs[group.class_index] * group.occurrences * thread;
    const double share = std::max(cost / (group.launches + 1.0), group.launches > 0 ? pass.launch_call : 0.0);
    sum += group.count * (share * group.launches + std::max(0.0, cost - share * group.launches));
  }
  return sum * pass.scale;
}

Pass pass_of(const StepRun& run, HostPhase phase) {
  const Host& host = run.scenario().host;
  const IssuePlan plan = plan_issues(run.program(), run.scenario().gpu, host);
  const std::vector<HostPhase> phases = phases_of(plan);
  std::map<std::tuple<std::size_t, double, double>, double> counts;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const HostGroup& group = plan.groups[i];
    if (phases[i] != phase || group.kind != HostGroup::Kind::work) continue;
    const Action& action = run.program().actions[group.action];
    const double occurrences = action.kind == Action::Kind::host ? static_cast<double>(action.index) : 0.0;
    ++counts[{static_cast<std::size_t>(group.host_class), occurrences, static_cast<double>(group.launches)}];
  }
  Pass pass{.groups = {},
            .scale = host.scale,
            .launch_call = host.launch_call.value(),
            .backward = host.parts.backward,
            .costs = {}};
  for (const auto& [key, count] : counts)
    pass.groups.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  for (const Seconds& cost : host.class_costs) pass.costs.push_back(cost.value());
  return pass;
}

std::size_t class_named(std::string_view name) {
  const auto names = host_class_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::logic_error("a cost that is no class of the host");
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

std::vector<Problem> host_class_problems(const Measurements& measurements, const Laboratory&) {
  Problem problem{.name = "pytorch"};
  auto passes = std::make_shared<std::vector<Pass>>();
  Session session;
  for (const MeasuredFile* file : measurements.index.of_kind("host-steps"))
    for (HostStep& step : load_host_steps(*file)) {
      if (!step.quiet) continue;
      const StepRun run(session, std::move(step.scenario), "analytic");
      for (const HostPhase phase : {HostPhase::forward, HostPhase::backward}) {
        const double seconds = step.measured[static_cast<std::size_t>(phase)].value();
        problem.cases.push_back({seconds, 0, step.held_out, step.network, step.row});
        passes->push_back(pass_of(run, phase));
      }
    }
  problem.predict = [passes](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
    (void)constants_from(kPlaces, values);  // refuses names that are no costs
    for (std::size_t i = 0; i < which.size(); ++i) {
      const Pass& pass = (*passes)[which[i]];
      std::vector<double> costs = pass.costs;
      for (const auto& [name, value] : values) costs[class_named(name)] = value * 1e-6;
      seconds[i] = seconds_of(pass, costs);
    }
  };
  return {problem};
}

}  // namespace ridgeline::fit
