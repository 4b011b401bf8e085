// A plan as text and as JSON: the best ways, what separates them, which need less memory, how sure the order is, what
// would change it, and why the others were left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/study/plan/plan_answer.h"

namespace ridgeline {

/// Throws UserError where nothing fits or can run: that is no answer, and the message says what is nearest.
void check_that_some_fit(const PlanQuestion& question, const PlanSearch& search);

std::string plan_text(const PlanQuestion& question, const PlanSearch& search, const PlanAnswer& answer);
nlohmann::ordered_json plan_json(const PlanQuestion& question, const PlanSearch& search, const PlanAnswer& answer);

/// Why ways were left out, and how many for each reason, most first.
struct LeftOut {
  std::string why;
  std::int64_t ways = 0;
};
std::vector<LeftOut> left_out_of(const PlanSearch& search);

}  // namespace ridgeline
