#include "sim/timeline/timeline.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/timeline/power.h"
#include "sim/timeline/settlement.h"
#include "sim/timeline/token_times.h"

namespace ridgeline {

Seconds time_of_step(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                     const TimelineOptions& options) {
  return Seconds{settle_step(program, load, gpu, host, options, Spans::not_asked).run.step};
}

namespace {

/// What kernels of other streams than the default one run on beside the next step, or the next repetition, is there
/// already: all together are no longer than the step.
void count_once(const IssuePlan& plan, double step, std::vector<double>& alone) {
  double all = 0.0, others = 0.0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const double duration = alone[i] * static_cast<double>(plan.repeat.times_of(i));
    all += duration;
    if (plan.launches[i].stream != 0) others += duration;
  }
  const double twice = std::min(all - step, others);
  if (twice <= 0.0) return;
  for (std::size_t i = 0; i < alone.size(); ++i)
    if (plan.launches[i].stream != 0) alone[i] *= 1.0 - twice / others;
}

/// Of each of the program's launches, the share of the SMs that its thread blocks fill.
std::vector<double> filled_sms(const StepProgram& program, const Gpu& gpu) {
  std::vector<double> filled;
  filled.reserve(program.launches.size());
  for (const KernelLaunch& launch : program.launches)
    filled.push_back(std::min(1.0, launch.blocks() / std::max(1, gpu.sm.count)));
  return filled;
}

/// What the power limit makes of kernels while it leaves the step a clock.
struct AtClock {
  Seconds held;
  Hertz clock;
};
/// By kind.
std::vector<AtClock> kinds_at(const StepLoad& load, Hertz clock) {
  std::vector<AtClock> kinds(load.kinds());
  std::vector<char> known(load.kinds());
  for (std::size_t i = 0; i < load.size(); ++i)
    if (const std::uint32_t kind = load.kind_of(i); std::exchange(known[kind], 1) == 0)
      kinds[kind] = {load.held(i, clock), load.clock_of(i, clock)};
  return kinds;
}

/// Of the launches as the program holds them, relative to the step's begin on the GPU; `held` is not filled in.
std::vector<KernelSpan> kernel_spans(const Settlement& settled, std::size_t launches) {
  constexpr double kAsMuch = 1.0 + 1e-9;  // runs that are equal but for rounding
  const IssuePlan& plan = settled.plan;
  const SettledRun& run = settled.run;
  const RepeatedLaunches& repeat = settled.repeat;
  std::vector<double> alone;
  if (!plan.order.empty()) {
    alone = exposed_spans(plan, run.spans);
    count_once(plan, run.step, alone);
  }
  const std::vector<double>& exposed = plan.order.empty() ? settled.durations : alone;
  std::vector<KernelSpan> kernels(launches);
  const auto unplayed = static_cast<std::size_t>(settled.written.times > 1 ? repeat.times - settled.written.times : 0);
  for (std::size_t i = 0; i < run.spans.size(); ++i) {
    const bool behind = unplayed > 0 && i >= plan.repeat.end;
    const std::size_t held = settled.written.held_as(i), number = settled.written.run_of(i);
    const Recurrence::Span& span = run.spans[i];
    KernelSpan& kernel = kernels[held];
    if (number == 0) {
      const double begin = run.begin - (behind ? run.unplayed : 0.0);
      kernel.issued = Seconds(span.issued - begin);
      kernel.start = Seconds(span.start - begin);
      kernel.end = Seconds(span.end - begin);
      kernel.stream = plan.launches[i].stream;
    }
    const double runs = unplayed > 0 ? static_cast<double>(plan.repeat.times_of(i)) : 1.0;
    kernel.taken += Seconds(runs * (span.end - span.start));
    kernel.exposed += Seconds(runs * exposed[i]);
    if (number > 0 && exposed[i] <= kernel.most_exposed.value() * kAsMuch) continue;
    kernel.most_exposed = Seconds(exposed[i]);
    kernel.worst_run = behind && number > 0 ? number + unplayed : number;
  }
  if (settled.written.times > 1)
    for (std::size_t i = repeat.begin; i < repeat.end; ++i) {
      kernels[i].taken = kernels[i].taken / static_cast<double>(repeat.times);
      kernels[i].exposed = kernels[i].exposed / static_cast<double>(repeat.times);
    }
  return kernels;
}

/// The span of launches that stand for those of tokens, from the begin of the first of these to the end of the last.
void add_token_spans(std::vector<KernelSpan>& kernels, const Settlement& settled, const TokenTimes& tokens) {
  const std::vector<double>& begins = settled.run.last.token_begins;
  const std::size_t count = tokens.tokens.size();
  std::vector<std::pair<std::size_t, std::size_t>> in(tokens.launches.size(), {count, 0});
  for (std::size_t token = 0; token < count; ++token) {
    const TokenTimes::Token& one = tokens.tokens[token];
    for (std::size_t k = 0; k < tokens.shapes[one.shape].kernels; ++k) {
      auto& [first, last] = in[tokens.held[one.held + k]];
      first = std::min(first, token);
      last = token;
    }
  }
  for (std::size_t i = 0; i < tokens.launches.size(); ++i) {
    KernelSpan& kernel = kernels[settled.written_launches + i];
    kernel.issued = kernel.start = Seconds(begins[in[i].first] - settled.run.begin);
    kernel.end = Seconds(begins[in[i].second + 1] - settled.run.begin);
    kernel.taken = kernel.exposed = kernel.most_exposed = Seconds(settled.durations[settled.written_launches + i]);
  }
}

RepeatedSpans repeated_spans(const Settlement& settled) {
  const SettledRun& run = settled.run;
  double host = run.last.repeated_host, end = run.last.repeated_gpu;
  if (settled.written.times > 1 && settled.repeat.end > settled.repeat.begin) {
    std::size_t last = settled.repeat.end + settled.written.further() - 1;
    host = run.spans[last].issued + run.unplayed;
    while (last > settled.repeat.begin && settled.plan.launches[last].stream != 0) --last;
    end = run.spans[last].end + run.unplayed;
  }
  return {settled.repeat, Seconds(host - run.begin), Seconds(end - run.begin)};
}

}  // namespace

