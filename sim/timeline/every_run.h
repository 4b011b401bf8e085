// The actions of the steady step with all runs of what it holds once, or some: where several streams run beside each
// other, a micro-batch need not run as the one before it did, though it does the same.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "sim/program/step_program.h"
#include "sim/timeline/issue_plan.h"

namespace ridgeline {

struct EveryRun {
  std::vector<Action> actions;
  std::size_t events = 0;   ///< of the program and of further runs, each of which has its own
  RepeatedLaunches repeat;  ///< of the step as it is held, as often as it is written
};

/// Whether the order in which streams and events follow each other decides anything.
[[nodiscard]] inline bool is_ordered(const StepProgram& program) {
  return program.has_streams() || (program.trace != nullptr && program.trace->events > 0);
}

/// Whether a step has to be written out for the timeline: it has streams and holds something once. What a rank of a
/// pipeline holds once is played by its schedule.
bool plays_every_run(const StepProgram& program);

/// A run waits for its own events, or for those of the run before it, as runs_again() of the trace makes sure. `runs`:
/// how many are written.
EveryRun every_run(const StepProgram& program, std::int64_t runs);

/// A step that holds nothing once: every run of what `of` holds is written out, with what it allocates and frees.
struct UnrolledStep {
  std::shared_ptr<const OpTrace> trace;  ///< what `program` points to
  StepProgram program;                   ///< of the steady step alone
  RepeatedLaunches launches, actions;    ///< of the step as it was held, and likewise its actions from its begin on
};
UnrolledStep unrolled_step(const StepProgram& of);

/// What the host issues of them.
IssuePlan plan_every_run(const StepProgram& program, const EveryRun& runs, const Gpu& gpu, const Host& host);

}  // namespace ridgeline
