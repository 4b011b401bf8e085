// Files somebody else wrote: histories as text and snapshots as pickles, whole, cut and changed.
#include <string_view>

#include "sim/allocator/replay.h"
#include "sim/allocator/snapshot.h"
#include "sim/allocator/snapshot_container.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

std::string replayed(const AllocationHistory& history, const AllocatorSettings& settings, std::int64_t capacity,
                     bool recorded_addresses) {
  ReplayOptions options;
  options.settings = settings;
  options.capacity = capacity;
  options.recorded_addresses = recorded_addresses;
  const HistoryReplay result = replay(history, options);
  if (result.peak_allocated > result.peak_reserved) return "more allocated than reserved";
  if (result.peak_allocated < 0) return "less than nothing allocated";
  if (!recorded_addresses && result.peak_reserved > capacity) return "more reserved than the device has";
  return {};
}

}  // namespace

std::string fuzz_history(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return {};
  const std::int64_t capacity = std::int64_t{1} << (30 + data[0] % 20);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string broken;
  try {
    AllocationHistory history;
    AllocatorSettings settings;
    if (!text.starts_with("action") && text.find_first_of("\x80(}]<P") == 0) {
      MemorySnapshot snapshot = read_snapshot(unpacked_snapshot(std::string(text), "input"), "input");
      history = std::move(snapshot.history);
      settings = snapshot.settings;
    } else {
      history = parse_history(text, "input");
    }
    for (const bool recorded : {true, false}) {
      broken = replayed(history, settings, capacity, recorded);
      if (!broken.empty()) return broken;
    }
    AllocatorSettings other;
    other.expandable_segments = true;
    broken = replayed(history, other, capacity, false);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("input") == std::string_view::npos)
      broken = std::string("a message that names no place: ") + error.what();
  }
  return broken;
}

}  // namespace ridgeline
