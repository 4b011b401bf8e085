#include "sim/answer/whole_step.h"

#include <fmt/format.h>

#include <map>

#include "sim/answer/parallel/communication.h"
#include "sim/units/user_error.h"
#include "sim/workload/inference_run.h"

namespace ridgeline {
namespace {

std::vector<MemorySample> samples_of(const UnrolledStep& step, const StepProgram& held,
                                     std::span<const MemorySample> samples) {
  const std::uint32_t begin = held.steps.back().begin;
  std::map<std::size_t, std::vector<MemorySample>> by_action;  // of the first run of each
  std::uint32_t last = 0;
  for (const MemorySample& sample : samples) {
    if (sample.action < last || sample.action < begin) continue;
    by_action[sample.action - begin].push_back(sample);
    last = sample.action;
  }
  std::vector<MemorySample> all;
  for (std::size_t i = 0; i < step.program.actions.size(); ++i) {
    const auto found = by_action.find(step.actions.held_as(i));
    if (found == by_action.end()) continue;
    for (MemorySample sample : found->second) {
      sample.action = static_cast<std::uint32_t>(i);
      all.push_back(sample);
    }
  }
  return all;
}

}  // namespace

const StepRun& StepRun::every_token() const {
  if (pipeline() != nullptr || trace().tokens == nullptr) return *this;
  if (const std::int64_t kernels = timeline().kernel_count(); kernels > kMostKernelsShown)
    throw UserError(fmt::format(
        "the generation has {} kernels, more than the {} that are shown one by one: inference.new_tokens={} "
        "shows as much",
        kernels, kMostKernelsShown, scenario_.training.inference->new_tokens * kMostKernelsShown / kernels));
  return *every_token_.get([&] {
    const TraceKey key = trace_key_of(scenario_, engine_);
    auto whole =
        std::make_shared<SharedTrace>(inference_run(key.model, key.training, key.attention, 2, Tokens::written_out));
    return std::make_unique<StepRun>(session_, scenario_, engine_, std::move(whole));
  });
}

std::optional<WholeStep> whole_step(const StepRun& run) {
  const StepProgram& held = run.program();
  if (run.pipeline() != nullptr || held.repeat_of_steady_step().times <= 1) return std::nullopt;
  const Scenario& scenario = run.scenario();
  if (const std::int64_t kernels = run.timeline().kernel_count(); kernels > kMostKernelsShown)
    throw UserError(
        fmt::format("the step has {} kernels, more than the {} that a timeline holds one by one: --timeline-compact "
                    "writes equal micro-batches once",
                    kernels, kMostKernelsShown));
  WholeStep whole{unrolled_step(held), {}, {}, {}};
  const std::size_t launches = run.times().size() + whole.step.launches.further();
  whole.times.reserve(launches);
  for (std::size_t i = 0; i < launches; ++i) whole.times.push_back(run.times()[whole.step.launches.held_as(i)]);
  TimelineOptions options{.cuda_graphs = scenario.cuda_graphs};
  std::optional<StepContention> contention;
  if (scenario.cluster && held.has_streams())
    options.contention = &contention.emplace(whole.step.program, whole.times, scenario);
  whole.timeline = run_timeline(whole.step.program, whole.times, scenario.gpu, scenario.host, options);
  if (knows_allocations(scenario)) whole.memory = samples_of(whole.step, held, run.memory_run().samples);
  return whole;
}

}  // namespace ridgeline
