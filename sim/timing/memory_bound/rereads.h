// Blocks that read their rows more than once: how many rows are at work at a time, and what the L1 keeps of them.
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/occupancy/occupancy.h"

namespace ridgeline {

/// What a large chip holds, whatever the chip at hand does: its threads and registers an SM (all of NVIDIA's compute
/// chips since Volta) and a round number of SMs. Blocks that are at work together push each other's rows out of the
/// caches. Counted by the chip's own SMs and warps, more of either would be slower by itself, as caches do have it; a
/// law that never says so counts them on a chip that stays the same.
inline constexpr double kThreadsAtWork = 2048.0, kRegistersAtWork = 65536.0, kSmsAtWork = 128.0;

/// L1 share of a row that is read again falls from all to none between these multiples of the L1's capacity.
inline constexpr double kL1HitsAll = 0.4, kL1HitsNone = 0.94;

/// Blocks at work together, on an SM and on all. Softmax of long rows before 2025 is counted on the chip itself: T4s,
/// which hold half the threads, were measured to keep those rows.
struct AtWork {
  double of_sm = 1, of_chip = 1;
};
inline AtWork at_work(const KernelLaunch& launch, const MemoryBoundWork& work, const SmSpec& sm) {
  if (work.crowded_as_here) {
    const double of_sm =
        std::min<double>(std::max(1, occupancy_of(sm, launch).blocks), std::ceil(launch.blocks() / sm.count));
    const double of_chip = std::min(sm.count * of_sm, launch.blocks());
    return {of_chip / sm.count, of_chip};
  }
  const double threads = std::max(1, launch.threads_per_block),
               registers = 8.0 * std::ceil(std::max(1, launch.registers_per_thread) / 8.0);
  const double of_sm =
      std::max(1.0, std::floor(std::min(kThreadsAtWork / threads, kRegistersAtWork / (registers * threads))));
  return {std::min(of_sm, std::max(1.0, launch.blocks() / sm.count)), std::min(launch.blocks(), kSmsAtWork * of_sm)};
}

/// Share of the bytes read again that the L1, with the rows of the blocks on its SM, has lost.
inline double l1_miss_again(const KernelLaunch& launch, const MemoryBoundWork& work, const SmSpec& sm) {
  if (!work.reread_through_l1) return 1.0;
  const double filled =
      at_work(launch, work, sm).of_sm * work.reread_row_bytes / std::max(1.0, sm.l1_and_shared.value());
  return std::clamp((filled - kL1HitsAll) / (kL1HitsNone - kL1HitsAll), 0.0, 1.0);
}

}  // namespace ridgeline
