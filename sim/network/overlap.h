// A collective and a kernel side by side on one GPU: how much each slows the other.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/network/collective_time.h"
#include "sim/units/quantity.h"

namespace ridgeline {

/// A kernel as the law of overlap sees it.
struct KernelBesides {
  Seconds time;              ///< alone
  double blocks = 1.0;       ///< thread blocks of the launch
  double blocks_per_sm = 1;  ///< that fit an SM
  Bytes dram;                ///< moved through the DRAM
  double sm_share = 1.0;     ///< of its time that shrinks with SMs (0: bound by DRAM or L2 alone)
};

/// Time of the kernel while the collective runs, over its time alone; at least 1.
double compute_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel);

/// Time of the collective while kernels like this one run back to back, over its time alone; at least 1. It counts
/// what the collective's thread blocks wait for room.
double collective_slowdown(const Gpu& gpu, const CollectiveTime& collective, const KernelBesides& kernel);

}  // namespace ridgeline
