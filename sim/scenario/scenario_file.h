// Scenarios that are shipped, by name from any folder.
#pragma once

#include <string>

namespace ridgeline {

/// `given` where there is such a file; else the shipped scenario or sweep of that name ("bert-large-fp32",
/// "scenarios/sweeps/six-gpus.yaml", "sweeps/six-gpus"); else `given`, for the reader to say that it is missing.
std::string scenario_file(const std::string& given);

}  // namespace ridgeline
