// Runs a recorded history through the allocator again, as it was or under other settings.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/allocator/caching_allocator.h"
#include "sim/allocator/history.h"

namespace ridgeline {

struct ReplayOptions {
  AllocatorSettings settings;
  std::int64_t capacity = std::int64_t{1} << 50;  ///< of the device; the default never runs out
  /// Segments take the addresses they had when recorded (as long as their sizes agree): ties between equal blocks then
  /// break as they did. Otherwise addresses follow DeviceMemory's rule.
  bool recorded_addresses = true;
  /// What there was before the first event. With recorded addresses it is taken over as it was; otherwise its blocks
  /// are asked for again, in the order of their addresses.
  std::vector<SegmentView> before{};
};

struct HistoryReplay {
  std::int64_t peak_allocated = 0, peak_reserved = 0;  ///< bytes
  std::vector<std::int64_t> segment_allocations;       ///< sizes in the order they were asked of the device
  std::vector<std::int64_t> recorded_segments;         ///< the same, as recorded
  std::int64_t events = 0;
  std::int64_t moved_blocks = 0;   ///< blocks at another address than recorded
  std::int64_t unknown_frees = 0;  ///< frees of blocks that nobody allocated: the recording began later
  bool out_of_memory = false;
  std::uint32_t out_of_memory_line = 0;
  OutOfMemory failure;
  AllocatorStatistics statistics;
  std::vector<SegmentView> segments;  ///< at the end
};

/// Streams of the history and of `before` are counted alike. Throws HistoryError when the history contradicts itself (a
/// block allocated twice, a free completed before requested).
HistoryReplay replay(const AllocationHistory& history, const ReplayOptions& options);

}  // namespace ridgeline
