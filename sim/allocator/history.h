// A recorded history of the allocator: what a training run asked of it, and what it asked of the device.
//
// The text form has a header `action,addr,size,stream` and one event a line: alloc, free_requested, free_completed,
// segment_alloc, segment_free (also segment_map, segment_unmap, snapshot, oom of a PyTorch memory snapshot), with
// hexadecimal addresses; sizes of alloc and free are the requested bytes. Plain or gzip, told apart by content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/allocator/device_memory.h"
#include "sim/units/user_error.h"

namespace ridgeline {

/// A history that cannot be read or contradicts itself. The message starts with FILE or FILE:LINE.
struct HistoryError : UserError {
  using UserError::UserError;
};

struct HistoryEvent {
  enum class Action : std::uint8_t {
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    other
  };
  Action action = Action::alloc;
  Address address = 0;
  std::int64_t bytes = 0;
  std::int64_t stream = 0;  ///< as recorded: a number or a handle
  std::uint32_t line = 0;   ///< in the file, for messages
};

struct AllocationHistory {
  std::string source;  ///< file name, for messages
  std::vector<HistoryEvent> events;
};

/// The action of a name as PyTorch writes it; `other` for those without effect (snapshot, oom, user_defined). Throws
/// std::invalid_argument, with the nearest name, for an unknown one.
HistoryEvent::Action action_of(std::string_view name);

/// Contents of a file, plain or gzip. Throws HistoryError.
std::string history_bytes(const std::string& path);

/// Throws HistoryError.
AllocationHistory read_history(const std::string& path);
AllocationHistory parse_history(std::string_view text, std::string source);

}  // namespace ridgeline
