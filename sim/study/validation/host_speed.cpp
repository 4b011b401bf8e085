#include "sim/study/validation/host_speed.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer/step_run.h"
#include "sim/study/validation/host_steps.h"

namespace ridgeline {

LikelyScale likely_scale(double reading, const Host& host) {
  // Standard deviation of the logarithm of a reading over the scale that a loop on the same host gave: 30 steps of
  // measurements/h200/host/compiled.jsonl.gz that are not held out; fit/host_costs.py makes it.
  constexpr double kReadingOff = 0.17, kNineInTen = 1.645;
  const double least = std::log(host.least_scale), most = std::log(host.most_scale);
  const double middle = (least + most) / 2, deviation = (most - least) / (2 * kNineInTen);
  const double weight = deviation * deviation / (deviation * deviation + kReadingOff * kReadingOff);
  return {.scale = std::exp(middle + weight * (std::log(reading) - middle)),
          .spread = kNineInTen * kReadingOff * std::sqrt(weight)};
}

double scale_of_lists(Session& session, const Scenario& scenario, const nlohmann::json& parts_ms) {
  const StepRun run(session, scenario, "analytic");
  Host host = run.scenario().host;
  host.scale = 1.0;
  const auto costs = host_time_by_phase(plan_issues(run.program(), run.scenario().gpu, host));
  Seconds measured, predicted;
  const auto add = [&](HostPhase phase, const char* part) {
    predicted += costs[static_cast<std::size_t>(phase)];
    measured += Seconds{parts_ms.at(part).get<double>() * 1e-3};
  };
  add(HostPhase::clipping, "clip");
  add(HostPhase::zero_grad, "zero_grad");
  if (scenario.training.precision != Precision::amp_fp16) add(HostPhase::optimizer, "optimizer");
  return ratio(measured, predicted);
}

}  // namespace ridgeline
