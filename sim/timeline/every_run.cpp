#include "sim/timeline/every_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// Actions of all runs: about 1 GB of plans, spans and durations. With allocations, of which nothing is played, more.
constexpr std::uint32_t kMostPlayed = 4'000'000, kMostWritten = 16'000'000;

/// Writes runs of the repeated actions one behind another, and gives the events of each their own names.
class Writer {
 public:
  Writer(const StepProgram& program, std::int64_t runs, bool allocations = false)
      : program_(program), repeat_(program.repeat_of_steady_step()), allocations_(allocations) {
    repeat_.times = runs;
    result_.events = program.trace != nullptr ? program.trace->events : 0;
    result_.repeat = repeated_launches(program);
    result_.repeat.times = runs;
  }

  EveryRun write() {
    const StepRange step = program_.steps.back();
    const StepRange held = repeat_.actions;
    const std::uint32_t all = allocations_ ? kMostWritten : kMostPlayed;
    const auto most = static_cast<std::int64_t>(all / std::max(1u, held.end - held.begin));
    if (repeat_.times > most)
      throw UserError(
          fmt::format("{} micro-batches of {} actions each, one after the other, are more than the {},000,000 that a "
                      "timeline holds: a larger micro-batch needs fewer",
                      repeat_.times, held.end - held.begin, all / 1'000'000));
    result_.actions.reserve(step.end - step.begin + (held.end - held.begin) * static_cast<std::size_t>(repeat_.times));
    for (std::uint32_t i = step.begin; i < held.begin; ++i) add(program_.actions[i]);
    first_ = recorded_;
    const auto numbers_before = numbers_;
    for (std::uint32_t i = held.begin; i < held.end; ++i) add(program_.actions[i]);
    in_run_ = recorded_ - first_;
    for (run_ = 1; run_ < repeat_.times; ++run_) {
      keep_budget_often("the timeline of the micro-batches");
      numbers_ = numbers_before;
      recorded_ = first_;
      for (std::uint32_t i = held.begin; i < held.end; ++i) add(program_.actions[i]);
    }
    result_.events += in_run_ * static_cast<std::size_t>(repeat_.times - 1);
    after_ = true;
    --run_;
    for (std::uint32_t i = held.end; i < step.end; ++i) add(program_.actions[i]);
    return std::move(result_);
  }

 private:
  void add(const Action& given) {
    Action action = given;
    switch (action.kind) {
      case Action::Kind::allocate:
      case Action::Kind::free:
        if (!allocations_) return;
        break;
      case Action::Kind::record_event: {
        const std::size_t number = recorded_++;
        numbers_[given.index] = number;
        if (run_ == 0) originals_.push_back(given.index);
        else if (!after_) action.index = name(number - first_, run_);
        break;
      }
      case Action::Kind::wait_event:
      case Action::Kind::host_waits_for_event:
        if (run_ > 0) action.index = awaited(given.index);
        break;
      case Action::Kind::launch:
      case Action::Kind::host:
      case Action::Kind::wait: break;
    }
    result_.actions.push_back(action);
  }
  /// Of event `number` of a run.
  [[nodiscard]] std::uint32_t name(std::size_t number, std::int64_t run) const {
    if (run == 0) return originals_[first_ + number];
    return static_cast<std::uint32_t>(program_.trace->events + static_cast<std::size_t>(run - 1) * in_run_ + number);
  }
  /// The event that an action of this run, or one behind the last, means by what the held run calls `event`.
  [[nodiscard]] std::uint32_t awaited(std::uint32_t event) const {
    const auto found = numbers_.find(event);
    if (found == numbers_.end()) return event;
    const std::size_t number = found->second;
    if (number >= first_ + in_run_) return event;  // recorded behind all runs
    if (number >= first_) return name(number - first_, run_);
    if (number + in_run_ >= first_) return name(number + in_run_ - first_, run_ - 1);
    return event;
  }

  const StepProgram& program_;
  RepeatedActions repeat_;
  bool allocations_;
  EveryRun result_;
  std::unordered_map<std::uint32_t, std::size_t> numbers_;  ///< of the last time each event was recorded
  std::vector<std::uint32_t> originals_;                    ///< events in the order in which they are recorded
  std::size_t recorded_ = 0, first_ = 0, in_run_ = 0;       ///< events so far; before the held run; in it
  std::int64_t run_ = 0;
  bool after_ = false;
};

}  // namespace

bool plays_every_run(const StepProgram& program) {
  return is_ordered(program) && program.stage_actions.empty() && program.repeat_of_steady_step().times > 1;
}

EveryRun every_run(const StepProgram& program, std::int64_t runs) { return Writer(program, runs).write(); }

UnrolledStep unrolled_step(const StepProgram& of) {
  const RepeatedActions held = of.repeat_of_steady_step();
  const std::uint32_t begin = of.steps.back().begin;
  EveryRun runs = Writer(of, held.times, true).write();
  OpTrace trace = *of.trace;
  trace.events = static_cast<std::uint32_t>(runs.events);
  UnrolledStep step;
  step.launches = runs.repeat;
  step.actions = {held.actions.begin - begin, held.actions.end - begin, held.times};
  step.trace = std::make_shared<const OpTrace>(std::move(trace));
  step.program = of;
  step.program.trace = step.trace.get();
  step.program.steps = {{0, static_cast<std::uint32_t>(runs.actions.size())}};
  step.program.repeats.clear();
  step.program.actions = std::move(runs.actions);
  return step;
}

}  // namespace ridgeline