Timeline run_timeline(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu, const Host& host,
                      const TimelineOptions& options) {
  const StepLoad load(program, times, gpu);
  if (load.size() != times.size()) throw std::invalid_argument("a timeline needs one kernel time a launch");
  return run_timeline(program, load, gpu, host, options);
}

Timeline run_timeline(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                      const TimelineOptions& options) {
  const Settlement settled = settle_step(program, load, gpu, host, options, Spans::kept);
  const IssuePlan& plan = settled.plan;
  const SettledRun& run = settled.run;
  const Hertz clock = settled.clock;

  Timeline timeline;
  double busy = 0.0, occupied = 0.0, clocks = 0.0, held = 0.0;
  timeline.kernels = kernel_spans(settled, load.size());
  if (options.tokens != nullptr) add_token_spans(timeline.kernels, settled, *options.tokens);
  const std::vector<double> filled = filled_sms(program, gpu);
  const std::vector<AtClock> kinds = kinds_at(load, clock);
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    KernelSpan& span = timeline.kernels[i];
    const AtClock& kind = kinds[load.kind_of(i)];
    const TokenLaunch* token = program.token_launch(action);
    if (token != nullptr) timeline.further_runs_of_tokens += token->runs - 1;
    const auto runs = static_cast<double>(token != nullptr ? token->runs : settled.repeat.times_of(i));
    const double duration = span.exposed.value() * runs;
    busy += duration;
    occupied += duration * filled[action.index];
    if (span.taken.value() > 0.0) span.held = kind.held;
    clocks += duration * kind.clock.value();
    held += span.held.value() * runs;
    ++i;
  }
  // A stream that waits for the host beside another's kernels leaves the GPU busy.
  const double starved = std::min(run.last.starved, std::max(0.0, run.step - busy));
  timeline.repeat = repeated_spans(settled);
  timeline.step = Seconds(run.step);
  timeline.host = Seconds(plan.host_total());
  timeline.host_issue = Seconds(run.host_issue);
  timeline.gpu_busy = Seconds(busy);
  timeline.idle = Seconds(std::max(0.0, run.step - busy));
  timeline.starved = Seconds(starved);
  timeline.host_begin = Seconds(run.host_begin - run.begin);
  timeline.clock = busy > 0.0 ? Hertz(clocks / busy) : clock;
  timeline.settled = clock;
  timeline.held = Seconds(held);
  timeline.contention = Seconds(settled.contention);
  timeline.power = load.power(clock, timeline.step);
  timeline.sm_utilization = run.step > 0 ? occupied / run.step : 0.0;
  timeline.host_bound = starved > 0.1 * run.step;
  timeline.steps_run = run.steps;
  return timeline;
}

}  // namespace ridgeline
