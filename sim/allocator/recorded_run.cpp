#include "sim/allocator/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/allocator/address_ranges.h"

namespace ridgeline {
namespace {

using Action = HistoryEvent::Action;

struct RecordedBlock {
  std::int64_t bytes = 0;  ///< 0: not known yet
  std::int64_t requested = 0;
  bool pending = false;
};
using RecordedBlocks = std::map<Address, RecordedBlock>;

/// Events that must have been and are not there.
struct Lost {
  std::int64_t allocations = 0, frees = 0, segment_allocations = 0, segment_frees = 0, outside = 0;
};

/// Whether a segment of this size that is gone was one of the small pool.
PoolKind kind_of_size(std::int64_t bytes) { return bytes == kSmallSegment ? PoolKind::small : PoolKind::large; }

class RunReader {
 public:
  explicit RunReader(const MemorySnapshot& snapshot) : snapshot_(snapshot) {
    run_.history = snapshot.history;
    run_.owners = snapshot.owners;
    owners_of_events_.resize(run_.history.events.size());
  }

  RecordedRun read() {
    take_final_state();
    for (std::size_t i = run_.history.events.size(); i-- > 0;) undo(i);
    find_sizes();
    keep_state_before();
    events_.reserve(run_.history.events.size());
    for (std::size_t i = 0; i < run_.history.events.size(); ++i) redo(i);
    run_.history.events = std::move(events_);
    for (const auto& [address, block] : blocks_)
      if (!final_.contains(address)) ++lost_.frees;
    name_gaps();
    for (auto& [key, totals] : pools_) run_.pools.push_back(totals);
    return std::move(run_);
  }

 private:
  void take_final_state() {
    for (const SegmentView& segment : snapshot_.segments) {
      ranges_.add(segment.address, {segment.bytes, segment.stream, segment.pool, segment.expandable});
      for (const BlockView& block : segment.blocks) {
        if (block.state != BlockView::State::allocated && block.state != BlockView::State::pending_free) continue;
        blocks_[block.address] = {block.bytes, block.requested, block.state == BlockView::State::pending_free};
      }
    }
    final_ = blocks_;
  }

  StreamId owner_of(const StreamPool& owner) {
    const auto known = std::find(run_.owners.begin(), run_.owners.end(), owner);
    if (known != run_.owners.end()) return static_cast<StreamId>(known - run_.owners.begin());
    run_.owners.push_back(owner);
    return static_cast<StreamId>(run_.owners.size()) - 1;
  }

  void undo(std::size_t i) {
    const HistoryEvent& event = run_.history.events[i];
    const auto block = blocks_.find(event.address);
    switch (event.action) {
      case Action::alloc:
        if (block != blocks_.end()) blocks_.erase(block);
        break;
      case Action::free_completed:
        if (block != blocks_.end()) ++lost_.allocations;
        blocks_[event.address] = {0, event.bytes, true};
        break;
      case Action::free_requested:
        if (block == blocks_.end()) blocks_[event.address] = {0, event.bytes, false};
        else block->second.pending = false;
        break;
      case Action::segment_alloc: {
        const auto* range = ranges_.at(event.address);
        if (range != nullptr && range->first == event.address && range->second.bytes == event.bytes) {
          owners_of_events_[i] = range->second;
          ranges_.remove(event.address, event.bytes);
        } else {
          ++lost_.segment_frees;
          owners_of_events_[i] = {event.bytes, owner_of({event.stream}), kind_of_size(event.bytes), false};
        }
        break;
      }
      case Action::segment_free:
        if (ranges_.remove(event.address, event.bytes) > 0) ++lost_.segment_allocations;
        ranges_.add(event.address, {event.bytes, owner_of({event.stream}), kind_of_size(event.bytes), false});
        break;
      case Action::segment_map: {
        const auto* range = ranges_.at(event.address);
        owners_of_events_[i] = range != nullptr ? range->second : gone_growing(event);
        owners_of_events_[i].bytes = event.bytes;
        if (ranges_.remove(event.address, event.bytes) < event.bytes) ++lost_.segment_frees;
        break;
      }
      case Action::segment_unmap: {
        AddressRange range = gone_growing(event);
        if (ranges_.remove(event.address, event.bytes) > 0) ++lost_.segment_allocations;
        ranges_.add(event.address, range);
        break;
      }
      case Action::other: break;
    }
  }

