// The datasheet's ceilings and nothing else: FLOPs over peak or bytes over DRAM bandwidth, whichever is longer.
//
// A lower bound for kernels whose data is not in the L2, and the baseline that the other engines are compared with.
// Tested by tests/timing/roofline_engine_test.cpp.
#pragma once

#include "sim/timing/kernel_time.h"

namespace ridgeline {

class RooflineEngine final : public TimingEngine {
 public:
  explicit RooflineEngine(const Gpu& gpu) : gpu_(gpu) {}
  [[nodiscard]] KernelTime time(const KernelLaunch& launch, Residency residency) const override;
  [[nodiscard]] std::string_view name() const override { return "roofline"; }

 private:
  const Gpu& gpu_;
};

}  // namespace ridgeline
