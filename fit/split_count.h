// Into how many parts a profiled product split its sum over k.
#pragma once

#include "fit/kernel_name.h"
#include "fit/measurements.h"
#include "sim/workload/op.h"

namespace ridgeline::fit {

/// Whether the kernel adds up the partial sums of a product before it.
bool adds_splits(const ProfiledKernel& kernel);
/// The same, of fp32 products that are not CUTLASS's and bring a kernel of their own.
bool adds_own_splits(const ProfiledKernel& kernel);

/// The splits of k that the grid shows; 0 where it shows none that fit.
int splits_of(const NamedGemm& named, const ProfiledKernel& kernel, const Matmul& op);

}  // namespace ridgeline::fit
