// Segments that were there before: how a replay begins where its recording did.
#include <algorithm>

#include "sim/allocator/caching_allocator.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {

std::optional<std::vector<BlockId>> CachingAllocator::adopt(const std::vector<SegmentView>& ranges) {
  std::vector<BlockId> used;
  if (ranges.empty()) return used;
  const SegmentView& first = ranges.front();
  const bool grows = first.expandable;
  std::int32_t expandable = -1;
  if (grows) {
    ExpandableSegment segment;
    segment.page = first.pool == PoolKind::small ? kSmallSegment : settings_.large_segment_size;
    segment.address = first.address;
    const auto mapped = static_cast<std::int64_t>(ranges.back().address - first.address) + ranges.back().bytes;
    segment.bytes = ceil_div(std::max(device_.capacity() / 8 * 9, mapped), segment.page) * segment.page;
    expandable_.push_back(segment);
    chooses_among_fitting_ = true;
    expandable = static_cast<std::int32_t>(expandable_.size()) - 1;
  }
  std::vector<BlockId> chain;
  const auto append = [&](const BlockView& view, bool mapped) {
    const BlockId id = new_block({.address = view.address,
                                  .bytes = view.bytes,
                                  .previous = chain.empty() ? kNoBlock : chain.back(),
                                  .stream = first.stream,
                                  .expandable = expandable,
                                  .pool = first.pool,
                                  .mapped = mapped});
    if (!chain.empty()) at(chain.back()).next = id;
    chain.push_back(id);
    return id;
  };
  const auto append_unmapped = [&](Address until) {
    const Address from =
        chain.empty() ? first.address : at(chain.back()).address + static_cast<Address>(at(chain.back()).bytes);
    if (from >= until) return;
    const BlockId id = append({from, static_cast<std::int64_t>(until - from), 0, BlockView::State::unmapped}, false);
    at(id).state = Block::State::free;
    pool_of(first.pool).unmapped.insert(key_of(id));
  };
  for (const SegmentView& range : ranges) {
    if (!device_.map(range.bytes)) return std::nullopt;
    if (grows) append_unmapped(range.address);
    count(range.pool, [&](PoolStatistics& s) {
      if (!grows) s.segment.add(1);
      s.reserved_bytes.add(range.bytes);
    });
    for (const BlockView& view : range.blocks) {
      const BlockId id = append(view, true);
      if (view.state == BlockView::State::free) continue;
      at(id).requested = view.requested;
      if (view.state == BlockView::State::pending_free) at(id).state = Block::State::pending;
      used.push_back(id);
      count(range.pool, [&](PoolStatistics& s) {
        const bool allocated = view.state == BlockView::State::allocated;
        s.allocation.add(allocated ? 1 : 0);
        s.allocated_bytes.add(allocated ? view.bytes : 0);
        s.active.add(1);
        s.active_bytes.add(view.bytes);
        s.requested_bytes.add(view.requested);
      });
    }
  }
  if (grows) {
    const ExpandableSegment& segment = expandable_.back();
    append_unmapped(segment.address + static_cast<Address>(segment.bytes));
  }
  std::size_t next_used = 0;
  for (const BlockId id : chain) {
    if (next_used < used.size() && used[next_used] == id) {
      ++next_used;
      continue;
    }
    if (!at(id).mapped) continue;
    make_available(id);
    if (grows || !at(id).split()) continue;
    count(first.pool, [&](PoolStatistics& s) {
      s.inactive_split.add(1);
      s.inactive_split_bytes.add(at(id).bytes);
    });
  }
  return used;
}

}  // namespace ridgeline
