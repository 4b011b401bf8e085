// One kernel of a step from the inside: grid, tiles, what an SM holds of it, bytes at each level, and the least time
// that each resource leaves it. docs/lab.md lists the keys.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/step_detail.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

nlohmann::ordered_json launch_json(const KernelKind& kind, const Gpu& gpu);

/// What all threads of a launch load and store: of the registers' side, before L1 and shared memory answer a part.
double loaded_bytes(const KernelLaunch& launch);
/// Of the first launch; no less than it asks of the L2, where tiles reach beyond small operands.
double loaded_bytes(const KernelKind& kind);

}  // namespace ridgeline
