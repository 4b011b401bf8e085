// The engine "simulate": every kernel's traffic is simulated on an L2 and a DRAM whose state goes from kernel to
// kernel, and its time follows from the blocks' phases and that traffic.
//
// Phases are as long as the analytic laws say; the two engines differ in what hits, in what overlaps and in when bytes
// move. Without a run, a launch is timed on an L2 filled to the hit shares it is given.
#pragma once

#include "sim/timing/kernel_time.h"

namespace ridgeline {

class SimulateEngine final : public TimingEngine {
 public:
  explicit SimulateEngine(const Gpu& gpu) : gpu_(gpu) {}
  [[nodiscard]] KernelTime time(const KernelLaunch& launch, Residency residency) const override;
  [[nodiscard]] std::unique_ptr<TimingRun> start_run() const override;
  [[nodiscard]] std::string_view name() const override { return "simulate"; }

 private:
  const Gpu& gpu_;
};

}  // namespace ridgeline
