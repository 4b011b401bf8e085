#include "sim/allocator/caching_allocator.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ridgeline {

CachingAllocator::CachingAllocator(AllocatorSettings settings, DeviceMemory device, Counts counts)
    : settings_(settings),
      divides_powers_(std::any_of(settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end(),
                                  [](int divisions) { return divisions > 1; })),
      chooses_among_fitting_(settings.expandable_segments || settings.max_split_size != AllocatorSettings::kUnlimited),
      device_(std::move(device)),
      counts_(counts) {
  blocks_.reserve(1024);
}

void CachingAllocator::make_available(BlockId id) { at(id).list = pool_of(at(id).pool).free.insert(mark_free(id)); }

BlockId CachingAllocator::allocate(std::int64_t bytes, StreamId stream) {
  if (bytes <= 0) throw std::invalid_argument("an allocation must have at least one byte");
  const std::int64_t rounded =
      divides_powers_ ? rounded_request(bytes, settings_) : (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
  const PoolKind kind = rounded <= kLargestSmall ? PoolKind::small : PoolKind::large;
  Pool& pool = pool_of(kind);
  ++pool.lookups;
  auto best = pool.free.best_fit(stream, rounded);
  if (chooses_among_fitting_ && best != pool.free.end()) best = chosen(pool, best, {bytes, rounded, stream, kind});
  if (best == pool.free.end()) return allocate_segment({bytes, rounded, stream, kind});
  BlockId id = best.block();
  if (should_split(at(id), rounded)) {
    const BlockId front = cut(id, rounded);
    at(id).list = pool.free.replace(best, mark_free(id));
    id = front;
  } else {
    if (counts_ == Counts::everything) count_whole(at(id));
    pool.free.erase(best);
  }
  hand_out(at(id), bytes);
  return id;
}

BlockId CachingAllocator::allocate_segment(const Request& request) {
  if (settings_.memory_fraction > 0 && settings_.garbage_collection_threshold > 0) collect_garbage();
  BlockId block = ask_device(request);
  if (block == kNoBlock && release_oversize(request)) block = ask_device(request);
  if (block == kNoBlock) {
    release_cached();
    ++statistics_.retries;
    block = ask_device(request);
  }
  if (block == kNoBlock) {
    fail(request);
    return kNoBlock;
  }
  if (should_split(at(block), request.rounded)) {
    const BlockId front = cut(block, request.rounded);
    make_available(block);
    block = front;
  } else if (counts_ == Counts::everything) {
    count_whole(at(block));
  }
  hand_out(at(block), request.bytes);
  return block;
}

FreeBlocks::Iterator CachingAllocator::chosen(const Pool& pool, FreeBlocks::Iterator best,
                                              const Request& request) const {
  if (!expandable_.empty()) best = with_least_room(pool, best, request.stream);
  const std::int64_t bytes = at(best.block()).bytes;
  const bool too_large = request.rounded < settings_.max_split_size
                             ? bytes >= settings_.max_split_size
                             : bytes >= request.rounded + settings_.max_non_split_rounding;
  return too_large ? pool.free.end() : best;
}

FreeBlocks::Iterator CachingAllocator::with_least_room(const Pool& pool, FreeBlocks::Iterator best,
                                                       StreamId stream) const {
  if (at(best.block()).expandable < 0) return best;
  const auto room = [&](const FreeBlock& free) {
    const BlockId next = at(free.block).next;
    return free.bytes() + (next != kNoBlock && !at(next).mapped ? at(next).bytes : 0);
  };
  const auto end = pool.free.end();
  for (auto next = std::next(best); next != end && (*next).stream() == stream && room(*next) < room(*best); ++next)
    best = next;
  return best;
}

BlockId CachingAllocator::ask_device(const Request& request) {
  const std::int64_t reserved = statistics_.all.reserved_bytes.current;
  const std::int64_t segment = segment_size(request.rounded, settings_);
  if (settings_.memory_fraction > 0 &&
      static_cast<double>(reserved + segment) > settings_.memory_fraction * static_cast<double>(device_.capacity())) {
    return kNoBlock;
  }
  if (settings_.expandable_segments) return grow(request);
  const auto address = device_.allocate(segment);
  if (!address) return kNoBlock;
  Block block;
  block.address = *address;
  block.bytes = segment;
  block.stream = request.stream;
  block.pool = request.pool;
  count(request.pool, [&](PoolStatistics& s) {
    s.segment.add(1);
    s.reserved_bytes.add(segment);
  });
  ++statistics_.device_allocations;
  events_.push_back({SegmentEvent::Kind::allocate, *address, segment});
  return new_block(block);
}

inline BlockId CachingAllocator::cut(BlockId id, std::int64_t bytes) {
  const BlockId front_id = new_block(at(id));
  Block& front = at(front_id);
  Block& rest = at(id);
  if (counts_ == Counts::everything) count_cut(rest, bytes);
  front.bytes = bytes;
  front.next = id;
  if (rest.previous != kNoBlock) at(rest.previous).next = front_id;
  rest.previous = front_id;
  rest.address += static_cast<Address>(bytes);
  rest.bytes -= bytes;
  return front_id;
}

void CachingAllocator::count_cut(const Block& block, std::int64_t bytes) {
  if (block.expandable >= 0) return;
  count(block.pool, [&](PoolStatistics& s) {
    if (!block.split()) s.inactive_split.add(1);
    s.inactive_split_bytes.add(block.split() ? -bytes : block.bytes - bytes);
  });
}

void CachingAllocator::count_whole(const Block& block) {
  if (block.expandable >= 0 || !block.split()) return;
  count(block.pool, [&](PoolStatistics& s) {
    s.inactive_split.add(-1);
    s.inactive_split_bytes.add(-block.bytes);
  });
}

void CachingAllocator::count_handed_out(const Block& block) {
  count(block.pool, [&](PoolStatistics& s) {
    s.allocation.add(1);
    s.allocated_bytes.add(block.bytes);
    s.active.add(1);
    s.active_bytes.add(block.bytes);
    s.requested_bytes.add(block.requested);
  });
}

void CachingAllocator::record_stream(BlockId block, StreamId stream) {
  if (stream != at(block).stream) ++at(block).users;
}

void CachingAllocator::free(BlockId block) {
  request_free(block);
  if (at(block).users == 0) return free_block(block);
  waiting_.push_back(block);
}

void CachingAllocator::complete_events() {
  for (const BlockId block : std::exchange(waiting_, {})) {
    at(block).users = 0;
    free_block(block);
  }
}

void CachingAllocator::complete_free(BlockId id) {
  if (at(id).state != Block::State::pending) throw std::logic_error("a free was completed that nobody requested");
  free_block(id);
}

inline void CachingAllocator::absorb(Block& block, BlockId id, BlockId neighbour) {
  const Block& other = at(neighbour);
  if (block.previous == neighbour) {
    block.address = other.address;
    block.previous = other.previous;
    if (block.previous != kNoBlock) at(block.previous).next = id;
  } else {
    block.next = other.next;
    if (block.next != kNoBlock) at(block.next).previous = id;
  }
  block.bytes += other.bytes;
  recycle(neighbour);
}

void CachingAllocator::merge_and_erase(BlockId into, BlockId neighbour) {
  if (!joins(at(into), neighbour)) return;
  Pool& pool = pool_of(at(into).pool);
  (at(into).mapped ? pool.free : pool.unmapped).erase(key_of(neighbour));
  absorb(at(into), into, neighbour);
}

inline void CachingAllocator::free_block(BlockId id) {
  Block& block = at(id);
  const BlockId before = block.previous, after = block.next;
  const bool joins_before = joins(block, before), joins_after = joins(block, after);
  if (counts_ == Counts::everything)
    count_free(block, joins_before ? before : kNoBlock, joins_after ? after : kNoBlock);
  FreeBlocks& free = pool_of(block.pool).free;  // a block that was in use has memory
  if (!joins_before && !joins_after) {
    block.list = free.insert(mark_free(id));
    return;
  }
  if (joins_before && joins_after) free.erase(free.position(at(after).address, at(after).list));
  const BlockId first = joins_before ? before : after;
  const FreeBlocks::Iterator place = free.position(at(first).address, at(first).list);
  if (joins_before) absorb(block, id, before);
  if (joins_after) absorb(block, id, after);
  block.list = free.replace(place, mark_free(id));
}

void CachingAllocator::count_free(const Block& block, BlockId before, BlockId after) {
  std::int64_t splits = 0, split_bytes = 0, bytes = block.bytes;
  for (const BlockId merged : {before, after}) {
    if (merged == kNoBlock) continue;
    --splits;
    split_bytes -= at(merged).bytes;
    bytes += at(merged).bytes;
  }
  const bool stays_split = (before != kNoBlock ? at(before).previous : block.previous) != kNoBlock ||
                           (after != kNoBlock ? at(after).next : block.next) != kNoBlock;
  if (stays_split) {
    ++splits;
    split_bytes += bytes;
  }
  count(block.pool, [&](PoolStatistics& s) {
    if (block.expandable < 0) {
      s.inactive_split.add(splits);
      s.inactive_split_bytes.add(split_bytes);
    }
    s.active.take(1);
    s.active_bytes.take(block.bytes);
    s.requested_bytes.take(block.requested);
  });
}

std::uint64_t CachingAllocator::fingerprint() const {
  return fingerprint(PoolKind::small) * 0x9e3779b97f4a7c15u ^ fingerprint(PoolKind::large);
}
std::uint64_t CachingAllocator::fingerprint(PoolKind kind) const {
  // Free blocks in their order; blocks in use and segments follow from them, as everything else stays where it is.
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0xff51afd7ed558ccdu, hash ^= hash >> 32; };
  const Pool& pool = pools_[static_cast<std::size_t>(kind)];
  for (const FreeBlocks* blocks : {&pool.free, &pool.unmapped}) {
    for (const FreeBlock& free : *blocks) {
      mix(free.order);
      mix(free.address);
    }
  }
  return hash;
}

void CachingAllocator::fail(const Request& request) {
  ++statistics_.out_of_memory;
  const std::int64_t reserved = statistics_.all.reserved_bytes.current;
  std::int64_t room = device_.available();
  if (settings_.memory_fraction > 0) {
    const double allowed = settings_.memory_fraction * static_cast<double>(device_.capacity());
    room = std::min(room, static_cast<std::int64_t>(allowed) - reserved);
  }
  const std::int64_t segment = segment_size(request.rounded, settings_);
  failure_ = {request.bytes,      segment, segment - room, statistics_.all.allocated_bytes.current, reserved,
              device_.available()};
}

}  // namespace ridgeline
