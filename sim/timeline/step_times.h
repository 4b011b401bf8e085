// The duration of every kernel of the steady step, with the state of the L2 carried from launch to launch.
#pragma once

#include <vector>

#include "sim/program/step_program.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// One entry for each launch of `program.steady_step()`, in order. Equal kernels that find equal shares of their
/// operands in the L2 (to 1/32) are timed once. Pure: the same input gives the same times on any thread.
std::vector<KernelTime> time_kernels(const StepProgram& program, const TimingEngine& engine, const Gpu& gpu);

}  // namespace ridgeline