  /// A part of a growing segment that is not there at the end: as the part beside it, else by its size.
  AddressRange gone_growing(const HistoryEvent& event) {
    AddressRange range{event.bytes, owner_of({event.stream}),
                       event.bytes % snapshot_.settings.large_segment_size == 0 ? PoolKind::large : PoolKind::small,
                       true};
    const AddressRange* beside =
        ranges_.growing_next_to(event.address, event.address + static_cast<Address>(event.bytes));
    if (beside != nullptr && run_.owners[static_cast<std::size_t>(beside->owner)].stream == event.stream) {
      range.owner = beside->owner;
      range.kind = beside->kind;
    }
    return range;
  }

  /// Bytes of a block: what was asked, rounded, and the rest behind it where that was too small to be split off.
  std::int64_t block_bytes(Address address, std::int64_t requested, const AddressRanges::Map::value_type& range,
                           Address next) const {
    const std::int64_t rounded = rounded_request(std::max<std::int64_t>(requested, 1), snapshot_.settings);
    const Address end = std::min(next, range.first + static_cast<Address>(range.second.bytes));
    if (address + static_cast<Address>(rounded) > end) return rounded;
    const auto room = static_cast<std::int64_t>(end - address);
    const std::int64_t rest = room - rounded;
    if (range.second.kind == PoolKind::small || range.second.expandable) return rest < kMinBlock ? room : rounded;
    return rest > kLargestSmall && rounded < snapshot_.settings.max_split_size ? rounded : room;
  }

  void find_sizes() {
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      const auto next = std::next(it);
      const auto* range = ranges_.at(it->first);
      if (range == nullptr) {
        ++lost_.outside;
        it = blocks_.erase(it);
        continue;
      }
      if (it->second.bytes == 0)
        it->second.bytes =
            block_bytes(it->first, it->second.requested, *range, next != blocks_.end() ? next->first : ~Address{0});
      it = next;
    }
  }

  void keep_state_before() {
    for (const auto& [address, range] : ranges_.all()) {
      SegmentView segment;
      segment.address = address;
      segment.bytes = range.bytes;
      segment.pool = range.kind;
      segment.stream = range.owner;
      segment.expandable = range.expandable;
      const Address end = address + static_cast<Address>(range.bytes);
      Address at = address;
      const auto fill_until = [&](Address until) {
        if (at < until)
          segment.blocks.push_back({at, static_cast<std::int64_t>(until - at), 0, BlockView::State::free});
      };
      for (auto it = blocks_.lower_bound(address); it != blocks_.end() && it->first < end; ++it) {
        fill_until(it->first);
        const auto& block = it->second;
        segment.blocks.push_back({it->first, block.bytes, block.requested,
                                  block.pending ? BlockView::State::pending_free : BlockView::State::allocated});
        at = it->first + static_cast<Address>(block.bytes);
        ++run_.blocks_before;
        if (!block.pending) count_allocated(range, block.bytes);
      }
      fill_until(end);
      count_reserved(range, range.bytes);
      run_.before.push_back(std::move(segment));
    }
    run_.allocated_before = run_.allocated.current;
    run_.reserved_before = run_.reserved.current;
  }

  PoolTotals& pool_of(const AddressRange& range) {
    PoolTotals& totals = pools_[{range.owner, range.kind}];
    totals.owner = run_.owners[static_cast<std::size_t>(range.owner)];
    totals.kind = range.kind;
    return totals;
  }
  void count_allocated(const AddressRange& range, std::int64_t bytes) {
    run_.allocated.add(bytes);
    pool_of(range).allocated.add(bytes);
  }
  void count_reserved(const AddressRange& range, std::int64_t bytes) {
    run_.reserved.add(bytes);
    pool_of(range).reserved.add(bytes);
  }

