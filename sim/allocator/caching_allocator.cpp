#include "sim/allocator/caching_allocator.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ridgeline {

CachingAllocator::CachingAllocator(AllocatorSettings settings, DeviceMemory device, Counts counts)
    : settings_(settings), device_(std::move(device)), counts_(counts) {
  blocks_.reserve(1024);
}

BlockId CachingAllocator::new_block(const Block& block) {
  BlockId id;
  if (unused_.empty()) {
    id = static_cast<BlockId>(blocks_.size());
    blocks_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    at(id) = block;
  }
  at(id).state = Block::State::allocated;
  return id;
}

void CachingAllocator::recycle(BlockId id) {
  at(id).state = Block::State::unused;
  unused_.push_back(id);
}

FreeBlock CachingAllocator::mark_free(BlockId id) {
  at(id).state = Block::State::free;
  at(id).age_base = pool_of(at(id).pool).lookups;
  return key_of(id);
}

void CachingAllocator::make_available(BlockId id) { pool_of(at(id).pool).free.insert(mark_free(id)); }

BlockId CachingAllocator::allocate(std::int64_t bytes, StreamId stream) {
  if (bytes <= 0) throw std::invalid_argument("an allocation must have at least one byte");
  Request request;
  request.bytes = bytes;
  request.rounded = rounded_request(bytes, settings_);
  request.segment = segment_size(request.rounded, settings_);
  request.stream = stream;
  request.pool = request.rounded <= kLargestSmall ? PoolKind::small : PoolKind::large;

  const FreeBlocks& free = pool_of(request.pool).free;
  if (const auto best = best_free_block(request); best != free.end()) return hand_out(best->block, request, best);
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
  return hand_out(block, request, free.end());
}

FreeBlocks::Iterator CachingAllocator::best_free_block(const Request& request) {
  Pool& pool = pool_of(request.pool);
  ++pool.lookups;
  auto best = pool.free.best_fit(request.stream, request.rounded);
  const auto end = pool.free.end();
  if (best == end || best->stream() != request.stream) return end;
  if (at(best->block).expandable >= 0) {
    // A block at the edge of a growing segment counts with the room behind it: of two, the one with less room is
    // better.
    const auto room = [&](const FreeBlock& free) {
      const BlockId next = at(free.block).next;
      return free.bytes() + (next != kNoBlock && !at(next).mapped ? at(next).bytes : 0);
    };
    for (auto next = std::next(best); next != end && next->stream() == request.stream && room(*next) < room(*best);
         ++next)
      best = next;
  }
  if (request.rounded < settings_.max_split_size && best->bytes() >= settings_.max_split_size) return end;
  if (request.rounded >= settings_.max_split_size &&
      best->bytes() >= request.rounded + settings_.max_non_split_rounding)
    return end;
  return best;
}

BlockId CachingAllocator::ask_device(const Request& request) {
  const std::int64_t reserved = statistics_.all.reserved_bytes.current;
  if (settings_.memory_fraction > 0 && static_cast<double>(reserved + request.segment) >
                                           settings_.memory_fraction * static_cast<double>(device_.capacity())) {
    return kNoBlock;
  }
  if (settings_.expandable_segments) return grow(request);
  const auto address = device_.allocate(request.segment);
  if (!address) return kNoBlock;
  Block block;
  block.address = *address;
  block.bytes = request.segment;
  block.stream = request.stream;
  block.pool = request.pool;
  count_always(request.pool, [&](PoolStatistics& s) {
    s.segment.add(1);
    s.reserved_bytes.add(request.segment);
  });
  ++statistics_.device_allocations;
  events_.push_back({SegmentEvent::Kind::allocate, *address, request.segment});
  return new_block(block);
}

bool CachingAllocator::should_split(const Block& block, std::int64_t rounded) const {
  const std::int64_t rest = block.bytes - rounded;
  if (block.pool == PoolKind::small || settings_.expandable_segments) return rest >= kMinBlock;
  return rounded < settings_.max_split_size && rest > kLargestSmall;
}

