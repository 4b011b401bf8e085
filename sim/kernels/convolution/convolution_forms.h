// All kernels that one direction of a convolution could run on a GPU, for those who know which one ran.
#pragma once

#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// By family, tile and split, without names and without what turns operands; none for plain products, no products of
/// transformed tensors. `role`: forward, input_gradient or weight_gradient.
std::vector<KernelLaunch> convolution_forms(const Convolution& op, Gathering::Role role, const Gpu& gpu);

}  // namespace ridgeline
