#include "sim/timeline/settlement.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/timeline/every_run.h"
#include "sim/timeline/stream_recurrence.h"
#include "sim/timeline/token_play.h"
#include "sim/timing/clock_law.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

constexpr int kIssuedSteps = 10;      // of Timeline::host_issue
constexpr int kContentionPasses = 2;  // spans move by little after the first
constexpr double kSettled = 1e-6;     // relative change of a step that has become periodic

/// Of a step of several streams with more runs than these, as many are played: those in which it settles, those that
/// are compared, the last of which stands for all that are not played, and those behind it.
constexpr std::int64_t kSettling = 3, kCompared = 4, kBehind = 3, kPlayed = kSettling + kCompared + kBehind;
constexpr double kSameRun = 1e-10;  // relative

/// What each run of the launches that the plan repeats adds to the time, where the runs before it, it and the next one
/// are alike but for this, and all that was issued before them was done by then: also what the steps before were given,
/// which was done at `before_step`. Then so are all further ones, whose starts, ends and waits follow from these alone.
std::optional<double> period(const IssuePlan& plan, std::span<const Recurrence::Span> spans, double before_step) {
  const std::size_t length = plan.repeat.end - plan.repeat.begin;
  const std::size_t first = plan.repeat.begin - static_cast<std::size_t>(kCompared - 1) * length;
  const double issued = spans[plan.repeat.begin].issued;
  if (before_step > issued) return std::nullopt;
  for (std::size_t i = 0; i < first; ++i)
    if (spans[i].end > issued) return std::nullopt;
  const double moved = spans[plan.repeat.end - 1].end - spans[plan.repeat.begin - 1].end, most = kSameRun * moved;
  for (std::size_t i = first + length; i < plan.repeat.end + length; ++i) {
    const Recurrence::Span &before = spans[i - length], &now = spans[i];
    const double off = std::max({std::abs(now.issued - before.issued - moved),
                                 std::abs(now.start - before.start - moved), std::abs(now.end - before.end - moved)});
    if (off > most) return std::nullopt;
  }
  return moved;
}

/// Repeats the step until its time and the host's lead no longer change. None where streams do not run as often as the
/// plan has it by playing some of the runs.
template <typename AnyRecurrence>
std::optional<SettledRun> settle_with(AnyRecurrence recurrence, const IssuePlan& plan,
                                      std::span<const double> durations, int most_steps, Spans spans, bool leaves_out) {
  SettledRun run;
  if (spans == Spans::kept) run.spans.resize(plan.launches.size());
  const auto further = static_cast<double>(plan.repeat.times - 1);
  double lead = 0.0, unplayed = 0.0, done = 0.0;
  while (run.steps < std::max(2, most_steps)) {
    keep_budget("the timeline");
    run.begin = recurrence.gpu();
    run.host_begin = recurrence.host();
    run.last = recurrence.step(plan, durations, run.spans);
    ++run.steps;
    // Without a launch the host alone makes the step.
    double step = durations.empty() ? plan.host_total() : recurrence.gpu() - run.begin;
    if (leaves_out) {
      const std::optional<double> each = period(plan, run.spans, done);
      if (!each) return std::nullopt;
      for (const Recurrence::Span& span : run.spans) done = std::max(done, span.end);
      run.unplayed = *each * further;
      run.last.starved += run.last.repeated_starved * further;
      step += run.unplayed;
      unplayed += run.unplayed;
    }
    const double new_lead = recurrence.gpu() - recurrence.host();
    const bool settled =
        run.steps > 2 && std::abs(step - run.step) <= kSettled * step && std::abs(new_lead - lead) <= kSettled * step;
    run.step = step;
    lead = new_lead;
    if (settled) break;
  }
  run.host_issue = (recurrence.host() + unplayed + (kIssuedSteps - run.steps) * run.step) / kIssuedSteps;
  return run;
}

/// Streams and repeated launches have their spans in any case. `leaves_out`: what the plan of several streams repeats
/// stands for further runs; else it is run once.
std::optional<SettledRun> settle(const IssuePlan& plan, std::span<const double> durations, const Gpu& gpu,
                                 int most_steps, bool leaves_out, Spans spans = Spans::kept,
                                 const TokenPlan* tokens = nullptr) {
  const int depth = gpu.launch.queue_depth;
  const double latency = gpu.launch.start_latency.value();
  if (!plan.order.empty())
    return settle_with(StreamRecurrence(plan.streams, plan.events, depth, latency), plan, durations, most_steps,
                       Spans::kept, leaves_out);
  return settle_with(Recurrence(depth, latency, tokens), plan, durations, most_steps,
                     plan.repeat.times > 1 ? Spans::kept : spans, false);
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
    keep_budget_often("the timeline");
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
    durations = contended(plan, {}, alone, settle(plan, durations, gpu, most_steps, false)->spans, contention);
  return durations;
}

