#include "sim/answer/parallel/parallel_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/step_run.h"
#include "sim/program/launched_kernels.h"

namespace ridgeline {
namespace {

/// The same training on one of the GPUs alone, without communication.
Seconds alone(const StepRun& run) {
  Scenario scenario = run.scenario();
  scenario.cluster.reset();
  const ParallelDescription& how = scenario.training.parallel;
  if (!how.deepspeed()) scenario.training.precision = scenario.training.compute_precision();
  ParallelDescription one;
  one.framework = how.framework;
  if (how.deepspeed()) {
    one.strategy = how.strategy;
    one.zero = how.zero;
  }
  scenario.training.parallel = one;
  return StepRun(run.session(), std::move(scenario), run.engine()).timeline().step;
}

/// "the last all_reduce, 158 MiB, is exposed for 0.6 ms"
std::string sentence_on(const Collective& collective, std::size_t number, std::size_t of_kind, Seconds exposed) {
  const std::string which = of_kind == 1            ? "the"
                            : number == 0           ? "the first"
                            : number + 1 == of_kind ? "the last"
                                                    : fmt::format("number {} of {}", number + 1, of_kind);
  const double mebibytes = static_cast<double>(collective.bytes) / (1 << 20);
  const std::string size =
      mebibytes < 1024.0 ? fmt::format("{:.3g} MiB", mebibytes) : fmt::format("{:.3g} GiB", mebibytes / 1024.0);
  return fmt::format("{} {}{}, {}, keeps the GPU waiting {:.3g} ms", which, name_of(collective.kind),
                     of_kind > 1 && which.starts_with("number") ? "s" : "", size, 1e3 * exposed.value());
}

/// The collective that keeps the GPU waiting longest, and its number among those of its kind and group.
class WorstCollective {
 public:
  explicit WorstCollective(const RepeatedLaunches& repeat) : repeat_(repeat) {}

  /// Launch `i` of the step, in order.
  void look_at(std::size_t i, const KernelSpan& span, const Collective& collective, std::size_t use) {
    constexpr double kMore = 1.0 + 1e-9;  // than what is equal but for rounding
    if (use == kinds_.size()) kinds_.emplace_back();
    Kind& kind = kinds_[use];
    const bool repeats = repeat_.times > 1 && i >= repeat_.begin && i < repeat_.end;
    const Place place{use, repeats ? kind.in_run : kind.outside, repeats ? span.worst_run : 0, repeats,
                      repeat_.times <= 1 || i < repeat_.end};
    ++(repeats ? kind.in_run : kind.outside);
    if (!repeats && place.before_last_run) ++kind.before;
    const double exposed = span.most_exposed.value();
    const bool sooner = repeats && place_.repeats && place.run < place_.run && exposed * kMore > exposed_;
    if (exposed <= exposed_ * kMore && !sooner) return;
    exposed_ = exposed;
    place_ = place;
    collective_ = &collective;
  }
  [[nodiscard]] std::string sentence(std::span<const CommunicationUse> uses) const {
    if (collective_ == nullptr) return {};
    const Kind& kind = kinds_[place_.use];
    std::size_t number = place_.number;
    if (place_.repeats) number += kind.before + place_.run * kind.in_run;
    else if (!place_.before_last_run) number += static_cast<std::size_t>(repeat_.times) * kind.in_run;
    return sentence_on(*collective_, number, static_cast<std::size_t>(uses[place_.use].count), Seconds{exposed_});
  }

 private:
  struct Kind {
    std::size_t before = 0, outside = 0, in_run = 0;  ///< before what repeats; outside it; in one run
  };
  struct Place {
    std::size_t use = 0, number = 0;  ///< among those outside what repeats, or in one run of it
    std::size_t run = 0;
    bool repeats = false, before_last_run = true;
  };
  const RepeatedLaunches& repeat_;
  std::vector<Kind> kinds_;
  double exposed_ = 0.0;
  Place place_;
  const Collective* collective_ = nullptr;
};

}  // namespace

std::optional<ParallelPrediction> parallel_prediction(const StepRun& run) {
  const Scenario& scenario = run.scenario();
  if (!scenario.cluster || (scenario.training.parallel.gpus() == 1 && !scenario.recorded)) return std::nullopt;
  ParallelPrediction result;
  const ParallelDescription& how = scenario.training.parallel;
  result.gpus = how.gpus();
  result.board = scenario.gpu.power.board;
  const Timeline& timeline = run.timeline();
  const std::vector<LaunchedKernel> kernels = launched_kernels(run.program());
  WorstCollective worst(timeline.repeat.launches);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto* collective = std::get_if<Collective>(kernels[i].op);
    if (collective == nullptr) continue;
    if (scenario.recorded) result.gpus = std::max(result.gpus, collective->ranks);
    auto use = std::find_if(result.communication.begin(), result.communication.end(), [&](const CommunicationUse& u) {
      return u.kind == collective->kind && u.group == collective->group;
    });
    if (use == result.communication.end())
      use = result.communication.insert(use, CommunicationUse{collective->kind, collective->group, 0, 0, {}, {}});
    const KernelSpan& span = timeline.kernels[i];
    worst.look_at(i, span, *collective, static_cast<std::size_t>(use - result.communication.begin()));
    const std::int64_t times = timeline.repeat.launches.times_of(i);
    const auto factor = static_cast<double>(times);
    use->count += times;
    use->bytes += times * collective->bytes;
    use->time += span.taken * factor;
    use->exposed += span.exposed * factor;
    result.exposed += span.exposed * factor;
    result.hidden += (span.taken - span.exposed) * factor;
  }
  result.limit = worst.sentence(result.communication);
  std::stable_sort(result.communication.begin(), result.communication.end(),
                   [](const CommunicationUse& a, const CommunicationUse& b) { return a.time > b.time; });
  if (scenario.recorded && result.communication.empty()) return std::nullopt;
  // Of a recording no step on one GPU is known: what it would take is this one's without waiting for others.
  if (timeline.step.value() > 0.0 && scenario.recorded) result.efficiency = 1.0 - ratio(result.exposed, timeline.step);
  if (timeline.step.value() > 0.0 && !scenario.recorded)
    result.efficiency =
        ratio(alone(run), timeline.step) /
        static_cast<double>(how.tensor * how.context * how.pipeline * (how.one_process() ? how.data * how.split : 1));
  if (const PipelineRun* stages = run.pipeline()) {
    const std::vector<StageTime>& ranks = stages->timeline().ranks;
    for (const StageTime& rank : ranks) result.bubble += rank.bubble / static_cast<double>(ranks.size());
    result.ranks = stages->rank_classes();
    return result;
  }
  result.ranks.push_back({how.one_process() ? "the fullest device" : "every rank",
                          how.one_process() ? 1 : result.gpus,
                          timeline.step,
                          run.memory(),
                          communicator_bytes(scenario),
                          {},
                          {}});
  return result;
}

}  // namespace ridgeline
