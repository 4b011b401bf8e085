// A collective and kernels side by side on one GPU: how much each slows the other.
//
// A collective's thread blocks take an SM each until it ends. They are placed once all blocks of the kernels launched
// before are: a collective begins when the kernel that runs has no block waiting any more. Then the kernels have the
// other SMs, and both share the DRAM. docs/model/overlap.md has the equations.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/network/collective_time.h"
#include "sim/units/quantity.h"

namespace ridgeline {

/// Fitted (data/laws/overlap.yaml).
struct OverlapConstants {
  double shared = 1.2;         ///< least slowdown of a collective beside any kernel: L2 and clock are shared
  double queued = 3.5;         ///< times the DRAM's excess demand: few thread blocks wait for an answer each
  double fewer_waiting = 0.3;  ///< of a kernel that waits for memory, where the DRAM is idle
  double hidden = 0.25;        ///< of a kernel: a collective that runs so much longer still ends with it
};
const OverlapConstants& overlap_constants();

/// A kernel as the law of overlap sees it.
struct KernelBesides {
  Seconds time{};            ///< alone
  double blocks = 1.0;       ///< thread blocks of the launch
  double blocks_per_sm = 1;  ///< that fit an SM
  Bytes dram{};              ///< moved through the DRAM
  double memory_bound = 0;   ///< 1: it waits for memory; 0: it computes
};

/// Time of the kernel over its time alone where the collective runs during this share of it; at least 1.
double compute_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel,
                        double share = 1.0, const OverlapConstants& constants = overlap_constants());

/// Time of the collective, from its first thread block on, over its time alone, while kernels like this one run; at
/// least 1.
double collective_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel,
                           const OverlapConstants& constants = overlap_constants());

/// From the moment a collective could start to its first thread block, where the kernel has run for `elapsed`: until
/// the kernel's last blocks are placed.
Seconds wait_for_room(const Gpu& gpu, const KernelBesides& kernel, Seconds elapsed);

/// One of each, on average, of both back to back on streams of their own.
struct SideBySide {
  Seconds kernel, collective;
};
SideBySide side_by_side(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel,
                        const OverlapConstants& constants = overlap_constants());

}  // namespace ridgeline
