// Expandable segments: one range of addresses a pool and stream, larger than the device, that gets memory page by page
// from its start. Blocks without memory ("unmapped") are part of the same chain of neighbours.
#include <algorithm>
#include <utility>

#include "sim/allocator/caching_allocator.h"

namespace ridgeline {

bool CachingAllocator::has_room(BlockId id, std::int64_t bytes) const {
  std::int64_t room = 0;
  for (; room < bytes && available(id); id = at(id).next) room += at(id).bytes;
  return room >= bytes;
}

// The first unmapped block, by size, with room for the request, starting at the free block before it if there is one.
BlockId CachingAllocator::block_with_room(const Request& request) {
  Pool& pool = pool_of(request.pool);
  for (auto it = pool.unmapped.best_fit(request.stream, 0);
       it != pool.unmapped.end() && (*it).stream() == request.stream; ++it) {
    const BlockId before = at(it.block()).previous;
    const BlockId start = available(before) ? before : it.block();
    if (has_room(start, request.rounded)) return start;
  }
  ExpandableSegment segment;
  segment.page = request.pool == PoolKind::small ? kSmallSegment : settings_.large_segment_size;
  segment.bytes = (device_.capacity() / 8 * 9 + segment.page - 1) / segment.page * segment.page;
  segment.address = device_.reserve_addresses(segment.bytes);
  expandable_.push_back(segment);
  Block block;
  block.address = segment.address;
  block.bytes = segment.bytes;
  block.stream = request.stream;
  block.expandable = static_cast<std::int32_t>(expandable_.size()) - 1;
  block.pool = request.pool;
  block.mapped = false;
  const BlockId id = new_block(block);
  at(id).state = Block::State::free;
  pool.unmapped.insert(key_of(id));
  return id;
}

// Puts memory behind the first `bytes` of an unmapped block, rounded up to pages, and merges it with free neighbours.
bool CachingAllocator::map(BlockId id, std::int64_t bytes) {
  const ExpandableSegment& segment = expandable_[static_cast<std::size_t>(at(id).expandable)];
  const std::int64_t mapped = std::min((bytes + segment.page - 1) / segment.page * segment.page, at(id).bytes);
  if (!device_.map(mapped)) return false;
  Pool& pool = pool_of(at(id).pool);
  pool.unmapped.erase(key_of(id));
  if (mapped < at(id).bytes) {
    Block rest = at(id);
    rest.address += static_cast<Address>(mapped);
    rest.bytes -= mapped;
    rest.previous = id;
    const BlockId rest_id = new_block(rest);
    at(rest_id).state = Block::State::free;
    if (rest.next != kNoBlock) at(rest.next).previous = rest_id;
    at(id).next = rest_id;
    at(id).bytes = mapped;
    pool.unmapped.insert(key_of(rest_id));
  }
  at(id).mapped = true;
  events_.push_back({SegmentEvent::Kind::map, at(id).address, mapped});
  merge_and_erase(id, at(id).previous);
  merge_and_erase(id, at(id).next);
  make_available(id);
  count(at(id).pool, [&](PoolStatistics& s) { s.reserved_bytes.add(mapped); });
  ++statistics_.device_allocations;
  return true;
}

BlockId CachingAllocator::grow(const Request& request) {
  BlockId id = block_with_room(request);
  if (!at(id).mapped && !map(id, std::min(at(id).bytes, request.rounded))) return kNoBlock;
  while (at(id).bytes < request.rounded) {  // a free block with unmapped room behind it
    const BlockId next = at(id).next;
    if (!map(next, std::min(request.rounded - at(id).bytes, at(next).bytes))) return kNoBlock;
    id = next;  // it has taken in the block before it
  }
  pool_of(request.pool).free.erase(key_of(id));
  return id;
}

// Takes the memory from behind the whole pages of a free block; what is left of it at the edges stays free.
void CachingAllocator::unmap(BlockId id) {
  const ExpandableSegment& segment = expandable_[static_cast<std::size_t>(at(id).expandable)];
  const Block block = at(id);
  const auto page = static_cast<Address>(segment.page);
  const Address offset = block.address - segment.address;
  const Address begin = (offset + page - 1) / page * page,
                end = (offset + static_cast<Address>(block.bytes)) / page * page;
  if (begin >= end) return;
  const auto bytes = static_cast<std::int64_t>(end - begin);
  device_.unmap(bytes);
  Pool& pool = pool_of(block.pool);
  pool.free.erase(key_of(id));
  const auto keep = [&](Address address, std::int64_t size, BlockId previous, BlockId next) {
    Block edge = block;
    edge.address = address;
    edge.bytes = size;
    edge.previous = previous;
    edge.next = next;
    const BlockId edge_id = new_block(edge);
    if (previous != kNoBlock) at(previous).next = edge_id;
    if (next != kNoBlock) at(next).previous = edge_id;
    make_available(edge_id);
  };
  const auto before = static_cast<std::int64_t>(begin - offset);
  const std::int64_t after = block.bytes - before - bytes;
  if (before > 0) keep(block.address, before, block.previous, id);
  if (after > 0) keep(segment.address + end, after, id, block.next);
  at(id).address = segment.address + begin;
  at(id).bytes = bytes;
  at(id).mapped = false;
  events_.push_back({SegmentEvent::Kind::unmap, at(id).address, bytes});
  merge_and_erase(id, at(id).previous);
  merge_and_erase(id, at(id).next);
  pool.unmapped.insert(key_of(id));
  count(block.pool, [&](PoolStatistics& s) { s.reserved_bytes.add(-bytes); });
  ++statistics_.device_frees;
}

std::vector<SegmentView> CachingAllocator::segments() const {
  std::vector<SegmentView> result;
  for (const Block& first : blocks_) {
    if (first.state == Block::State::unused || first.previous != kNoBlock) continue;
    SegmentView segment;
    segment.address = first.address;
    segment.pool = first.pool;
    segment.stream = first.stream;
    segment.expandable = first.expandable >= 0;
    for (const Block* block = &first;; block = &at(block->next)) {
      BlockView view{block->address, block->bytes, 0, BlockView::State::free};
      if (block->state == Block::State::allocated) view.state = BlockView::State::allocated;
      if (block->state == Block::State::pending) view.state = BlockView::State::pending_free;
      if (!block->mapped) view.state = BlockView::State::unmapped;
      if (block->state != Block::State::free) view.requested = block->requested;
      if (block->mapped) segment.bytes += block->bytes;
      segment.blocks.push_back(view);
      if (block->next == kNoBlock) break;
    }
    result.push_back(std::move(segment));
  }
  std::sort(result.begin(), result.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
  return result;
}

}  // namespace ridgeline
