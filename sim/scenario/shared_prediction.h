// The parts of a prediction, for studies in which many scenarios share a trace, a program or a run of the memory.
#pragma once

#include <string_view>

#include "sim/scenario/prediction.h"

namespace ridgeline {

/// predict() but for the memory, of the scenario's own program.
Prediction predict_time(const StepProgram& program, const Scenario& scenario, std::string_view engine, Reasons reasons);

/// Dense peak of the units that a precision's products run on, as the datasheet states it.
FlopsPerSecond peak_of_precision(Precision precision, const Gpu& gpu);

/// A run of the memory on a device with room without end.
struct RoomyMemory {
  MemoryPrediction prediction;
  std::int64_t most_reserved = 0;  ///< in any step, the first included
};
RoomyMemory run_roomy_memory(const StepProgram& program, const Scenario& scenario);
/// Equal for programs of one trace whose allocations are the same.
std::uint64_t hash_of_allocations(const StepProgram& program);
/// What predict_memory says, from a roomy run of the same allocations under the same settings where that is all there
/// is to know: on a device that never runs out, capacity decides nothing.
MemoryPrediction predict_memory(const StepProgram& program, const Scenario& scenario, const RoomyMemory& roomy);

}  // namespace ridgeline
