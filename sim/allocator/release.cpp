// How the allocator gives memory back to the device: garbage collection, blocks too large to split, everything free.
#include <algorithm>

#include "sim/allocator/caching_allocator.h"

namespace ridgeline {

void CachingAllocator::release_segment(BlockId id) {
  const Block& block = at(id);
  device_.release(block.address, block.bytes);
  ++statistics_.device_frees;
  events_.push_back({SegmentEvent::Kind::free, block.address, block.bytes});
  count(block.pool, [&](PoolStatistics& s) {
    s.segment.add(-1);
    s.reserved_bytes.add(-block.bytes);
  });
  pool_of(block.pool).free.erase(key_of(id));
  recycle(id);
}

// Above the threshold, whole free segments of the large pool go that have lain unused for longer than average; again,
// until enough is freed or nothing more can be.
void CachingAllocator::collect_garbage() {
  const std::int64_t reserved = statistics_.all.reserved_bytes.current;
  const auto threshold = static_cast<std::int64_t>(settings_.garbage_collection_threshold * settings_.memory_fraction *
                                                   static_cast<double>(device_.capacity()));
  if (reserved <= threshold) return;
  const Pool& pool = pool_of(PoolKind::large);
  const auto age = [&](BlockId id) { return pool.lookups - at(id).age_base; };
  std::int64_t total_age = 0, count_free = 0, reclaimed = 0;
  for (const FreeBlock& free : pool.free) {
    if (!at(free.block).split()) {
      total_age += age(free.block);
      ++count_free;
    }
  }
  bool progress = true;
  while (reclaimed < reserved - threshold && progress && count_free > 0) {
    const double limit = static_cast<double>(total_age) / static_cast<double>(count_free);
    progress = false;
    std::vector<BlockId> candidates;
    for (const FreeBlock& free : pool.free) {
      if (!at(free.block).split() && at(free.block).expandable < 0) candidates.push_back(free.block);
    }
    for (const BlockId id : candidates) {
      if (reclaimed >= reserved - threshold) break;
      if (static_cast<double>(age(id)) < limit) continue;
      progress = true;
      reclaimed += at(id).bytes;
      total_age -= age(id);
      --count_free;
      release_segment(id);
    }
  }
}

// With a limit on splitting: gives back the smallest unsplittable block that would serve, or else the largest ones.
bool CachingAllocator::release_oversize(const Request& request) {
  if (settings_.max_split_size == AllocatorSettings::kUnlimited) return false;
  const Pool& pool = pool_of(request.pool);
  const std::int64_t wanted = std::max(request.rounded, settings_.max_split_size);
  const auto fitting = pool.free.best_fit(request.stream, wanted);
  if (fitting != pool.free.end() && at(fitting.block()).expandable < 0) {
    release_segment(fitting.block());
    return true;
  }
  auto at_least = pool.free.first_of_at_least(request.stream, wanted);
  std::vector<BlockId> largest_first;
  std::int64_t total = 0;
  while (at_least != pool.free.begin() && total < wanted) {
    --at_least;
    const FreeBlock free = *at_least;
    if (free.stream() != request.stream || free.bytes() < settings_.max_split_size) break;
    if (at(free.block).expandable >= 0) continue;
    largest_first.push_back(free.block);
    total += free.bytes();
  }
  for (const BlockId id : largest_first) release_segment(id);
  return total >= wanted;
}

void CachingAllocator::release_cached() {
  complete_events();
  for (const PoolKind kind : {PoolKind::large, PoolKind::small}) {
    std::vector<BlockId> whole, growing;
    for (const FreeBlock& free : pool_of(kind).free) {
      if (at(free.block).expandable >= 0) growing.push_back(free.block);
      else if (!at(free.block).split()) whole.push_back(free.block);
    }
    for (const BlockId id : whole) release_segment(id);
    for (const BlockId id : growing) unmap(id);
  }
}

void CachingAllocator::empty_cache() { release_cached(); }

bool CachingAllocator::release_free_segment(Address address) {
  for (const Pool& pool : pools_) {
    for (const FreeBlock& free : pool.free) {
      if (free.address != address || at(free.block).split() || at(free.block).expandable >= 0) continue;
      release_segment(free.block);
      return true;
    }
  }
  return false;
}

}  // namespace ridgeline
