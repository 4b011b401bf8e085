// Reads `gemm:` of a hardware file: kernels of the matrix library that a what-if adds or puts in place of the known.
#pragma once

#include "sim/config/value.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

void read_gemm_menu_way(const config::Value& value, Gpu& gpu);
/// After everything else of `gpu` has been read: a kernel has to fit its SM.
void read_gemm_tiles(const config::Value& value, Gpu& gpu);

}  // namespace ridgeline
