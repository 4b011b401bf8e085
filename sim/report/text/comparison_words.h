// Why one side of a comparison is slower or faster, in words made from what changed: work, rate, kernels, limiter.
#pragma once

#include <string>

#include "sim/study/comparison.h"

namespace ridgeline {

/// "no longer writes the score matrix (2.1 GB); 96 kernels fewer". Empty where nothing changed.
std::string reason_for(const ClassDifference& difference, const ComparedScenario& before,
                       const ComparedScenario& after);
/// "matrix products", "GPU waits" …
std::string class_words(const ClassDifference& difference);

}  // namespace ridgeline
