// Peaks that a step's model FLOPs are measured against.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/program/step_program.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// Dense peak of the units that a precision's products run on, as the datasheet states it.
FlopsPerSecond peak_of_precision(Precision precision, const Gpu& gpu);

/// What MFU is over: the same, or the peak of a product or an attention of `program` whose units are faster (fp32 as
/// three products of TF32, 2:4 sparse weights), at the datasheet's clock or, where that is higher, at which busy units
/// run.
FlopsPerSecond peak_of_step(const StepProgram& program, Precision precision, const Gpu& gpu);

}  // namespace ridgeline
