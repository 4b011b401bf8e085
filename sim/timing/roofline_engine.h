// The datasheet's ceilings and nothing else: FLOPs over peak or bytes over DRAM bandwidth, whichever is longer.
//
// A lower bound for kernels whose data is not in the L2, and the baseline that the other engines are compared with.
// Tested by tests/timing/roofline_engine_test.cpp.
#pragma once

#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Peak of the units that a kernel computes on, as the datasheet states it: tensor cores and CUDA cores have clocks of
/// their own, a 2:4 sparse operand counts its zeros.
FlopsPerSecond datasheet_peak(const KernelLaunch& launch, const Gpu& gpu);

class RooflineEngine final : public TimingEngine {
 public:
  explicit RooflineEngine(const Gpu& gpu) : gpu_(gpu) {}
  [[nodiscard]] KernelTime time(const KernelLaunch& launch, Residency residency) const override;
  [[nodiscard]] std::string_view name() const override { return "roofline"; }

 private:
  const Gpu& gpu_;
};

}  // namespace ridgeline
