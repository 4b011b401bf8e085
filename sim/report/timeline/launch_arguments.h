// Members of the arguments of a trace's events: what a launch asks for and does, and which storages it touches.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/program/step_program.h"
#include "sim/report/json/json_text.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// A kernel: registers, shared memory, grid and block as a profiler gives them, and what the model says of its time.
void add_launch(JsonObject& arguments, const KernelLaunch& launch, const KernelTime& time, const Gpu& gpu);

/// A copy or a memset: its bytes and their rate over `seconds`; 0 where it takes none.
void add_copy(JsonObject& arguments, const FixedWork& work, double seconds);

/// What a profiler does not record and a replay of the L2 needs: id, bytes touched and bytes of each storage that the
/// call `call` of the program's trace reads and writes.
void add_storages(TextBuffer& out, const StepProgram& program, std::uint32_t call);

}  // namespace ridgeline
