// How much memory a scenario takes: peaks, what they are made of, and where memory ran out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/kernels/attention/attention_choice.h"
#include "sim/memory/memory_run.h"
#include "sim/scenario/scenario.h"
#include "sim/trace/replayable.h"
#include "sim/workload/inference_run.h"

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

/// Where the numbers of a prediction come from.
enum class MemorySource : std::uint8_t {
  simulated,    ///< the allocator ran the step's allocations
  as_recorded,  ///< the peaks that a recording counted, beside what this GPU's context takes; nothing of their parts
  unknown       ///< the recording says nothing: only context and capacity mean anything
};

struct MemoryPrediction {
  MemorySource source = MemorySource::simulated;
  std::int64_t peak_allocated = 0, peak_reserved = 0, context = 0, device_used = 0, capacity = 0;
  bool runs = true;  ///< the predicted run finds room for everything it asks for
  bool fits =
      true;  ///< it would as well if everything took as much more as comparable runs did (Software::memory_spread)
  std::array<std::int64_t, kCategories> at_peak{};  ///< by Category, at the moment of the allocated peak
  std::int64_t cached_unused = 0;                   ///< reserved at its peak but not allocated at the allocated peak
  std::string peak_op;
  Phase peak_phase = Phase::other;
  std::int64_t peak_layer = -1;
  /// Use of a device with room without end: device_used where it fits, what it would take where it does not.
  std::int64_t needed = 0;
  /// The parts of `needed`, as at_peak and cached_unused are those of device_used.
  std::array<std::int64_t, kCategories> needed_at_peak{};
  std::int64_t needed_unused = 0;
  std::int64_t needed_low = 0, needed_high = 0;  ///< the same, less and more by that spread
  std::optional<MemoryShortage> out_of_memory{};
  std::vector<std::string> would_fit{};  ///< changes that together make it fit, as --set takes them; filled on demand
};

/// "fits", "may not fit" (the predicted run does, one within the spread does not), "does not fit" or "unknown".
std::string_view verdict(const MemoryPrediction& memory);

/// All that the op trace of a described step is made from.
struct TraceKey {
  ModelDescription model;
  TrainingDescription training;
  AttentionChoice attention = AttentionChoice::eager;
  int compiled_for_sms = 0;  ///< 0: not compiled
  Tokens tokens = Tokens::looped;
  bool operator==(const TraceKey&) const = default;
};
/// Throws UserError for an attention backend the GPU lacks.
TraceKey trace_key_of(const Scenario& scenario, std::string_view engine = "analytic");

/// The op trace of a scenario. Throws UserError for an attention backend the GPU lacks. Of a recorded step, kernels
/// without shapes take as long under `engine` as they are said to.
OpTrace trace_of(const Scenario& scenario, std::string_view engine = "analytic");

/// The program of a scenario's run with the trace it points to.
struct ScenarioProgram {
  std::unique_ptr<OpTrace> trace;
  StepProgram program;
};
/// Throws UserError for a scenario that cannot run (an attention backend the GPU lacks).
ScenarioProgram make_scenario_program(const Scenario& scenario, std::string_view engine = "analytic");

/// The allocations of the scenario's run are known one by one: all but those of some recordings.
bool knows_allocations(const Scenario& scenario);

/// Allocator settings, capacity and context of the scenario.
MemoryOptions memory_options(const Scenario& scenario);
MemoryPrediction predict_memory(const StepProgram& program, const Scenario& scenario);
/// Of a recorded step that counts memory without births and frees.
MemoryPrediction memory_as_recorded(const trace::MeasuredStep& measured, const Scenario& scenario);
/// A run of the memory on a device with room without end.
struct RoomyMemory {
  MemoryPrediction prediction;
  std::int64_t most_reserved = 0;  ///< in any step, the first included
};
/// `roomy`: of the same allocations under the same settings, where it is known already; `run`: with these options.
MemoryPrediction predict_memory(const StepProgram& program, MemoryOptions options, const Software& software,
                                const RoomyMemory* roomy = nullptr, std::optional<MemoryResult> run = {});
/// Of a program over several devices of one process: `program.device` becomes the one with most reserved memory.
void look_at_fullest_device(StepProgram& program, const Scenario& scenario);
RoomyMemory run_roomy_memory(const StepProgram& program, const Scenario& scenario);
/// What run_roomy_memory says, from a run on the scenario's own device whose capacity decided nothing; nothing where it
/// did.
std::optional<RoomyMemory> roomy_memory_of(const MemoryResult& run, const StepProgram& program,
                                           const Scenario& scenario);
/// Equal for programs of one trace whose allocations are the same.
std::uint64_t hash_of_allocations(const StepProgram& program);
/// Of which storages are allocated and freed in which order, whatever their sizes; and the former from it.
std::uint64_t hash_of_moves(const StepProgram& program);
std::uint64_t hash_of_allocations(const StepProgram& program, std::uint64_t moves);
/// What predict_memory says, from a roomy run of the same allocations under the same settings where that is all there
/// is to know: on a device that never runs out, capacity decides nothing.
/// `run`: on the scenario's device, where it is known already.
MemoryPrediction predict_memory(const StepProgram& program, const Scenario& scenario, const RoomyMemory& roomy,
                                std::optional<MemoryResult> run = {});

/// Memory alone, without the time.
MemoryPrediction predict_memory(const Scenario& scenario);

/// Name of the op of a call; empty for none.
std::string op_name(const StepProgram& program, std::uint32_t call);

}  // namespace ridgeline
