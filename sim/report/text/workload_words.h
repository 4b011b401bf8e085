// The work of a step in a line: tokens, precision, adapters, GPUs.
#pragma once

#include <string>

#include "sim/scenario/scenario.h"

namespace ridgeline {

/// "1 x 1024 tokens, bf16, adapters of rank 16".
std::string training_line(const TrainingDescription& training);
/// The same of a described step; the source of a recorded one.
std::string workload_line(const Scenario& scenario);
/// ", bf16 because nothing was said", or nothing.
std::string assumed_words(const Scenario& scenario);
/// "bf16", as a scenario spells it.
const char* name_of_precision(Precision precision);

}  // namespace ridgeline
