// A step repeated until it has become periodic, at the clock that the power limit leaves it.
#pragma once

#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"
#include "sim/timeline/power.h"
#include "sim/timeline/recurrence.h"
#include "sim/timeline/timeline.h"

namespace ridgeline {

struct SettledRun {
  double step = 0.0, host_issue = 0.0, begin = 0.0, host_begin = 0.0;
  double unplayed = 0.0;  ///< of `step`, further runs of what the plan of several streams repeats: they are in no span
  int steps = 0;
  Recurrence::Step last;
  std::vector<Recurrence::Span> spans;
};

/// Several streams have more than one run of what the program repeats in the plan, in durations and spans: all, or as
/// many as show that all others are as one of these, which the plan then repeats.
struct Settlement {
  IssuePlan plan;
  RepeatedLaunches repeat;   ///< of the step as the program holds it
  RepeatedLaunches written;  ///< the same with the number of runs that the plan has; one where it has them as they are
  std::vector<double> durations;
  SettledRun run;
  Hertz clock;
  double contention = 0.0;
  std::size_t written_launches = 0;  ///< entries of `durations` in front of those of tokens
};

enum class Spans : bool { not_asked, kept };

Settlement settle_step(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                       const TimelineOptions& options, Spans spans);

}  // namespace ridgeline
