// How many warps the SMs hold while a kernel runs, and the rest of its profile.
//
// The dispatcher starts launch.blocks_per_second blocks, one SM after the other; a slot that a block has left stays
// empty for a while until the next block's warps run. Occupancy is counted as profilers do: over the SMs and cycles
// that have a block at all.
#pragma once

#include <memory>
#include <span>

#include "sim/hierarchy/traffic.h"
#include "sim/timing/kernel_profile.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// `ends`: when each step of the traffic ends, in seconds after the start. `waiting`: seconds of the kernel by what its
/// warps wait for, to be scaled to shares.
std::shared_ptr<const KernelProfile> profile_of(const KernelLaunch& launch, const KernelTraffic& traffic,
                                                std::span<const double> ends, const KernelTime& time,
                                                const std::array<double, kStalls>& waiting, const Gpu& gpu);

}  // namespace ridgeline
