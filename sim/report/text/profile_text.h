// What a simulation saw inside kernels, as tables of at most 100 columns under the names of NVIDIA Nsight Compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/timing/kernel_profile.h"
#include "sim/units/quantity.h"

namespace ridgeline {

struct ProfiledKernel {
  std::string name;
  std::int64_t count = 1;  ///< launches that the profile sums up
  Seconds time;            ///< of all of them
  KernelProfile profile;
};

/// Three tables: memory, SMs, stall reasons. Empty for no kernels.
std::string profile_tables(std::span<const ProfiledKernel> kernels);

}  // namespace ridgeline
