// Which software has code for a chip, and which one is taken where nobody names one.
#pragma once

#include <string>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"

namespace ridgeline {

/// Whether the published build has code for the chip's compute capability.
bool has_code_for(const Software& software, const Gpu& gpu);

/// The newest of hw/software that has code for the chip; the newest of all where none does. Chips of one compute
/// capability have one default, whatever they are called.
std::string default_software(const Gpu& gpu);

/// The newest that is not newer than a recording's CUDA toolkit (12.4) and has code for the chip; without one, or with
/// a toolkit of 0, default_software.
std::string software_of_toolkit(double cuda, const Gpu& gpu);

}  // namespace ridgeline
