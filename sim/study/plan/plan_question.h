// From a request to candidates: those that run are points of a sweep, so that its processes and files serve a plan.
#pragma once

#include "sim/answer/session.h"
#include "sim/study/plan/plan.h"

namespace ridgeline {

/// Throws UserError as plan_base does.
PlanQuestion plan_question(const PlanRequest& request, Session& session, int threads);

}  // namespace ridgeline
