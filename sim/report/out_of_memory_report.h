// Why memory ran out and what would have helped: of an event of a snapshot, and of texts that PyTorch prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/allocator/memory_texts.h"
#include "sim/allocator/recorded_run.h"
#include "sim/allocator/snapshot.h"

namespace ridgeline {

/// State of the allocator at a request that could not be met.
struct OutOfMemoryState {
  OutOfMemoryEvent event;
  std::size_t events = 0;                                            ///< of the recording; `event` is the last of them
  std::int64_t allocated = 0, reserved = 0, largest_free_block = 0;  ///< bytes
  bool expandable_segments = false;                                  ///< were on
  /// Says whether the same history and the request run to their end in the same memory with expandable segments.
  bool expandable_segments_would_do = false;
  std::vector<Holder> holders;  ///< the largest, at the snapshot
};

/// The report on a snapshot with an out-of-memory event.
OutOfMemoryState out_of_memory_state(const MemorySnapshot& snapshot, const RecordedRun& run);

std::string out_of_memory_text(const OutOfMemoryState& state);
nlohmann::ordered_json out_of_memory_json(const OutOfMemoryState& state);

std::string out_of_memory_text(const std::string& file, const std::vector<OutOfMemoryText>& errors);
nlohmann::ordered_json out_of_memory_json(const std::vector<OutOfMemoryText>& errors);

/// `name`: memory_summary() or memory_stats().
std::string totals_text(const std::string& file, std::string_view name, const std::vector<AllocatorTotals>& totals);
nlohmann::ordered_json totals_json(const std::vector<AllocatorTotals>& totals);

}  // namespace ridgeline
