// The board's power over a step, and the clock it leaves to the SMs.
//
// A kernel alone runs as fast as the chip can for some milliseconds; a step is averaged over many. Where its average
// draw would exceed the board's limit, the clock of the SMs falls for all kernels to the highest that keeps it: the law
// of timing/clock_law.h, with the step's energy and its time at that clock. Where one process runs several boards, the
// one that does most decides, and all run at its clock. Tested by tests/timeline/power_test.cpp against loads of
// falling duty on an H200.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/program/step_program.h"
#include "sim/timeline/step_times.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// The kernels of one steady step as the power limit sees them.
class StepLoad {
 public:
  StepLoad(const StepProgram& program, const StepTimes& times, const Gpu& gpu);
  /// `times` has one entry a launch of the steady step.
  StepLoad(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu);

  [[nodiscard]] std::size_t size() const { return of_launch_.size(); }
  /// The same work, each kernel taking so many times as long throughout.
  [[nodiscard]] StepLoad stretched(std::span<const double> factors) const;
  /// All of them the same.
  [[nodiscard]] StepLoad stretched(double factor) const;

  /// Kernels that the limit holds back on their own do not take longer again.
  [[nodiscard]] Seconds duration(std::size_t kernel, Hertz clock) const {
    return duration_of(different_[of_launch_[kernel]], clock);
  }
  /// Of all kernels, in seconds; `out` has a place for each.
  void durations(Hertz clock, std::span<double> out) const;
  /// Of which the limit's part, on its own and over the step.
  [[nodiscard]] Seconds held(std::size_t kernel, Hertz clock) const;
  /// The clock a kernel sees while the step leaves it `clock`.
  [[nodiscard]] Hertz clock_of(std::size_t kernel, Hertz clock) const;
  /// Beyond idling, of the board that needs most.
  [[nodiscard]] Joules energy(Hertz clock) const { return clock == top_ ? at_top_ : sum_energy(clock); }
  /// Of one kernel, all its runs.
  [[nodiscard]] Joules energy_of(std::size_t kernel, Hertz clock) const;
  /// Average draw of that board in a step that takes `step` at this clock.
  [[nodiscard]] Watts power(Hertz clock, Seconds step) const;
  /// The highest clock that keeps the step within the limit, to one in 100,000; the lowest where none does. `step_at`
  /// says what the step takes at a clock: no less at a lower one.
  [[nodiscard]] Hertz settle(const std::function<Seconds(Hertz)>& step_at) const;

  /// Kernels that are one here have one duration, one held() and one clock_of(): these are what `kernel` is.
  [[nodiscard]] std::uint32_t kind_of(std::size_t kernel) const { return of_launch_[kernel]; }
  [[nodiscard]] std::size_t kinds() const { return different_.size(); }

 private:
  struct Kernel {
    Seconds time, held, alone,
        clocked;  ///< with the kernel's own limit; its part; without; of which goes with the clock
    Hertz own, limit;
    Joules core, board;  ///< of all its runs
    double voltage_at_limit;
    std::uint8_t device;  ///< 0 where there is one
  };
  static Seconds duration_of(const Kernel& k, Hertz clock) {
    return clock >= k.own ? k.time : std::max(k.time, time_at(k.alone, k.clocked, k.own, clock));
  }
  static void stretch(Kernel& kernel, double factor);
  [[nodiscard]] Joules sum_energy(Hertz clock) const;

  const Gpu& gpu_;
  std::vector<Kernel> different_;         ///< each different kernel once
  std::vector<std::uint32_t> of_launch_;  ///< entry of `different_`
  std::vector<Joules> board_;             ///< of each device
  Hertz top_;                             ///< the clock at which most steps run
  Joules at_top_;                         ///< energy() there, which does not depend on how long kernels take
};

/// Energy of one step, and between which values it lies nine times in ten as far as is known.
struct EnergyRange {
  Joules energy, low, high;
};
/// Of a step that takes `step` (`low` to `high`) and draws `power` on average: idling is as certain as the time, what
/// comes on top as the energies of an operation and a byte are. Never more than the board's limit allows.
EnergyRange step_energy(Watts power, Seconds step, Seconds low, Seconds high, const Gpu& gpu);

}  // namespace ridgeline
