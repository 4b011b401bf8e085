// A launch as a grid of blocks with phases: the laws' service times, the simulated traffic's bytes.
#pragma once

#include "sim/hierarchy/grid_run.h"
#include "sim/hierarchy/traffic.h"
#include "sim/timing/attention/attention_law.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {

/// Seconds of a kernel's parts, as its law has them.
struct KernelParts {
  double fixed = 0;   ///< to the first instruction
  double fill = 0;    ///< until the first operands are there
  double memory = 0;  ///< of the DRAM, beyond the fill
};

GridPlan plan_of(const GemmWork& work, const GemmTime& law, const KernelParts& parts, const KernelTraffic& traffic,
                 const Gpu& gpu);
GridPlan plan_of(const AttentionWork& work, const AttentionBlocks& blocks, double clock, const KernelParts& parts,
                 const KernelTraffic& traffic, const Gpu& gpu);

}  // namespace ridgeline
