// The board's power over a step, and the clock it leaves to the tensor cores.
#pragma once

#include <span>

#include "sim/hardware/gpu.h"
#include "sim/program/step_program.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Energy of one steady step beyond idling: arithmetic by pipe (all-in, as measured under back-to-back products) and
/// the DRAM traffic of kernels without arithmetic worth mentioning.
struct StepEnergy {
  Joules tensor, other;
};
StepEnergy energy_of(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu);

/// Average draw of a step of `duration`.
Watts power_of(const StepEnergy& energy, Seconds duration, const Gpu& gpu);

/// Factor on the duration of tensor-core kernels, 1 or more, in a step that would draw `demand` at full clock.
double tensor_slowdown(Watts demand, const Gpu& gpu);

}  // namespace ridgeline
