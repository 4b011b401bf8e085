// From a kernel's simulated traffic to its time and profile.
#pragma once

#include "sim/hierarchy/traffic.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

KernelTime simulated_time(const KernelLaunch& launch, const KernelTraffic& traffic, const Gpu& gpu);

}  // namespace ridgeline
