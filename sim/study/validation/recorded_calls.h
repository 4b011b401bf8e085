// Single calls of PyTorch's dispatcher as they were timed (rows with `aten` of files of kind "calls").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sim/workload/op.h"

namespace ridgeline {

/// The operations that the dispatcher's records of a row are taken for.
std::vector<Op> recorded_ops(const nlohmann::json& row);

}  // namespace ridgeline
