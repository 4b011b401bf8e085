// Products that no tile of a menu computes: by vectors, by few vectors, in small tiles.
#pragma once

#include "fit/law_problem.h"

namespace ridgeline::fit {

/// Adds the kernels of products whose classes are memory-bound ones, each as the launch of the kernel that the profile
/// names; those whose grid no launch has are left out.
void add_small_products(const Measurements& measurements, const Laboratory& laboratory, Collected& collected);

}  // namespace ridgeline::fit
