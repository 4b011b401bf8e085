// Boards on which others timed kernels that the laboratory's does not run.
#pragma once

#include <string>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/kernels/lowering.h"

namespace ridgeline::fit {

struct OtherBoard {
  OtherBoard(const std::string& hardware, const Software& software);
  Gpu gpu;
  Lowering lowering;
};

/// The board that a file of hw/ describes; it lives until the program ends, and so must the software.
const OtherBoard& other_board(const std::string& hardware, const Software& software);

}  // namespace ridgeline::fit
