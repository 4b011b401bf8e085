// The board's power over a step, and the clock it leaves to the tensor cores.
//
// A kernel alone runs as fast as the chip can for some milliseconds; a step is averaged over many. Where its average
// draw would exceed the board's limit, the clock of the tensor-core kernels falls until it does not. Energy per
// operation falls with voltage and clock, so that power goes with a high power of the rate: P ~ rate^kRateExponent.
//
// Fitted on an H200: 8192^3 bf16 products back to back (783 TFLOP/s at first, 656 settled at the limit) give the
// exponent for the energies of the hardware file; nothing else is fitted. Same kernels in steps of 304, 362 and 395
// TFLOP/s were slower by 1.1, 4.6 and 7.5 %; the law says 0.9, 5.0 and 8.1 %, and none below 290 (measured: 1.7 % at
// 293, 0 at 190). Tested by tests/timeline/power_test.cpp.
#pragma once

#include <span>

#include "sim/hardware/gpu.h"
#include "sim/program/step_program.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// One steady step without a power limit: energy beyond idling, and what part of the time the tensor cores work.
struct StepEnergy {
  Joules tensor;  ///< tensor-core kernels at full clock
  Joules other;   ///< products on the CUDA cores; DRAM traffic of everything else
  Seconds tensor_time;
};
StepEnergy energy_of(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu);

/// Average draw of a step that takes `step` while its tensor-core kernels run `slowdown` times as long as at full
/// clock.
Watts power_of(const StepEnergy& energy, Seconds step, double slowdown, const Gpu& gpu);

/// Factor on the duration of tensor-core kernels, 1 or more, that keeps a step of `step` at full clock within the
/// limit.
double tensor_slowdown(const StepEnergy& energy, Seconds step, const Gpu& gpu);

/// Energy of one step, and between which values it lies nine times in ten as far as is known.
struct EnergyRange {
  Joules energy, low, high;
};
/// Of a step that takes `step` (`low` to `high`) and draws `power` on average: idling is as certain as the time, what
/// comes on top as the energies of an operation and a byte are. Never more than the board's limit allows.
EnergyRange step_energy(Watts power, Seconds step, Seconds low, Seconds high, const Gpu& gpu);

}  // namespace ridgeline
