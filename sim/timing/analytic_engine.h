// The default engine: tiles, waves, occupancy and cache reuse in closed form.
#pragma once

#include "sim/timing/kernel_time.h"

namespace ridgeline {

class AnalyticEngine final : public TimingEngine {
 public:
  explicit AnalyticEngine(const Gpu& gpu) : gpu_(gpu) {}
  [[nodiscard]] KernelTime time(const KernelLaunch& launch, Residency residency) const override;
  [[nodiscard]] std::string_view name() const override { return "analytic"; }

 private:
  const Gpu& gpu_;
};

}  // namespace ridgeline
