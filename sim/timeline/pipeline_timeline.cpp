#include "sim/timeline/pipeline_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/timeline/pipeline_play.h"
#include "sim/timeline/pipeline_stand_ins.h"
#include "sim/timeline/power.h"
#include "sim/timing/clock_law.h"

namespace ridgeline {
namespace {

constexpr double kSettledLead = 1e-6;

/// What a class of ranks is played from.
struct Played {
  Played(const PipelineClass& one, const Gpu& gpu, const Host& host)
      : program(*one.program),
        rank(one.rank),
        contention(one.contention),
        plan(plan_issues(*one.program, gpu, host, Groups::none)),
        load(*one.program, one.times, gpu),
        clock(top_clock(gpu)),
        durations(one.times.size()) {}

  void run_at(Hertz at, const Gpu& gpu, std::uint32_t longest) {
    clock = at;
    for (std::size_t i = 0; i < durations.size(); ++i)
      durations[i] = plan.launches[i].busy_of(load.duration(i, at).value());
    constexpr int kSteps = 3;  // alone, only what stands beside what is read off
    if (contention != nullptr) durations = contended_durations(plan, durations, gpu, *contention, kSteps);
    script = stage_script(program, plan, durations, gpu.launch.start_latency.value(), longest);
  }

  const StepProgram& program;
  std::size_t rank;
  const Contention* contention;
  IssuePlan plan;
  StepLoad load;
  Hertz clock;
  std::vector<double> durations;
  StageScript script;
};

using Steps = std::vector<PipelinePlay::RankStep>;

double longest_of(const Steps& steps) {
  double longest = 0.0;
  for (const auto& one : steps) longest = std::max(longest, one.end - one.begin);
  return longest;
}

/// What every rank does in a step of so many micro-batches, and from which actions of its class's trace it is played.
struct Order {
  Order(std::span<const Played> classes, std::span<const std::size_t> class_of, const parallel::PipelineShape& of)
      : shape(of), shorter(parallel::shorten(of)), actions(parallel::make_schedule(of)) {
    parallel::PipelineShape traced = of;
    traced.micro_batches = shorter.micro_batches;
    const std::vector<parallel::RankActions> traces = parallel::make_schedule(traced);
    for (std::size_t rank = 0; rank < actions.size(); ++rank) {
      const std::size_t own = classes[class_of[rank]].rank;
      std::vector<std::uint32_t>& places = positions.emplace_back(actions[rank].size());
      const StandIns stand_ins(traces[own], shape, own);
      for (std::size_t i = 0; i < places.size(); ++i)
        places[i] = own == rank ? static_cast<std::uint32_t>(shorter.position(rank, i))
                                : stand_ins.of(actions[rank][i], rank, of.micro_batches);
    }
  }
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  parallel::PipelineShape shape;
  parallel::ShortSchedule shorter;
  std::vector<parallel::RankActions> actions;
  std::vector<std::vector<std::uint32_t>> positions;
};

/// Rounds beyond the traced ones that are played. Any more take as long as the last half of these do on average.
constexpr std::int64_t kMostRounds = 256;

class Pipeline {
 public:
  Pipeline(std::span<const PipelineClass> classes, std::span<const std::size_t> class_of,
           const parallel::PipelineShape& shape, const Gpu& gpu, const Host& host, const PipelineOptions& options)
      : class_of_(class_of), gpu_(gpu), options_(options) {
    played_.reserve(classes.size());
    for (const PipelineClass& one : classes)
      played_.emplace_back(one, gpu, host).run_at(top_clock(gpu), gpu, options.longest_stretch);
    const parallel::ShortSchedule shorter = parallel::shorten(shape);
    parallel::PipelineShape most = shape;
    if (shorter.times > kMostRounds + 1) {
      most.micro_batches = shorter.micro_batches + shorter.round * static_cast<std::int32_t>(kMostRounds);
      parallel::PipelineShape half = most;
      half.micro_batches -= shorter.round * static_cast<std::int32_t>(kMostRounds / 2);
      half_.emplace(played_, class_of_, half);
      further_ = static_cast<double>(shape.micro_batches - most.micro_batches) /
                 static_cast<double>(most.micro_batches - half.micro_batches);
      further_rounds_ = (shape.micro_batches - most.micro_batches) / shorter.round;
    }
    order_.emplace(played_, class_of_, most);
  }

  Seconds settle() {
    Steps half;
    if (half_) half = settle(*half_);
    last_ = settle(*order_);
    for (std::size_t i = 0; i < half.size(); ++i) go_on(last_[i], half[i]);
    return Seconds{longest_of(last_)};
  }

