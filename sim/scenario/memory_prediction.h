// How much memory a scenario takes: peaks, what they are made of, and where memory ran out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/memory/memory_run.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

inline constexpr std::size_t kCategories = 7;

/// Where memory ran out.
struct MemoryShortage {
  std::string op;
  Phase phase = Phase::other;
  std::int64_t layer = -1;
  Category category = Category::temporaries;        ///< of the tensor that found no room
  std::int64_t requested_bytes = 0;                 ///< of that tensor
  std::int64_t missing_bytes = 0;                   ///< what the device lacked at that moment
  std::array<std::int64_t, kCategories> held = {};  ///< allocated at that moment, by Category
};

struct MemoryPrediction {
  std::int64_t peak_allocated = 0, peak_reserved = 0, context = 0, device_used = 0, capacity = 0;
  bool fits = true;
  std::array<std::int64_t, kCategories> at_peak{};  ///< by Category, at the moment of the allocated peak
  std::int64_t cached_unused = 0;                   ///< reserved at its peak but not allocated at the allocated peak
  std::string peak_op;
  Phase peak_phase = Phase::other;
  std::int64_t peak_layer = -1;
  /// Use of a device with room without end: device_used where it fits, what it would take where it does not.
  std::int64_t needed = 0;
  std::optional<MemoryShortage> out_of_memory;
  std::vector<std::string> would_fit;  ///< changes that together make it fit, as --set takes them; filled on demand
};

/// The op trace of a scenario. Throws UserError for an attention backend the GPU lacks.
OpTrace trace_of(const Scenario& scenario);

/// The program of a scenario's run with the trace it points to.
struct ScenarioProgram {
  std::unique_ptr<OpTrace> trace;
  StepProgram program;
};
/// Throws UserError for a scenario that cannot run (an attention backend the GPU lacks).
ScenarioProgram make_scenario_program(const Scenario& scenario);

/// Allocator settings, capacity and context of the scenario.
MemoryOptions memory_options(const Scenario& scenario);
MemoryPrediction predict_memory(const StepProgram& program, const Scenario& scenario);
/// Memory alone, without the time.
MemoryPrediction predict_memory(const Scenario& scenario);

/// Name of the op of a call; empty for none.
std::string op_name(const StepProgram& program, std::uint32_t call);

}  // namespace ridgeline
