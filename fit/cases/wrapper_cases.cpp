// Steps of several GPUs that wait for the host, as a whole, each with the speed its host had then.
#include <memory>

#include "fit/cases/wrapper_costs.h"
#include "fit/law_problem.h"
#include "sim/answer/step_run.h"
#include "sim/study/validation/parallel_steps.h"
#include "sim/workload/host_class.h"

namespace ridgeline::fit {
namespace {

const std::vector<Place<WrapperCosts>> kPlaces{
#include "sim/timing/tables/wrappers_fields.inc"
};

/// Steps that the GPU is busy for less of than this, as a profile shows it, wait for the host.
constexpr double kBusy = 0.8;

HostClass class_named(std::string_view name) {
  const auto names = host_class_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<HostClass>(i);
  throw std::logic_error("a wrapper's cost that is no class of the host");
}

/// Step times by the costs that the step has: predictions take a tenth of a second, and most of a derivative's are of
/// costs that a step's wrapper does not have.
class Predictor {
 public:
  explicit Predictor(std::vector<ParallelStep> steps) : steps_(std::move(steps)), known_(steps_.size()) {
    for (const ParallelStep& step : steps_) sharded_.push_back(step.scenario.training.parallel.shards_parameters());
  }
  [[nodiscard]] const std::vector<ParallelStep>& steps() const { return steps_; }
  double seconds(std::size_t i, const Values& values) {
    Values own;
    for (const auto& [name, value] : values)
      if ((name.starts_with("fsdp") || name == "per_parameter_shard") == sharded_[i]) own[name] = value;
    const auto found = known_[i].find(own);
    if (found != known_[i].end()) return found->second;
    Scenario scenario = steps_[i].scenario;
    for (const auto& [name, value] : own)
      scenario.host.class_costs[static_cast<std::size_t>(class_named(name))] = microseconds(value);
    return known_[i][own] = predict(scenario, "analytic").step.time.value();
  }

 private:
  std::vector<ParallelStep> steps_;
  std::vector<bool> sharded_;
  std::vector<std::map<Values, double>> known_;
};

}  // namespace

std::vector<Problem> wrapper_problems(const Measurements& measurements, const Laboratory&) {
  std::vector<ParallelStep> steps;
  for (const MeasuredFile* file : measurements.index.of_kind("parallel-steps"))
    for (ParallelStep& step : load_parallel_steps(*file))
      if (step.scenario.training.parallel.several() && step.busy_share < kBusy) steps.push_back(std::move(step));
  Problem problem{.name = "pytorch"};
  for (const ParallelStep& step : steps)
    problem.cases.push_back({step.measured.step_time->value(), 0, step.held_out, step.name_hash, step.row});
  const auto predictor = std::make_shared<Predictor>(std::move(steps));
  problem.predict = [predictor](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
    (void)constants_from(kPlaces, values);  // refuses names that are no costs
    for (std::size_t i = 0; i < which.size(); ++i) seconds[i] = predictor->seconds(which[i], values);
  };
  return {problem};
}

}  // namespace ridgeline::fit
