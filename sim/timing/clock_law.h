// At which clock a kernel runs, and how fast the board's power limit lets it be.
//
// A tensor-core kernel runs below the boost clock from its first microsecond, the more so the busier its pipes:
// f = tensor − tensor_droop·activity (hardware counters of 20 kernels on an H200: 1.83 − 0.22·u GHz, rms 0.04). Kernels
// on the CUDA cores run at the sustained clock.
//
// Where that draws more than the board's limit, the clock of the SMs falls to the highest f with P(f) ≤ limit:
//
//   P(f) = idle(f) + (E_core·v(f)² + E_board) / T(f)      v = voltage over that at clock.boost
//
// The energies of a floating-point operation and of a byte do not depend on how fast or how many the units are. With f,
// E rises and T falls, so P rises and there is one such f; it never lies below clock.lowest. A chip that is better in
// anything has a T(f) and an E(f) that are nowhere larger, and so is nowhere slower: where the limit binds,
// T = E(f)/(limit − idle(f)), and a lower f has the lower E. Traffic that draws too much at clock.lowest is slowed
// until the limit is kept. Tested by tests/timing/clock_law_test.cpp.
#pragma once

#include <algorithm>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/dtype.h"

namespace ridgeline {

/// Clock of a kernel on `pipe` that is busy `activity` (0 to 1) of the kernel's cycles.
Hertz kernel_clock(const Gpu& gpu, Pipe pipe, double activity);

/// The highest clock any kernel runs at, and that of kernels on `pipe` while it idles: where a falling clock of the SMs
/// begins to slow them.
Hertz top_clock(const Gpu& gpu);
Hertz own_clock(const Gpu& gpu, Pipe pipe);

/// Voltage of the SMs at this clock over that at clock.boost: clock.knee_voltage up to clock.knee, then a straight line
/// to 1 at clock.boost; beyond it in proportion to the clock.
inline double voltage(const Gpu& gpu, Hertz clock) {
  const ClockSpec& c = gpu.clock;
  if (clock >= c.boost && c.boost.value() > 0.0) return ratio(clock, c.boost);
  if (clock <= c.knee) return c.knee_voltage;
  const double rise = std::max(c.boost.value() - c.knee.value(), 1e-3 * c.boost.value());
  return c.knee_voltage + (1.0 - c.knee_voltage) * (clock - c.knee).value() / rise;
}

/// What the board draws at this clock of the SMs and nothing running.
Watts idle_power(const Gpu& gpu, Hertz clock);

/// Energy of a floating-point operation of this type at clock.boost; 0 when the board's description does not say.
JoulesPerFlop energy_per_flop(const Gpu& gpu, Pipe pipe, DType type);

/// What work costs beyond idling, at the voltage of clock.boost: `core` goes with the square of the SMs' voltage.
struct WorkEnergy {
  Joules core, board;
  [[nodiscard]] Joules at(double voltage) const { return core * (voltage * voltage) + board; }
};
/// The energy of a FLOP is all-in for large products: only traffic beyond a byte in 500 FLOPs costs extra. `l2_bytes`
/// are those that reach the SMs without the DRAM.
WorkEnergy work_energy(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes, double l2_bytes = 0.0);

/// `time` at full clock, of which `clocked` were left if nothing else took time, with the SMs slowed to `clock`: the
/// longer of `time` and of what the clock makes of `clocked`; `own` as own_clock. Falls with either, so that no chip
/// with the shorter two has the longer third.
inline Seconds time_at(Seconds time, Seconds clocked, Hertz own, Hertz clock) {
  return clock < own ? std::max(time, clocked * ratio(own, clock)) : time;
}

/// A continuing load of one kernel under the limit: its time, and the clock that settles.
struct Settled {
  Seconds time;
  Hertz clock;
};
Settled settle(const Gpu& gpu, const WorkEnergy& energy, Seconds time, Seconds clocked, Hertz own);

/// `time` of a kernel of a continuing load, lengthened to what settles as far as the board does not average it away.
Settled power_limited(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes, Seconds time,
                      Seconds clocked);

/// Energy of a kernel whose traffic is known.
WorkEnergy kernel_energy(const KernelLaunch& launch, const KernelTime& kernel, const Gpu& gpu);

/// The same for a kernel whose traffic is known, and whose `time` and `clocked` are those at full clock: sets its time,
/// held and clock.
void limit_power(KernelTime& kernel, const KernelLaunch& launch, const Gpu& gpu);

/// A time that no kernel of so many FLOPs and bytes takes less than as a continuing load, and the share of what it
/// falls short of it by that the board makes it pay: what fits into its averaging window is free.
struct PowerLimit {
  Seconds floor;
  double charged = 0;
};
PowerLimit power_limit(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes);

}  // namespace ridgeline
