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

/// Of the longest kernel of a call whose name says it, with whether a second one adds up its splits, and how many the
/// blocks of its launch are for `batch` results of `m` rows and `n` columns (not of persistent kernels).
LibraryKernel kernel_that_ran(const std::vector<MeasuredKernel>& kernels, std::int64_t batch, std::int64_t m,
                              std::int64_t n);

/// Of the longest kernel of a convolution whose name says how it convolves: of those for the weights' gradient, or of
/// all others.
RecordedConvolution convolution_that_ran(const std::vector<MeasuredKernel>& kernels, bool weights);

}  // namespace ridgeline::trace
