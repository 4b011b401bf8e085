// The engine "simulate": every kernel's traffic is simulated on an L2 and a DRAM whose state goes from kernel to
// kernel, and its time follows from the blocks' phases and that traffic.
//
// Phases are as long as the analytic laws say; the two engines differ in what hits, in what overlaps and in when bytes
// move. Without a run, a launch is timed on an L2 filled to the hit shares it is given.
#pragma once

#include "sim/hierarchy/access_place.h"
#include "sim/hierarchy/memo.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Kernels one after the other on one L2.
class SimulatedRun final : public TimingRun {
 public:
  /// `remembers`: a kernel that finds the L2 as an equal one found it is not simulated again; the results are the same.
  SimulatedRun(const Gpu& gpu, bool remembers)
      : gpu_(gpu), l2_(gpu.l2), remembers_(remembers && gpu.l2.replacement != L2Replacement::random) {}
  /// `launch` must stay where it is, and what it is, until the end of the run.
  KernelTime next(const KernelLaunch& launch, std::span<const Operand> operands) override;
  [[nodiscard]] std::size_t remembered() const { return memo_.found(); }  ///< kernels that were not simulated again
  [[nodiscard]] const L2Cache& l2() const { return l2_; }

 private:
  KernelTime simulate(const KernelLaunch& launch, std::span<const PlacedAccess> accesses);
  const Gpu& gpu_;
  L2Cache l2_;
  AccessPlaces places_;
  Memo memo_;
  bool remembers_;
};

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
