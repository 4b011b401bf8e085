// Reads `gemm:` of a hardware file: kernels of the matrix library that a what-if adds or puts in place of the known.
#pragma once

#include "sim/hardware/field_reader.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

/// After everything else of `gpu` has been read: a kernel has to fit its SM.
void read_gemm_menu(FieldReader& reader, Gpu& gpu);

}  // namespace ridgeline
