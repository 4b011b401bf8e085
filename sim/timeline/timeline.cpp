#include "sim/timeline/timeline.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/timeline/every_run.h"
#include "sim/timeline/issue_plan.h"
#include "sim/timeline/power.h"
#include "sim/timeline/recurrence.h"
#include "sim/timeline/stream_recurrence.h"
#include "sim/timing/clock_law.h"

namespace ridgeline {
namespace {

constexpr int kIssuedSteps = 10;      // of Timeline::host_issue
constexpr int kContentionPasses = 2;  // spans move by little after the first
constexpr double kSettled = 1e-6;     // relative change of a step that has become periodic

struct Run {
  double step = 0.0, host_issue = 0.0, begin = 0.0, host_begin = 0.0;
  int steps = 0;
  Recurrence::Step last;
  std::vector<Recurrence::Span> spans;
};

enum class Spans : bool { not_asked, kept };

/// Repeats the step until its time and the host's lead no longer change.
template <typename AnyRecurrence>
Run settle_with(AnyRecurrence recurrence, const IssuePlan& plan, std::span<const double> durations, int most_steps,
                Spans spans) {
  Run run;
  if (spans == Spans::kept) run.spans.resize(durations.size());
  double lead = 0.0;
  while (run.steps < std::max(2, most_steps)) {
    run.begin = recurrence.gpu();
    run.host_begin = recurrence.host();
    run.last = recurrence.step(plan, durations, run.spans);
    ++run.steps;
    // Without a launch the host alone makes the step.
    const double step = durations.empty() ? plan.host_total() : recurrence.gpu() - run.begin;
    const double new_lead = recurrence.gpu() - recurrence.host();
    const bool settled =
        run.steps > 2 && std::abs(step - run.step) <= kSettled * step && std::abs(new_lead - lead) <= kSettled * step;
    run.step = step;
    lead = new_lead;
    if (settled) break;
  }
  run.host_issue = (recurrence.host() + (kIssuedSteps - run.steps) * run.step) / kIssuedSteps;
  return run;
}

/// Streams and repeated launches have their spans in any case.
Run settle(const IssuePlan& plan, std::span<const double> durations, const Gpu& gpu, int most_steps,
           Spans spans = Spans::kept) {
  const int depth = gpu.launch.queue_depth;
  const double latency = gpu.launch.start_latency.value();
  if (!plan.order.empty())
    return settle_with(StreamRecurrence(plan.streams, plan.events, depth, latency), plan, durations, most_steps,
                       Spans::kept);
  return settle_with(Recurrence(depth, latency), plan, durations, most_steps,
                     plan.repeat.times > 1 ? Spans::kept : spans);
}

/// Durations as kernels of different streams slow each other, from where they lay before: a kernel that runs `beside`
/// seconds beside another, in which it goes at 1 / slowdown of its speed, takes beside · (1 - 1 / slowdown) longer.
/// `repeat`: what the plan has every run of.
std::vector<double> contended(const IssuePlan& plan, const RepeatedLaunches& repeat, std::span<const double> alone,
                              std::span<const Recurrence::Span> spans, const Contention& contention) {
  std::vector<std::size_t> kernels, others;  // in order of time, each list without overlaps of a stream with itself
  for (std::size_t i = 0; i < spans.size(); ++i) (plan.launches[i].stream == 0 ? kernels : others).push_back(i);
  std::vector<double> durations(alone.begin(), alone.end());
  for (const std::size_t other : others) {
    const std::size_t collective = repeat.held_as(other);
    const auto after = [&](double at, std::size_t kernel) { return at < spans[kernel].end; };
    auto kernel = std::upper_bound(kernels.begin(), kernels.end(), spans[other].start, after);
    if (kernel != kernels.end() && spans[*kernel].start < spans[other].start)
      durations[other] +=
          contention
              .wait_for_room(collective, repeat.held_as(*kernel), Seconds{spans[other].start - spans[*kernel].start})
              .value();
    for (; kernel != kernels.end() && spans[*kernel].start < spans[other].end; ++kernel) {
      const double beside =
          std::min(spans[*kernel].end, spans[other].end) - std::max(spans[*kernel].start, spans[other].start);
      const std::size_t held = repeat.held_as(*kernel);
      durations[*kernel] += beside * (1.0 - 1.0 / contention.of_kernel(held, collective));
      durations[other] += beside * (1.0 - 1.0 / contention.of_collective(collective, held));
    }
  }
  return durations;
}

}  // namespace

std::vector<double> exposed_spans(const IssuePlan& plan, std::span<const Recurrence::Span> spans) {
  std::vector<double> alone(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) alone[i] = spans[i].end - spans[i].start;
  if (plan.order.empty()) return alone;
  std::vector<std::pair<double, double>> busy;  // of the streams so far, in order, apart
  for (std::size_t stream = 0; stream < plan.streams; ++stream) {
    std::vector<std::pair<double, double>> own;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (plan.launches[i].stream != stream) continue;
      const double start = spans[i].start, end = spans[i].end;
      auto other = std::lower_bound(busy.begin(), busy.end(), start,
                                    [](const auto& interval, double at) { return interval.second <= at; });
      for (; other != busy.end() && other->first < end; ++other)
        alone[i] -= std::min(end, other->second) - std::max(start, other->first);
      alone[i] = std::max(0.0, alone[i]);
      own.emplace_back(start, end);
    }
    const auto middle = static_cast<std::ptrdiff_t>(busy.size());
    busy.insert(busy.end(), own.begin(), own.end());
    std::inplace_merge(busy.begin(), busy.begin() + middle, busy.end());
    std::size_t kept = 0;
    for (std::size_t i = 1; i < busy.size(); ++i) {
      if (busy[i].first <= busy[kept].second) busy[kept].second = std::max(busy[kept].second, busy[i].second);
      else busy[++kept] = busy[i];
    }
    if (!busy.empty()) busy.resize(kept + 1);
  }
  return alone;
}