  /// Repeats the step until its time and the hosts' leads no longer change.
  Steps settle(const Order& order) {
    Steps last;
    play_.emplace(ranks(order), gpu_.launch.queue_depth, gpu_.launch.start_latency.value(), transfer_times());
    double before = 0.0;
    std::vector<double> leads;
    steps_run_ = 0;
    while (steps_run_ < std::max(2, options_.timeline.most_steps)) {
      last = play_->step();
      ++steps_run_;
      const double step = longest_of(last);
      std::vector<double> now;
      for (const auto& one : last) now.push_back(one.end - one.host);
      bool same = steps_run_ > 2 && std::abs(step - before) <= kSettledLead * step;
      for (std::size_t i = 0; same && i < now.size(); ++i) same = std::abs(now[i] - leads[i]) <= kSettledLead * step;
      before = step;
      leads = std::move(now);
      if (same) break;
    }
    return last;
  }

  /// Clocks that the power limit leaves each class.
  void throttle() {
    if (!options_.timeline.throttle) return;
    for (Played& one : played_) {
      const Hertz clock = one.load.settle([&](Hertz at) {
        if (at != one.clock) {
          one.run_at(at, gpu_, options_.longest_stretch);
          settle();
        }
        return Seconds{longest_of(last_)};
      });
      if (clock == one.clock) continue;
      one.run_at(clock, gpu_, options_.longest_stretch);
      settle();
    }
  }

  PipelineTimeline result(std::size_t shown) {
    PipelineTimeline timeline;
    timeline.step = Seconds{longest_of(last_)};
    for (std::size_t rank = 0; rank < last_.size(); ++rank) {
      const auto& one = last_[rank];
      const double step = one.end - one.begin;
      timeline.ranks.push_back({Seconds{step}, busy_of(played_[class_of_[rank]]), Seconds{one.starved},
                                Seconds{one.transfers}, Seconds{one.bubble}, Seconds{one.end - one.host}});
      if (timeline.ranks[rank].busy > timeline.ranks[timeline.busiest].busy) timeline.busiest = rank;
    }
    timeline.shown_rank = shown;
    timeline.shown = shown_line(shown, timeline);
    for (std::size_t rank = 0; rank < last_.size(); ++rank) {
      std::vector<StagePass>& lane = timeline.lanes.emplace_back();
      for (const PlacedPass& pass : passes_of(rank)) {
        lane.push_back({order_->actions[rank][pass.action], Seconds{pass.start - begin_}, Seconds{pass.end - begin_}});
        lane.back().action.micro_batch += pass.later;
      }
    }
    std::set<std::uint32_t> ran;
    for (const LaunchRun& run : runs_of(shown))
      if (!ran.insert(run.begin).second) timeline.further.push_back(run);
    if (options_.every_rank) place_every_rank(timeline, shown);
    return timeline;
  }

 private:
  [[nodiscard]] std::vector<PlayedRank> ranks(const Order& order) const {
    std::vector<PlayedRank> result;
    for (std::size_t rank = 0; rank < order.actions.size(); ++rank) {
      const Played& one = played_[class_of_[rank]];
      result.push_back({&one.script, &order.actions[rank], order.positions[rank], one.plan.streams, one.plan.events});
    }
    return result;
  }

  /// What a step adds beyond one that was played half as far.
  void go_on(PipelinePlay::RankStep& step, const PipelinePlay::RankStep& half) const {
    const auto on = [&](double whole, double part) { return further_ * (whole - part); };
    const double longer = on(step.end - step.begin, half.end - half.begin);
    step.host += on(step.host - step.begin, half.host - half.begin);
    step.end += longer;
    step.starved += on(step.starved, half.starved);
    step.transfers += on(step.transfers, half.transfers);
    step.bubble += on(step.bubble, half.bubble);
  }