  void redo(std::size_t i) {
    HistoryEvent& event = run_.history.events[i];
    switch (event.action) {
      case Action::alloc: redo_allocation(event); break;
      case Action::free_requested: request_free(event); return;
      case Action::free_completed:
        request_free(event);
        blocks_.erase(event.address);
        break;
      case Action::segment_alloc:
      case Action::segment_map:
        event.stream = owners_of_events_[i].owner;
        ranges_.add(event.address, owners_of_events_[i]);
        count_reserved(owners_of_events_[i], event.bytes);
        break;
      case Action::segment_free:
      case Action::segment_unmap: {
        const auto* range = ranges_.at(event.address);
        if (range == nullptr) break;
        const AddressRange given_back = range->second;
        event.stream = given_back.owner;
        count_reserved(given_back, -ranges_.remove(event.address, event.bytes));
        break;
      }
      case Action::other: break;
    }
    events_.push_back(event);
  }

  void redo_allocation(HistoryEvent& event) {
    const auto* range = ranges_.at(event.address);
    const AddressRanges::Map::value_type alone{
        event.address,
        {rounded_request(std::max<std::int64_t>(event.bytes, 1), snapshot_.settings), owner_of({event.stream}),
         PoolKind::large, false}};
    if (range == nullptr) ++lost_.outside, range = &alone;
    // What lies there already was freed without an event.
    const Address end = event.address + static_cast<Address>(rounded_request(std::max<std::int64_t>(event.bytes, 1),
                                                                             snapshot_.settings));
    auto it = blocks_.upper_bound(event.address);
    if (it != blocks_.begin()) --it;
    while (it != blocks_.end() && it->first < end) {
      if (it->first + static_cast<Address>(it->second.bytes) <= event.address) {
        ++it;
        continue;
      }
      HistoryEvent lost = event;
      lost.address = it->first;
      lost.bytes = it->second.requested;
      request_free(lost);
      lost.action = Action::free_completed;
      events_.push_back(lost);
      ++lost_.frees;
      it = blocks_.erase(it);
    }
    event.stream = range->second.owner;
    const Address next = it != blocks_.end() ? it->first : ~Address{0};
    const std::int64_t bytes = block_bytes(event.address, event.bytes, *range, next);
    blocks_[event.address] = {bytes, event.bytes, false};
    count_allocated(range->second, bytes);
  }

  /// Once for each block: also where only its completion was recorded.
  void request_free(HistoryEvent& event) {
    const auto block = blocks_.find(event.address);
    const auto* range = ranges_.at(event.address);
    if (range != nullptr) event.stream = range->second.owner;
    if (block == blocks_.end() || block->second.pending) return;
    block->second.pending = true;
    if (range != nullptr) count_allocated(range->second, -block->second.bytes);
    events_.push_back(event);
    events_.back().action = Action::free_requested;
  }

  void name_gaps() {
    const auto gap = [&](std::int64_t count, const char* what) {
      if (count > 0) run_.gaps.push_back(fmt::format("{} {}", count, what));
    };
    gap(lost_.frees, "frees are not recorded: the recording ended before the snapshot was taken, or lost events");
    gap(lost_.allocations,
        "allocations are not recorded: the recording ended before the snapshot was taken, or lost "
        "events");
    gap(lost_.segment_frees, "segments were given back to the device without an event");
    gap(lost_.segment_allocations, "segments were asked of the device without an event");
    gap(lost_.outside, "blocks lie in no segment that is known");
  }

  const MemorySnapshot& snapshot_;
  RecordedRun run_;
  RecordedBlocks blocks_, final_;
  AddressRanges ranges_;
  std::vector<HistoryEvent> events_;            ///< as recorded, with the frees that were lost
  std::vector<AddressRange> owners_of_events_;  ///< what segment_alloc and segment_map add
  std::map<std::pair<StreamId, PoolKind>, PoolTotals> pools_;
  Lost lost_;
};

}  // namespace

RecordedRun recorded_run(const MemorySnapshot& snapshot) { return RunReader(snapshot).read(); }

}  // namespace ridgeline
