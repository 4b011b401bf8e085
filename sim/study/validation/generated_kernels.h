// Kernels that torch.compile generated, as they were timed, with the grid and registers that the profiler saw.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/study/validation/measured_files.h"
#include "sim/units/quantity.h"

namespace ridgeline {

struct GeneratedKernel {
  FusedKernel op{};  ///< name, shape and type alone
  KernelLaunch launch{};
  std::vector<double> residency{};  ///< of its accesses
  Seconds time{0};
  bool held_out = false;    ///< no fit sees it
  std::uint64_t shape = 0;  ///< hash: equal ones are on one side of the split
  std::uint64_t row = 0;    ///< hash of the line
};

/// Kernels of compiled steps (a file of kind "fused-kernels"; a third of the steps is held out). In a step most inputs
/// were just written: those that the L2 keeps are found there.
std::vector<GeneratedKernel> generated_of_steps(const MeasuredFile& file);
/// Single functions under torch.compile (rows of a file of kind "calls"), cold and warm; a third of the shapes is held
/// out. Other rows are skipped.
std::vector<GeneratedKernel> generated_of_calls(const MeasuredFile& file, const Gpu& gpu);

}  // namespace ridgeline
