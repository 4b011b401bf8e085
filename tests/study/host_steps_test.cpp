// What a training step costs the host beside an NVIDIA H200, by phase, of networks that the GPU always waits for. The
// costs were fitted on other classes of networks than those that are compared here.
#include "sim/study/validation/host_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

constexpr double kMedianOfPasses = 0.12, kMedianOfSteps = 0.12, kWorstStep = 0.35;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

struct Errors {
  std::vector<double> forward, backward, step;
};

Errors errors_of_held_out() {
  Session session;
  Errors errors;
  for (HostStep& step : load_host_steps(*ridgeline::testing::measurements().of_kind("host-steps").front())) {
    if (!step.quiet || !step.held_out) continue;
    const StepRun run(session, step.scenario, "analytic");
    const auto predicted = host_time_by_phase(plan_issues(run.program(), run.scenario().gpu, run.scenario().host));
    const auto error = [&](HostPhase phase) {
      const auto i = static_cast<std::size_t>(phase);
      return std::abs(ratio(predicted[i], step.measured[i]) - 1.0);
    };
    errors.forward.push_back(error(HostPhase::forward));
    errors.backward.push_back(error(HostPhase::backward));
    Seconds whole, measured;
    for (std::size_t i = 0; i < kHostPhases; ++i) {
      if (step.measured[i] > Seconds{}) whole += predicted[i];
      measured += step.measured[i];
    }
    errors.step.push_back(std::abs(ratio(whole, measured) - 1.0));
    EXPECT_LE(errors.step.back(), kWorstStep) << step.name;
  }
  return errors;
}

TEST(HostSteps, TakeTheHostAsLongAsTheyDid) {
  const Errors errors = errors_of_held_out();
  ASSERT_GE(errors.step.size(), 20u);
  EXPECT_LE(median(errors.forward), kMedianOfPasses);
  EXPECT_LE(median(errors.backward), kMedianOfPasses);
  EXPECT_LE(median(errors.step), kMedianOfSteps);
  RecordProperty("forward", std::to_string(median(errors.forward)));
  RecordProperty("backward", std::to_string(median(errors.backward)));
  RecordProperty("step", std::to_string(median(errors.step)));
}

TEST(HostSteps, PhasesFollowOneAnother) {
  IssuePlan plan;
  for (const HostClass host_class : {HostClass::linear, HostClass::backward_call, HostClass::mm_backward,
                                     HostClass::clip_fixed, HostClass::fused_fixed, HostClass::per_parameter_zero_grad})
    plan.groups.push_back({.host_class = host_class, .launches = 2, .share = 1e-6, .rest = 1e-6});
  const auto seconds = host_time_by_phase(plan);
  const std::array<double, kHostPhases> expected{3e-6, 6e-6, 3e-6, 3e-6, 3e-6};
  for (std::size_t i = 0; i < kHostPhases; ++i)
    EXPECT_DOUBLE_EQ(seconds[i].value(), expected[i]) << name_of(static_cast<HostPhase>(i));
}

}  // namespace
}  // namespace ridgeline
