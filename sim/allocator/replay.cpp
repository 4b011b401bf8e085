#include "sim/allocator/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "sim/units/budget.h"

namespace ridgeline {
namespace {

using Action = HistoryEvent::Action;

class Replay {
 public:
  Replay(const AllocationHistory& history, const ReplayOptions& options)
      : history_(history),
        before_(options.before),
        follow_(options.recorded_addresses),
        allocator_(options.settings, device_for(history, options)) {}

  HistoryReplay run() {
    const bool begun = follow_ ? take_over() : allocate_again();
    for (const HistoryEvent& event : history_.events) {
      keep_budget_often("the run of a recorded history");
      if (!begun) break;
      ++result_.events;
      if (!play(event)) break;
    }
    const AllocatorStatistics& statistics = allocator_.statistics();
    result_.peak_allocated = statistics.all.allocated_bytes.peak;
    result_.peak_reserved = statistics.all.reserved_bytes.peak;
    for (const SegmentEvent& event : allocator_.segment_events()) {
      if (event.kind == SegmentEvent::Kind::allocate) result_.segment_allocations.push_back(event.bytes);
    }
    result_.statistics = statistics;
    result_.segments = allocator_.segments();
    return std::move(result_);
  }

 private:
  static DeviceMemory device_for(const AllocationHistory& history, const ReplayOptions& options) {
    DeviceMemory device(options.capacity);
    if (options.recorded_addresses) {
      for (const HistoryEvent& event : history.events) {
        if (event.action == Action::segment_alloc) device.expect(event.bytes, event.address);
      }
    }
    return device;
  }

  [[noreturn]] void contradiction(const HistoryEvent& event, const char* what) const {
    throw HistoryError(fmt::format("{}:{}: {} at address {:x}", history_.source, event.line, what, event.address));
  }

  bool out_of_memory(std::uint32_t line) {
    result_.out_of_memory = true;
    result_.out_of_memory_line = line;
    result_.failure = allocator_.last_failure();
    return false;
  }

  /// What there was before, as it was. False when memory is exhausted.
  bool take_over() {
    for (auto first = before_.begin(); first != before_.end();) {
      // Parts of one growing segment belong together.
      const auto other = std::find_if(first + 1, before_.end(), [&](const SegmentView& s) {
        return !first->expandable || !s.expandable || s.stream != first->stream || s.pool != first->pool;
      });
      const std::vector<SegmentView> ranges(first, other);
      const auto used = allocator_.adopt(ranges);
      if (!used) return out_of_memory(0);
      for (const BlockId block : *used) live_.emplace(allocator_.address_of(block), block);
      first = other;
    }
    return true;
  }

  /// The blocks there were before, asked for again.
  bool allocate_again() {
    for (const SegmentView& segment : before_) {
      for (const BlockView& view : segment.blocks) {
        if (view.state != BlockView::State::allocated && view.state != BlockView::State::pending_free) continue;
        const BlockId block = allocator_.allocate(std::max<std::int64_t>(view.requested, 1), segment.stream);
        if (block == kNoBlock) return out_of_memory(0);
        if (view.state == BlockView::State::pending_free) allocator_.request_free(block);
        live_.emplace(view.address, block);
      }
    }
    return true;
  }

  /// The stream as the allocator counts it. Where there was something before, the history counts as that does.
  StreamId stream_of(const HistoryEvent& event) {
    if (!before_.empty()) return static_cast<StreamId>(event.stream);
    return streams_.try_emplace(event.stream, static_cast<StreamId>(streams_.size())).first->second;
  }

  /// False when memory is exhausted.
  bool play(const HistoryEvent& event) {
    switch (event.action) {
      case Action::alloc: return allocate(event);
      case Action::free_requested:
        if (const auto it = live_.find(event.address); it != live_.end())
          guarded(event, [&] { allocator_.request_free(it->second); });
        else ++result_.unknown_frees;
        break;
      case Action::free_completed:
        if (const auto it = live_.find(event.address); it != live_.end()) {
          guarded(event, [&] { allocator_.complete_free(it->second); });
          live_.erase(it);
        }
        break;
      case Action::segment_alloc: result_.recorded_segments.push_back(event.bytes); break;
      // Recorded runs gave memory back for reasons of their own (empty_cache, a full device).
      case Action::segment_free:
        follow_ ? void(allocator_.release_free_segment(event.address)) : allocator_.empty_cache();
        break;
      case Action::segment_unmap: allocator_.empty_cache(); break;
      case Action::segment_map:
      case Action::other: break;
    }
    return true;
  }

  bool allocate(const HistoryEvent& event) {
    if (event.bytes == 0) contradiction(event, "an allocation of zero bytes");
    const BlockId block = allocator_.allocate(event.bytes, stream_of(event));
    if (block == kNoBlock) return out_of_memory(event.line);
    if (allocator_.address_of(block) != event.address) ++result_.moved_blocks;
    if (!live_.emplace(event.address, block).second) contradiction(event, "a block was allocated twice");
    return true;
  }

  template <typename Do>
  void guarded(const HistoryEvent& event, Do&& action) const {
    try {
      action();
    } catch (const std::logic_error&) {
      contradiction(event, "a block was freed out of order");
    }
  }

  const AllocationHistory& history_;
  const std::vector<SegmentView>& before_;
  bool follow_;
  CachingAllocator allocator_;
  std::unordered_map<Address, BlockId> live_;
  std::unordered_map<std::int64_t, StreamId> streams_;
  HistoryReplay result_;
};

}  // namespace

HistoryReplay replay(const AllocationHistory& history, const ReplayOptions& options) {
  return Replay(history, options).run();
}

}  // namespace ridgeline
