// How many warps the SMs hold while a kernel runs, and the rest of its profile.
//
// The dispatcher starts launch.blocks_per_second blocks, one SM after the other; a slot that a block has left stays
// empty for a while until the next block's warps run. Occupancy is counted as profilers do: over the SMs and cycles
// that have a block at all.
#pragma once

#include <memory>
#include <span>

#include "sim/hierarchy/grid_run.h"
#include "sim/hierarchy/traffic.h"
#include "sim/timing/kernel_profile.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// How a kernel's time passed: samples, of which occupancy is still relative to the blocks that an SM can hold.
struct KernelCourse {
  std::vector<ProfileSample> samples;
  double tail_share = 0;  ///< of the time, with fewer than all SMs at work at the end
};

/// Of traffic steps that follow one another; `ends` in seconds after the start.
KernelCourse course_of(const KernelLaunch& launch, const KernelTraffic& traffic, std::span<const double> ends,
                       const Gpu& gpu);
/// Of a grid run in events whose blocks came `fill` before its first phases; a tick lasts `tick` seconds.
KernelCourse course_of(const GridPlan& plan, const GridRun& run, const KernelTraffic& traffic, Ticks fill, double tick);

/// `waiting`: seconds of the kernel by what its warps wait for, to be scaled to shares.
std::shared_ptr<const KernelProfile> profile_of(const KernelLaunch& launch, const KernelTraffic& traffic,
                                                KernelCourse course, const KernelTime& time,
                                                const std::array<double, kStalls>& waiting, const Gpu& gpu);

}  // namespace ridgeline
