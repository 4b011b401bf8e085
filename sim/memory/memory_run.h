// How much memory a training run takes: its allocations and frees through the caching allocator.
//
// The peaks are those of the steady state. The first step creates optimizer states and leaves segments behind that
// never go back to the device, so all steps are run, and the last one again until the allocator's state repeats (or
// `most_steps` have run): fragmentation can make reserved memory grow for some steps. Micro-batches held once are run
// until the state after one is as it was before: further ones change nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/allocator/caching_allocator.h"
#include "sim/allocator/history.h"
#include "sim/program/step_program.h"

namespace ridgeline {

using BytesByCategory = std::array<std::int64_t, 7>;  ///< indexed by the workload's Category

struct MemoryOptions {
  AllocatorSettings settings;
  std::int64_t capacity = 0;  ///< bytes of the device
  std::int64_t context = 0;   ///< bytes taken before the first allocation: context and loaded kernels
  int most_steps = 12;
  Counts counts = Counts::everything;  ///< of MemoryResult::statistics
  bool record_samples = false;         ///< fill samples, at_peak and segments of the result
  bool record_history = false;         ///< fill MemoryResult::history
};

/// The run after one allocation or free of the steady step; of repeated micro-batches, those until the state repeats.
struct MemorySample {
  std::uint32_t action = 0;  ///< entry of StepProgram::actions
  std::int64_t allocated = 0, reserved = 0;
  BytesByCategory by_category{};
};

/// A storage alive at the peak.
struct LiveStorage {
  std::uint32_t storage = 0;  ///< entry of StepProgram::storages
  std::int64_t bytes = 0;     ///< of its block
};

/// One event of the allocator as PyTorch records it: segments before the block that needed them.
struct MemoryEvent {
  HistoryEvent event;        ///< sizes of alloc and free are the requested bytes
  std::uint32_t action = 0;  ///< entry of StepProgram::actions
  std::int64_t held = 0;     ///< of alloc and free: bytes of the block
};

/// Where in a run something happened.
struct Moment {
  std::uint32_t action = 0;              ///< entry of StepProgram::actions
  std::uint32_t call = Action::kNoCall;  ///< entry of OpTrace::calls: the op running or next to run
  Phase phase = Phase::setup;
  std::int16_t layer = -1;
  int step = 0;  ///< 0 = set-up, 1 = first step
};

struct MemoryFailure {
  Moment moment;
  OutOfMemory details;
  Category category = Category::temporaries;  ///< of the storage that found no room
  BytesByCategory held{};                     ///< allocated at that moment
};

struct MemoryResult {
  std::int64_t peak_allocated = 0, peak_reserved = 0;  ///< bytes, steady state
  std::int64_t first_step_peak_allocated = 0, first_step_peak_reserved = 0;
  std::int64_t context = 0, device_used = 0;  ///< device_used = peak reserved + context
  BytesByCategory breakdown{};                ///< at the allocated peak; sums to it
  std::int64_t cached_unused = 0;             ///< peak reserved less peak allocated
  Moment peak;                                ///< of the allocated peak
  bool fits = true;
  std::optional<MemoryFailure> failure;  ///< what did not fit, and where
  int steps_run = 0;
  std::vector<MemorySample> samples;          ///< of one more steady step
  std::vector<LiveStorage> at_peak;           ///< of that step
  std::vector<SegmentView> segments_at_peak;  ///< of that step
  AllocatorStatistics statistics;             ///< at the end
  std::vector<SegmentView> segments;          ///< at the end, with record_samples or record_history
  std::vector<MemoryEvent> history;           ///< of all that was run, in order
  std::size_t sampled_from = 0;               ///< entry of `history` where the step of `samples` begins
};

MemoryResult run_memory(const StepProgram& program, const MemoryOptions& options);

/// Bytes a training process takes before and beside its tensors.
std::int64_t context_bytes(const Gpu& gpu, const Software& software);

}  // namespace ridgeline
