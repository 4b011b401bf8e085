#include "fit/host_scales.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/study/validation/error_statistics.h"
#include "sim/study/validation/published_training.h"
#include "sim/study/validation/step_validation.h"

namespace ridgeline::fit {
namespace {

/// Steps that the GPU was busy for less of than this wait for the host.
constexpr double kBusy = 0.8;

bool waits_for_host(const MeasuredStep& step) {
  return !step.compiled && step.gpu_busy && ratio(*step.gpu_busy, *step.step_time) < kBusy;
}

/// A step whose kernels are worked out once, beside hosts of any scale.
class StepBesideHosts {
 public:
  StepBesideHosts(Session& session, const Scenario& scenario) : run_(session, scenario, "analytic") {}
  [[nodiscard]] Seconds time(double scale) const {
    Host host = run_.scenario().host;
    host.scale = scale;
    return run_.step_beside(host);
  }

 private:
  StepRun run_;
};

/// The scale at which the step is predicted to take what it took: costs are proportional to it.
double scale_asked_for(Session& session, const ValidatedStep& step) {
  constexpr int kRounds = 40;
  const StepBesideHosts predicted(session, step.scenario);
  double low = 0.1, high = 20.0;
  for (int i = 0; i < kRounds && high / low > 1.0005; ++i) {
    const double scale = std::sqrt(low * high);
    (predicted.time(scale) < *step.measured.step_time ? low : high) = scale;
  }
  return std::sqrt(low * high);
}

double to_three_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2.0);
  return std::round(value / unit) * unit;
}

HostScale scale_of(Session& session, const std::string& host, const std::vector<const ValidatedStep*>& steps) {
  HostScale result{.host = host, .stated = steps.empty() ? 0.0 : steps.front()->scenario.host.scale, .steps = {}};
  std::vector<double> scales;
  for (const ValidatedStep* step : steps) {
    scales.push_back(scale_asked_for(session, *step));
    result.steps.push_back(step->measured.name);
  }
  result.asked = to_three_digits(quantile(scales, 0.5));
  result.least = quantile(scales, 0.25);
  result.most = quantile(scales, 0.75);
  return result;
}

/// One scale for all rows of a file that may be fitted on, by golden sections of its logarithm between two bounds.
HostScale scale_of_published(Session& session, const MeasuredFile& file, const std::string& host, double least,
                             double most) {
  std::vector<PublishedTraining> rows = load_published_training(file);
  std::erase_if(rows, [](const PublishedTraining& row) { return row.held_out; });
  std::deque<StepBesideHosts> predicted;
  for (const PublishedTraining& row : rows) predicted.emplace_back(session, row.scenario);
  const auto distance = [&](double scale) {
    double sum = 0.0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      sum += std::abs(std::log(ratio(predicted[i].time(scale), rows[i].step_time)));
    return sum;
  };
  constexpr double kGolden = 0.6180339887498949, kClose = 0.004;
  double low = std::log(least), high = std::log(most);
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double at_left = distance(std::exp(left)), at_right = distance(std::exp(right));
  while (high - low > kClose) {
    if (at_left < at_right) {
      high = std::exchange(right, left);
      at_right = at_left;
      left = high - kGolden * (high - low);
      at_left = distance(std::exp(left));
    } else {
      low = std::exchange(left, right);
      at_left = at_right;
      right = low + kGolden * (high - low);
      at_right = distance(std::exp(right));
    }
  }
  HostScale result{.host = host, .stated = rows.front().scenario.host.scale, .steps = {}};
  result.asked = result.least = result.most = to_three_digits(std::exp(0.5 * (low + high)));
  for (const PublishedTraining& row : rows) result.steps.push_back(row.id);
  return result;
}

}  // namespace

std::vector<HostScale> host_scales(const std::filesystem::path& root) {
  const std::string folder = (root / "measurements").string();
  const std::vector<ValidatedStep> own = own_steps(folder, "nvidia-h200-sxm-141gb"),
                                   h100 = own_steps(folder, "nvidia-h100-sxm5-80gb");
  std::vector<const ValidatedStep*> beside_h200, beside_h100;
  for (const ValidatedStep& step : own)
    if ((step.measured.source == "h200" || step.measured.source == "h200/more") && waits_for_host(step.measured))
      beside_h200.push_back(&step);
  for (const ValidatedStep& step : h100)
    if (step.measured.host_fitted && waits_for_host(step.measured)) beside_h100.push_back(&step);
  const MeasurementIndex index(root / "measurements");
  Session session;
  return {scale_of(session, "default", beside_h200), scale_of(session, "h100-virtual-machine", beside_h100),
          scale_of_published(session, index.file("public/megatron_steps.jsonl.gz"), "vtrain-a100", 1.0, 8.0),
          scale_of_published(session, index.file("public/megatron_ci.jsonl.gz"), "megatron-ci", 1.5, 10.0),
          scale_of_published(session, index.file("public/megatron_ci_h100.jsonl.gz"), "megatron-ci-h100", 1.5, 10.0)};
}

}  // namespace ridgeline::fit