std::vector<double> contended_durations(const IssuePlan& plan, std::span<const double> alone, const Gpu& gpu,
                                        const Contention& contention, int most_steps) {
  std::vector<double> durations(alone.begin(), alone.end());
  for (int pass = 0; pass < kContentionPasses && !plan.order.empty(); ++pass)
    durations = contended(plan, {}, alone, settle(plan, durations, gpu, most_steps).spans, contention);
  return durations;
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

/// The step at the clock that the power limit leaves it. Several streams have every run of what repeats in the plan, in
/// durations and spans.
struct Settlement {
  IssuePlan plan;
  RepeatedLaunches repeat;  ///< of the step as the program holds it
  bool every_run = false;
  std::vector<double> durations;
  Run run;
  Hertz clock;
  double contention = 0.0;
};

Settlement planned(const StepProgram& program, const Gpu& gpu, const Host& host, const TimelineOptions& options) {
  Settlement step;
  step.repeat = repeated_launches(program);
  step.every_run = !options.cuda_graphs && plays_every_run(program);
  step.plan = step.every_run        ? plan_every_run(program, every_run(program), gpu, host)
              : options.cuda_graphs ? plan_graph(program, gpu, host, Groups::none)
                                    : plan_issues(program, gpu, host, Groups::none, options.outline);
  return step;
}

std::vector<double> of_every_run(const RepeatedLaunches& repeat, std::span<const double> held) {
  std::vector<double> all(held.size() + repeat.further());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = held[repeat.held_as(i)];
  return all;
}

Settlement settle_step(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                       const TimelineOptions& options, Spans spans) {
  Settlement step = planned(program, gpu, host, options);
  const IssuePlan& plan = step.plan;
  const RepeatedLaunches played = step.every_run ? step.repeat : RepeatedLaunches{};
  if (plan.launches.size() != load.size() + played.further())
    throw std::invalid_argument("a timeline needs one kernel time a launch");
  std::vector<double>& durations = step.durations;
  Hertz ran_at{-1.0};
  bool complete = false;  // with all that is asked of the last clock's run
  const auto run_at = [&](Hertz clock, Spans asked) {
    if (clock != ran_at || (asked == Spans::kept && !complete)) {
      durations.resize(load.size());
      load.durations(clock, durations);
      if (step.every_run) durations = of_every_run(played, durations);
      if (options.cuda_graphs)
        for (std::size_t i = 0; i < durations.size(); ++i) durations[i] = plan.launches[i].busy_of(durations[i]);
      step.run = settle(plan, durations, gpu, options.most_steps, asked);
      if (options.contention != nullptr && !plan.order.empty()) {
        const std::vector<double> alone = durations;
        for (int pass = 0; pass < kContentionPasses; ++pass) {
          durations = contended(plan, played, alone, step.run.spans, *options.contention);
          step.run = settle(plan, durations, gpu, options.most_steps);
        }
        step.contention = 0.0;
        for (std::size_t i = 0; i < durations.size(); ++i)
          if (plan.launches[i].stream == 0) step.contention += durations[i] - alone[i];
      }
      ran_at = clock;
      complete = asked == Spans::kept;
    }
    return Seconds{step.run.step};
  };
  // Most steps run at the highest clock, which is tried first; of other trials the time alone matters.
  const Hertz top = top_clock(gpu);
  const auto try_at = [&](Hertz clock) { return run_at(clock, clock == top ? spans : Spans::not_asked); };
  step.clock = options.throttle ? load.settle(try_at) : top;
  run_at(step.clock, spans);
  return step;
}

}  // namespace

