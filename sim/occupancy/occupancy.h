// How many thread blocks an SM holds at once: registers, shared memory, warps and block slots, each handed out in
// units.
//
// Registers go to warps in units of `register_allocation_unit`, each scheduler owning its share of the file; shared
// memory to blocks in units of `shared_allocation_unit` on top of what the driver reserves. Source: NVIDIA's occupancy
// rules (CUDA C++ programming guide, compute capabilities 7.0 to 9.0). Tested by tests/occupancy/occupancy_test.cpp.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// Of every GPU of NVIDIA's (CUDA C++ programming guide, table of compute capabilities).
inline constexpr int kThreadsPerWarp = 32;

/// What keeps another block from becoming resident.
enum class OccupancyLimit : std::uint8_t { blocks, warps, registers, shared_memory };

struct Occupancy {
  int blocks = 0;  ///< resident on one SM; 0 when not even one fits
  int warps_per_block = 0;
  OccupancyLimit limit = OccupancyLimit::blocks;
  /// Resident warps over the most the SM can hold.
  [[nodiscard]] double share(const SmSpec& sm) const {
    return static_cast<double>(blocks * warps_per_block) / sm.max_warps;
  }
};

Occupancy occupancy_of(const SmSpec& sm, int threads_per_block, int registers_per_thread,
                       std::int64_t shared_bytes_per_block);
Occupancy occupancy_of(const SmSpec& sm, const KernelLaunch& launch);

}  // namespace ridgeline
