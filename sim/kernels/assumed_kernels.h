// What a changed chip is given that no library was ever built with.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/gpu.h"

namespace ridgeline {

/// A sentence for each kind of matrix-product kernels that no library has compiled for such a chip; none for chips that
/// exist.
std::vector<std::string> assumed_kernels(const Gpu& gpu);

}  // namespace ridgeline
