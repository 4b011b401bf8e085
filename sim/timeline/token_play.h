// Tokens that a step does not write out, as the recurrence runs them: launch by launch, with what the host issues for
// tokens of one shape worked out once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/timeline/issue_plan.h"
#include "sim/timeline/token_times.h"

namespace ridgeline {

struct TokenPlan {
  TokenPlan(const TokenTimes& made_of, const Gpu& gpu, const Host& host);
  const TokenTimes& times;
  std::vector<std::vector<Issue>> issues;  ///< by shape, one a launch
  double host_total = 0.0;                 ///< seconds of all tokens
  std::span<const double> durations;       ///< one an entry of TokenTimes::launches; set before they are run
};

}  // namespace ridgeline