  [[nodiscard]] std::vector<double> transfer_times() const {
    std::vector<double> times;
    const std::size_t n = class_of_.size();
    for (std::size_t i = 0; options_.transfer_time && i < n * n; ++i) {
      const std::size_t apart = (i % n + n - i / n) % n;  // stages send to neighbours, the last rank to the first
      times.push_back(apart == 1 || apart + 1 == n ? options_.transfer_time(i / n, i % n).value() : 0.0);
    }
    return times;
  }
  /// A pass of a rank's whole step: of the micro-batch that `action` names, or so many later.
  struct PlacedPass {
    std::uint32_t action = 0;
    std::int32_t later = 0;
    double start = 0.0, end = 0.0;
  };
  /// Actions of the last round that was played.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> last_round(std::size_t rank) const {
    const parallel::ShortSchedule::Rank& held = order_->shorter.ranks[rank];
    const std::size_t round = held.end - held.begin;
    const std::size_t end = held.begin + round * static_cast<std::size_t>(order_->shorter.times);
    return {static_cast<std::uint32_t>(end - round), static_cast<std::uint32_t>(end)};
  }
  /// Those that were played, and between them those that were not: as the last round that was.
  [[nodiscard]] std::vector<PlacedPass> passes_of(std::size_t rank) const {
    const std::vector<PipelinePlay::Pass>& played = play_->passes(rank);
    const auto [last_begin, last_end] = last_round(rank);
    const double unplayed = half_ ? unplayed_[rank] : 0.0;
    const std::int32_t rounds = half_ ? further_rounds_ : 0;
    std::vector<PlacedPass> placed;
    const auto behind =
        std::find_if(played.begin(), played.end(), [end = last_end](const auto& p) { return p.action >= end; });
    for (auto pass = played.begin(); pass != behind; ++pass)
      placed.push_back({pass->action, 0, pass->start, pass->end});
    for (std::int32_t further = 1; further <= rounds; ++further)
      for (auto pass = played.begin(); pass != behind; ++pass)
        if (const double by = unplayed * further / rounds; pass->action >= last_begin)
          placed.push_back({pass->action, further * order_->shorter.round, pass->start + by, pass->end + by});
    for (auto pass = behind; pass != played.end(); ++pass)
      placed.push_back({pass->action, rounds * order_->shorter.round, pass->start + unplayed, pass->end + unplayed});
    return placed;
  }

  /// How a rank runs what its class's own rank was played with last, kernel by kernel. An exchange moves with the pass
  /// before it.
  [[nodiscard]] std::vector<LaunchRun> runs_of(std::size_t rank) const {
    const Played& one = played_[class_of_[rank]];
    const std::vector<LaunchRange> actions = launches_of_actions(one.program);
    std::map<std::uint32_t, double> first;  // start of the pass with a span, by position
    for (const PlacedPass& pass : passes_of(one.rank))
      first.try_emplace(order_->positions[one.rank][pass.action], pass.start);
    std::vector<LaunchRun> runs;
    std::vector<bool> ran(actions.size());
    const auto add = [&](std::size_t entry, double shift) {
      ran[entry] = true;
      if (actions[entry].begin < actions[entry].end)
        runs.push_back({actions[entry].begin, actions[entry].end, Seconds{shift}});
    };
    add(0, 0.0);
    std::uint32_t next = 0;
    std::int32_t later = 0;
    double shift = 0.0;
    const auto exchange_until = [&](std::uint32_t action) {
      for (; next < action; ++next)
        if (const std::size_t entry = order_->positions[rank][next] + 1u; !order_->actions[rank][next].computes())
          add(entry, rank != one.rank || ran[entry] ? shift : 0.0);
    };
    const auto [round_begin, round_end] = last_round(rank);
    for (const PlacedPass& pass : passes_of(rank)) {
      if (pass.later != later && pass.action < round_end) {
        exchange_until(round_end);
        next = round_begin;
      }
      later = pass.later;
      exchange_until(pass.action);
      next = std::max(next, pass.action + 1);
      const std::uint32_t position = order_->positions[rank][pass.action];
      const auto start = first.find(position);
      shift = start == first.end() ? 0.0 : pass.start - start->second;
      add(position + 1u, shift);
    }
    exchange_until(static_cast<std::uint32_t>(order_->actions[rank].size()));
    add(actions.size() - 1, rank == one.rank ? 0.0 : last_[rank].end - last_[one.rank].end);
    return runs;
  }

  /// The kernels of all ranks: each class is played kernel by kernel once more.
  void place_every_rank(PipelineTimeline& timeline, std::size_t shown) {
    timeline.kernels.resize(class_of_.size());
    for (std::size_t of = 0; of < played_.size(); ++of) {
      const Played& one = played_[of];
      const StageScript fine = stage_script(one.program, one.plan, one.durations, gpu_.launch.start_latency.value(), 1);
      PipelinePlay::Spans spans(one.durations.size());
      begin_ = play_->step(one.rank, &fine, &spans)[shown].begin;
      std::vector<KernelSpan> held(spans.size());
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const double behind = half_ && i >= one.plan.repeat.end ? unplayed_[one.rank] : 0.0;
        held[i].start = Seconds(spans[i].start - begin_ + behind);
        held[i].end = Seconds(spans[i].end - begin_ + behind);
        held[i].stream = one.plan.launches[i].stream;
      }
      for (std::size_t rank = 0; rank < class_of_.size(); ++rank)
        if (class_of_[rank] == of) timeline.kernels[rank] = {of, held, runs_of(rank)};
    }
  }

