// Changed numbers of the hardware that cannot matter: found by asking, not by a list.
//
// A changed number is put back, and then set to a sixteenth, half, twice and sixteen times its value: where the time of
// the step stays the same to the last bit throughout, nothing in the step reads it; where only putting it back leaves
// the time, it is read and limits nothing.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// A sentence for each number in which the scenario's GPU differs from its file's and which does not move the step's
/// time: "no kernel of this step reads hardware.sm.rates.tensor_tf32". Empty where nothing was changed.
std::vector<std::string> unread_changes(const StepRun& run);

}  // namespace ridgeline
