#include "sim/kernels/assumed_kernels.h"

#include <fmt/format.h>

namespace ridgeline {

std::vector<std::string> assumed_kernels(const Gpu& gpu) {
  constexpr int kFirstWithWgmma = 9;
  std::vector<std::string> notes;
  const bool wgmma = gpu.sm.warpgroup_mma && gpu.sm.tensor_memory_accelerator;
  if (wgmma && gpu.compute_major < kFirstWithWgmma)
    notes.push_back(
        fmt::format("no library has wgmma kernels for compute capability {}.{}: those of Hopper that fit an "
                    "SM are assumed, beside the chip's own",
                    gpu.compute_major, gpu.compute_minor));
  if (gpu.sm.warpgroup_mma && !gpu.sm.tensor_memory_accelerator)
    notes.emplace_back("wgmma without TMA: no library has such kernels, those of mma.sync run");
  if (!wgmma && gpu.compute_major == kFirstWithWgmma)
    notes.emplace_back(
        "Hopper without wgmma or TMA: libraries have no 16-bit kernels of mma.sync for its aligned operands, those of "
        "Ampere are assumed");
  return notes;
}

}  // namespace ridgeline