  static Seconds busy_of(const Played& one) {
    double busy = 0.0;
    for (std::size_t i = 0; i < one.durations.size(); ++i)
      if (one.plan.launches[i].stream == 0) busy += one.durations[i] * static_cast<double>(one.plan.repeat.times_of(i));
    return Seconds{busy};
  }

  Timeline shown_line(std::size_t rank, const PipelineTimeline& all) {
    const Played& one = played_[class_of_[rank]];
    const StageScript fine = stage_script(one.program, one.plan, one.durations, gpu_.launch.start_latency.value(), 1);
    PipelinePlay::Spans spans(one.durations.size());
    const Steps steps = play_->step(rank, &fine, &spans);
    const PipelinePlay::RankStep& step = steps[rank];
    begin_ = step.begin;
    for (std::size_t i = 0; i < steps.size(); ++i)
      unplayed_.push_back(last_[i].end - last_[i].begin - (steps[i].end - steps[i].begin));
    Timeline line;
    std::vector<double> blocks;
    for (const Action& action : one.program.steady_step())
      if (action.kind == Action::Kind::launch)
        blocks.push_back(std::min(1.0, one.program.launches[action.index].blocks() / std::max(1, gpu_.sm.count)));
    // Behind the rounds that were played come those that were not.
    const double unplayed = unplayed_[rank];
    for (std::size_t i = one.plan.repeat.end; half_ && i < spans.size(); ++i) {
      spans[i].issued += unplayed;
      spans[i].start += unplayed;
      spans[i].end += unplayed;
    }
    const std::vector<double> alone = exposed_spans(one.plan, spans);
    double busy = 0.0, occupied = 0.0, clocks = 0.0, held = 0.0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const double duration = alone[i] * static_cast<double>(one.plan.repeat.times_of(i));
      const Seconds held_back = one.load.held(i, one.clock);
      busy += duration;
      occupied += duration * blocks[i];
      clocks += duration * one.load.clock_of(i, one.clock).value();
      held += held_back.value() * static_cast<double>(one.plan.repeat.times_of(i));
      line.kernels.push_back({Seconds(spans[i].issued - step.begin), Seconds(spans[i].start - step.begin),
                              Seconds(spans[i].end - step.begin), held_back, Seconds(alone[i]),
                              one.plan.launches[i].stream, Seconds(spans[i].end - spans[i].start), Seconds(alone[i])});
    }
    line.step = all.step;
    line.repeat = {one.plan.repeat, Seconds(step.host - step.begin), Seconds(step.end - step.begin)};
    line.host = Seconds(one.plan.host_total());
    line.host_issue = Seconds(step.host - step.host_begin);
    line.gpu_busy = Seconds(std::min(busy, all.step.value()));
    line.idle = Seconds(std::max(0.0, all.step.value() - busy));
    line.starved = std::min(all.ranks[rank].starved, line.idle);
    line.host_begin = Seconds(step.host_begin - step.begin);
    line.clock = busy > 0.0 ? Hertz(clocks / busy) : one.clock;
    line.held = Seconds(held);
    line.power = one.load.power(one.clock, line.step);
    line.settled = one.clock;
    line.sm_utilization = line.step.value() > 0.0 ? occupied / line.step.value() : 0.0;
    line.host_bound = line.starved.value() > 0.1 * line.step.value();
    line.steps_run = steps_run_ + 1;
    return line;
  }

  std::span<const std::size_t> class_of_;
  const Gpu& gpu_;
  const PipelineOptions& options_;
  std::vector<Played> played_;
  std::optional<Order> order_, half_;  ///< of the step as far as it is played, and half as far
  double further_ = 0.0;               ///< what is not played, in differences of these two
  std::optional<PipelinePlay> play_;
  Steps last_;
  std::int32_t further_rounds_ = 0;
  std::vector<double> unplayed_;  ///< of each rank's step, what is not played
  double begin_ = 0.0;            ///< of the step that is shown
  int steps_run_ = 0;
};

}  // namespace

PipelineTimeline run_pipeline(std::span<const PipelineClass> classes, std::span<const std::size_t> class_of,
                              const parallel::PipelineShape& shape, const Gpu& gpu, const Host& host,
                              const PipelineOptions& options, std::size_t shown) {
  Pipeline pipeline(classes, class_of, shape, gpu, host, options);
  pipeline.settle();
  pipeline.throttle();
  return pipeline.result(shown);
}

}  // namespace ridgeline