BlockId CachingAllocator::hand_out(BlockId id, const Request& request, FreeBlocks::Iterator free) {
  FreeBlocks& free_blocks = pool_of(request.pool).free;
  const bool was_free = free != free_blocks.end();
  const bool plain = at(id).expandable < 0, was_split = at(id).split();
  if (should_split(at(id), request.rounded)) {
    const BlockId front_id = new_block(at(id));
    at(front_id).bytes = request.rounded;
    at(front_id).next = id;
    Block& rest = at(id);
    if (rest.previous != kNoBlock) at(rest.previous).next = front_id;
    rest.previous = front_id;
    rest.address += static_cast<Address>(request.rounded);
    rest.bytes -= request.rounded;
    if (plain) {
      count(request.pool, [&](PoolStatistics& s) {
        if (was_split) {
          s.inactive_split_bytes.add(-request.rounded);
          return;
        }
        s.inactive_split.add(1);
        s.inactive_split_bytes.add(rest.bytes);
      });
    }
    if (was_free) free_blocks.replace(free, mark_free(id));
    else make_available(id);
    id = front_id;
  } else {
    if (was_free) free_blocks.erase(free);
    if (was_split && plain) {
      count(request.pool, [&](PoolStatistics& s) {
        s.inactive_split.add(-1);
        s.inactive_split_bytes.add(-at(id).bytes);
      });
    }
  }
  Block& block = at(id);
  block.state = Block::State::allocated;
  block.users = 0;
  block.requested = request.bytes;
  if (counts_ == Counts::held) {
    statistics_.all.allocated_bytes.add(block.bytes);
    return id;
  }
  count(request.pool, [&](PoolStatistics& s) {
    s.allocation.add(1);
    s.allocated_bytes.add(block.bytes);
    s.active.add(1);
    s.active_bytes.add(block.bytes);
    s.requested_bytes.add(block.requested);
  });
  return id;
}

void CachingAllocator::record_stream(BlockId block, StreamId stream) {
  if (stream != at(block).stream) ++at(block).users;
}

void CachingAllocator::free(BlockId block) {
  request_free(block);
  if (at(block).users > 0) waiting_.push_back(block);
  else free_block(block);
}

void CachingAllocator::complete_events() {
  for (const BlockId block : std::exchange(waiting_, {})) {
    at(block).users = 0;
    free_block(block);
  }
}

void CachingAllocator::request_free(BlockId id) {
  Block& block = at(id);
  if (block.state != Block::State::allocated) throw std::logic_error("a block that is not allocated was freed");
  block.state = Block::State::pending;
  if (counts_ == Counts::held) return statistics_.all.allocated_bytes.take(block.bytes);
  count(block.pool, [&](PoolStatistics& s) {
    s.allocation.take(1);
    s.allocated_bytes.take(block.bytes);
  });
}

void CachingAllocator::complete_free(BlockId id) {
  if (at(id).state != Block::State::pending) throw std::logic_error("a free was completed that nobody requested");
  free_block(id);
}

std::optional<FreeBlock> CachingAllocator::merge(BlockId into, BlockId neighbour) {
  if (!available(neighbour) || at(neighbour).mapped != at(into).mapped) return std::nullopt;
  Block& a = at(into);
  const Block& b = at(neighbour);
  if (a.previous == neighbour) {
    a.address = b.address;
    a.previous = b.previous;
    if (a.previous != kNoBlock) at(a.previous).next = into;
  } else {
    a.next = b.next;
    if (a.next != kNoBlock) at(a.next).previous = into;
  }
  a.bytes += b.bytes;
  const FreeBlock key = key_of(neighbour);
  recycle(neighbour);
  return key;
}

void CachingAllocator::merge_and_erase(BlockId into, BlockId neighbour) {
  if (const auto merged = merge(into, neighbour)) {
    Pool& pool = pool_of(at(into).pool);
    (at(into).mapped ? pool.free : pool.unmapped).erase(*merged);
  }
}

void CachingAllocator::free_block(BlockId id) {
  const std::int64_t bytes = at(id).bytes, requested = at(id).requested;
  const PoolKind kind = at(id).pool;
  FreeBlocks& free = pool_of(kind).free;  // a block that was in use has memory
  const auto before = merge(id, at(id).previous), after = merge(id, at(id).next);
  const FreeBlock now = mark_free(id);
  if (before && after) free.erase(*after);
  if (before || after) free.replace(before ? *before : *after, now);
  else free.insert(now);
  if (counts_ == Counts::held) return;
  std::int64_t splits = 0, split_bytes = 0;
  for (const auto& merged : {before, after}) {
    if (!merged) continue;
    --splits;
    split_bytes -= merged->bytes();
  }
  if (at(id).split()) {
    ++splits;
    split_bytes += at(id).bytes;
  }
  count(kind, [&](PoolStatistics& s) {
    if (at(id).expandable < 0) {
      s.inactive_split.add(splits);
      s.inactive_split_bytes.add(split_bytes);
    }
    s.active.take(1);
    s.active_bytes.take(bytes);
    s.requested_bytes.take(requested);
  });
}

std::uint64_t CachingAllocator::fingerprint() const {
  // Free blocks in their order; blocks in use and segments follow from them, as everything else stays where it is.
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0xff51afd7ed558ccdu, hash ^= hash >> 32; };
  for (const Pool& pool : pools_) {
    for (const FreeBlocks* blocks : {&pool.free, &pool.unmapped}) {
      for (const FreeBlock& free : *blocks) {
        mix(free.order);
        mix(free.address);
      }
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
  failure_ = {request.bytes, request.segment,    request.segment - room, statistics_.all.allocated_bytes.current,
              reserved,      device_.available()};
}

}  // namespace ridgeline
