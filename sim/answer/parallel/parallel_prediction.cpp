#include "sim/answer/parallel/parallel_prediction.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/answer/launched_kernels.h"
#include "sim/answer/parallel/communication.h"
#include "sim/answer/step_run.h"

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
std::string sentence(const Collective& collective, std::size_t number, std::size_t of_kind, Seconds exposed) {
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
  struct Worst {
    std::size_t use = 0, number = 0;
    const Collective* collective = nullptr;
    Seconds exposed;
  } worst;
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
    if (span.exposed > worst.exposed)
      worst = {static_cast<std::size_t>(use - result.communication.begin()), static_cast<std::size_t>(use->count),
               collective, span.exposed};
    const std::int64_t times = timeline.repeat.launches.times_of(i);
    const auto factor = static_cast<double>(times);
    use->count += times;
    use->bytes += times * collective->bytes;
    use->time += (span.end - span.start) * factor;
    use->exposed += span.exposed * factor;
    result.exposed += span.exposed * factor;
    result.hidden += (span.end - span.start - span.exposed) * factor;
  }
  if (worst.collective != nullptr)
    result.limit = sentence(*worst.collective, worst.number,
                            static_cast<std::size_t>(result.communication[worst.use].count), worst.exposed);
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