namespace {

/// The plan with as many runs of several streams as `most`, and at least two more than are left out.
void make_plan(Settlement& step, const StepProgram& program, const Gpu& gpu, const Host& host,
               const TimelineOptions& options, std::int64_t most) {
  step.repeat = repeated_launches(program);
  if (!options.cuda_graphs && plays_every_run(program)) {
    const bool all = step.repeat.times <= most + 2 || step.repeat.end == step.repeat.begin;
    const EveryRun runs = every_run(program, all ? step.repeat.times : most);
    step.written = runs.repeat;
    step.plan = plan_every_run(program, runs, gpu, host);
    if (all) return;
    const std::size_t length = step.repeat.end - step.repeat.begin,
                      begin = step.repeat.begin + static_cast<std::size_t>(kSettling + kCompared - 1) * length;
    step.plan.repeat = {begin, begin + length, step.repeat.times - most + 1};
    return;
  }
  step.written = {};
  step.plan = options.cuda_graphs ? plan_graph(program, gpu, host, Groups::none)
                                  : plan_issues(program, gpu, host, Groups::none, options.outline);
}

/// Runs the step at this clock. False: its runs are not alike, and all have to be played.
bool play(Settlement& step, const StepLoad& load, Hertz clock, const Gpu& gpu, const TimelineOptions& options,
          Spans asked, TokenPlan* tokens) {
  const IssuePlan& plan = step.plan;
  const std::size_t of_tokens = tokens != nullptr ? tokens->times.launches.size() : 0;
  if (plan.launches.size() + of_tokens != load.size() + step.written.further())
    throw std::invalid_argument("a timeline needs one kernel time a launch");
  const bool leaves_out = step.written.times > 1 && plan.repeat.times > 1;
  std::vector<double> held(load.size());
  load.durations(clock, held);
  std::vector<double>& durations = step.durations;
  durations.resize(plan.launches.size() + of_tokens);
  for (std::size_t i = 0; i < durations.size(); ++i) durations[i] = held[step.written.held_as(i)];
  if (options.cuda_graphs)
    for (std::size_t i = 0; i < durations.size(); ++i) durations[i] = plan.launches[i].busy_of(durations[i]);
  step.written_launches = plan.launches.size();
  if (tokens != nullptr) tokens->durations = std::span<const double>(durations).subspan(step.written_launches);
  std::optional<SettledRun> run = settle(plan, durations, gpu, options.most_steps, leaves_out, asked, tokens);
  if (options.contention != nullptr && !plan.order.empty()) {
    const std::vector<double> alone = durations;
    for (int pass = 0; run && pass < kContentionPasses; ++pass) {
      durations = contended(plan, step.written, alone, run->spans, *options.contention);
      run = settle(plan, durations, gpu, options.most_steps, leaves_out);
    }
    step.contention = 0.0;
    for (std::size_t i = 0; i < durations.size(); ++i)
      if (plan.launches[i].stream == 0)
        step.contention += static_cast<double>(plan.repeat.times_of(i)) * (durations[i] - alone[i]);
  }
  if (run) step.run = std::move(*run);
  return run.has_value();
}

}  // namespace

Settlement settle_step(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                       const TimelineOptions& options, Spans spans) {
  Settlement step;
  make_plan(step, program, gpu, host, options, kPlayed);
  std::optional<TokenPlan> tokens;
  if (options.tokens != nullptr) step.plan.host_of_tokens = tokens.emplace(*options.tokens, gpu, host).host_total;
  TokenPlan* const played = tokens ? &*tokens : nullptr;
  Hertz ran_at{-1.0};
  bool complete = false;  // with all that is asked of the last clock's run
  const auto run_at = [&](Hertz clock, Spans asked) {
    if (clock != ran_at || (asked == Spans::kept && !complete)) {
      if (!play(step, load, clock, gpu, options, asked, played)) {
        make_plan(step, program, gpu, host, options, step.repeat.times);
        play(step, load, clock, gpu, options, asked, played);
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

}  // namespace ridgeline