Seconds time_of_step(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                     const TimelineOptions& options) {
  return Seconds{settle_step(program, load, gpu, host, options, Spans::not_asked).run.step};
}

namespace {

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
  const Run& run = settled.run;
  const RepeatedLaunches& repeat = settled.repeat;
  std::vector<double> alone;
  if (!plan.order.empty()) {
    alone = exposed_spans(plan, run.spans);
    count_once(plan, run.step, alone);
  }
  const std::vector<double>& exposed = plan.order.empty() ? settled.durations : alone;
  std::vector<KernelSpan> kernels(launches);
  const RepeatedLaunches played = settled.every_run ? repeat : RepeatedLaunches{};
  for (std::size_t i = 0; i < run.spans.size(); ++i) {
    const std::size_t held = played.held_as(i), number = played.run_of(i);
    const Recurrence::Span& span = run.spans[i];
    KernelSpan& kernel = kernels[held];
    if (number == 0) {
      kernel.issued = Seconds(span.issued - run.begin);
      kernel.start = Seconds(span.start - run.begin);
      kernel.end = Seconds(span.end - run.begin);
      kernel.stream = plan.launches[i].stream;
    }
    kernel.taken += Seconds(span.end - span.start);
    kernel.exposed += Seconds(exposed[i]);
    if (number > 0 && exposed[i] <= kernel.most_exposed.value() * kAsMuch) continue;
    kernel.most_exposed = Seconds(exposed[i]);
    kernel.worst_run = number;
  }
  if (settled.every_run)
    for (std::size_t i = repeat.begin; i < repeat.end; ++i) {
      kernels[i].taken = kernels[i].taken / static_cast<double>(repeat.times);
      kernels[i].exposed = kernels[i].exposed / static_cast<double>(repeat.times);
    }
  return kernels;
}

RepeatedSpans repeated_spans(const Settlement& settled) {
  const Run& run = settled.run;
  double host = run.last.repeated_host, end = run.last.repeated_gpu;
  if (settled.every_run && settled.repeat.end > settled.repeat.begin) {
    std::size_t last = settled.repeat.end + settled.repeat.further() - 1;
    host = run.spans[last].issued;
    while (last > settled.repeat.begin && settled.plan.launches[last].stream != 0) --last;
    end = run.spans[last].end;
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
  const Run& run = settled.run;
  const Hertz clock = settled.clock;

  Timeline timeline;
  double busy = 0.0, occupied = 0.0, clocks = 0.0, held = 0.0;
  timeline.kernels = kernel_spans(settled, load.size());
  const std::vector<double> filled = filled_sms(program, gpu);
  const std::vector<AtClock> kinds = kinds_at(load, clock);
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    KernelSpan& span = timeline.kernels[i];
    const AtClock& kind = kinds[load.kind_of(i)];
    const auto runs = static_cast<double>(settled.repeat.times_of(i));
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
