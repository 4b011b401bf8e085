// What the names of profiled matrix-product kernels say of their launch.
#pragma once

#include <optional>
#include <string_view>

#include "sim/launch/kernel_launch.h"

namespace ridgeline::fit {

struct NamedGemm {
  GemmWork::Family family = GemmWork::Family::simt;
  int m = 0, n = 0, k = 0;
  int stages = 0;             ///< 0: not said
  bool split = false;         ///< the name says that k is split
  bool shares_steps = false;  ///< blocks share out the k-steps of tiles
};

/// Nothing where the name is of another kind of kernel, or cut off before its tile ends.
std::optional<NamedGemm> gemm_of_name(std::string_view name);

}  // namespace ridgeline::fit
