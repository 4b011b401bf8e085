// The steady step of a question, by what it spends its time on.
#pragma once

#include <map>
#include <string>

#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {

struct TimedOp {
  double seconds = 0;
  int launches = 0;
  std::string kernels;  ///< names, each once
};

struct TimedStep {
  double step = 0, busy = 0;
  Hertz clock;                         ///< of the SMs, average
  std::map<std::string, TimedOp> ops;  ///< by name and shape; filled where asked for
};

TimedStep timed(const Scenario& scenario, const std::string& engine, bool with_ops = false);

/// The ops whose time grew most from `before` to `after`, a line each.
std::string what_grew(const TimedStep& before, const TimedStep& after);
/// Name of the op that grew most; "many kernels" where it is not one.
std::string most_grown(const TimedStep& before, const TimedStep& after);

}  // namespace ridgeline::invariants
