// Which kernel of a library ran a matrix product, as the kernel's name says.
#pragma once

#include <string_view>
#include <vector>

#include "sim/trace/aten/aten_call.h"
#include "sim/workload/op.h"

namespace ridgeline::trace {

/// Of one name, the tile turned to rows and columns of a row-major result (the libraries' are column-major): cuBLAS's,
/// CUTLASS's and nvJet's. `instructions` is none for other names, and for tiles of a single stage (small products).
LibraryKernel library_kernel_of(std::string_view name);

/// Of the longest kernel of a call whose name says it, with whether a second one adds up its splits.
LibraryKernel kernel_that_ran(const std::vector<MeasuredKernel>& kernels);

}  // namespace ridgeline::trace
