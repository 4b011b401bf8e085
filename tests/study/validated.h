// Every measured kernel and step with its predictions: made once for all tests of a process, which is why those that
// read them run in one (tests/CMakeLists.txt).
#pragma once

#include <string_view>
#include <vector>

#include "sim/study/validation/kernel_validation.h"
#include "sim/study/validation/step_validation.h"

namespace ridgeline {

/// Of every engine, or of all but the simulated one (as the generated documents have them).
const std::vector<ValidatedCase>& validated_kernels_of_every_engine();
const std::vector<ValidatedCase>& validated_kernels();

/// By the analytic engine.
const std::vector<ValidatedStep>& validated_steps();
/// Steps that others published, each with a scenario (validate_published_training).
const std::vector<ValidatedStep>& validated_published_training();
/// Of the GPU in hw/NAME.yaml.
std::vector<ValidatedStep> validated_steps_on(std::string_view name);

}  // namespace ridgeline
