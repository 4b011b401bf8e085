// PyTorch's caching allocator for device memory, block for block.
//
// Requests are rounded to 512 bytes and served from the free block of their pool (up to 1 MiB: small; above: large) and
// stream that fits best, lowest address on ties; the rest of the block is split off. Where none fits, a new segment is
// asked of the device: 2 MiB, 20 MiB or the request in steps of 2 MiB. Freed blocks merge with free neighbours and stay
// reserved. A device that has no more makes the allocator give back whole free segments and try again; then the request
// fails, which is a result here, not an error. With expandable segments there is one growing segment a pool and stream.
//
// Follows the behaviour of c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.11). Tested by tests/allocator against the
// recorded histories of an H200 and, under random requests, against a slow and obvious allocator.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "sim/allocator/device_memory.h"
#include "sim/allocator/free_blocks.h"
#include "sim/allocator/settings.h"
#include "sim/allocator/statistics.h"

namespace ridgeline {

/// What the allocator asked of the device, in order.
struct SegmentEvent {
  enum class Kind : std::uint8_t { allocate, free, map, unmap };
  Kind kind = Kind::allocate;
  Address address = 0;
  std::int64_t bytes = 0;
};

/// Why the last allocation failed.
struct OutOfMemory {
  std::int64_t requested = 0;                                 ///< bytes of the request
  std::int64_t segment = 0;                                   ///< bytes the device was asked for
  std::int64_t missing = 0;                                   ///< bytes more that the device would have needed
  std::int64_t allocated = 0, reserved = 0, device_free = 0;  ///< at that moment
};

struct BlockView {
  Address address = 0;
  std::int64_t bytes = 0, requested = 0;
  enum class State : std::uint8_t { allocated, pending_free, free, unmapped } state = State::free;
};
struct SegmentView {
  Address address = 0;
  std::int64_t bytes = 0;  ///< mapped bytes of an expandable segment
  PoolKind pool = PoolKind::large;
  StreamId stream = 0;
  bool expandable = false;
  std::vector<BlockView> blocks;  ///< in address order; they tile the segment
};

/// `held`: of the statistics, only what is allocated and reserved by all pools together, with its peaks, and how often
/// the device was asked; half the work of an allocation is to count the rest.
enum class Counts : std::uint8_t { everything, held };

class CachingAllocator {
 public:
  CachingAllocator(AllocatorSettings settings, DeviceMemory device, Counts counts = Counts::everything);

  /// Takes over what another process reserved: a plain segment, or the mapped parts of a growing one (ranges of one
  /// stream and pool in address order), with their blocks. Before the first request. Returns the blocks in use, in
  /// order; nothing where the device has no room for them.
  std::optional<std::vector<BlockId>> adopt(const std::vector<SegmentView>& ranges);

  /// `bytes` > 0. Returns kNoBlock when memory is exhausted: see last_failure().
  BlockId allocate(std::int64_t bytes, StreamId stream = 0);
  /// The block's owner is done with it. Where other streams used it (record_stream), it stays active until they are
  /// done.
  void free(BlockId block);
  /// `stream` uses the block too.
  void record_stream(BlockId block, StreamId stream);
  /// All work issued so far is done: blocks that waited for other streams become free, in the order they were freed.
  void complete_events();
  /// The two halves of `free`, for replaying histories that record both.
  void request_free(BlockId id) {
    Block& block = at(id);
    if (block.state != Block::State::allocated) throw std::logic_error("a block that is not allocated was freed");
    block.state = Block::State::pending;
    if (counts_ == Counts::held) return statistics_.all.allocated_bytes.take(block.bytes);
    count(block.pool, [&](PoolStatistics& s) {
      s.allocation.take(1);
      s.allocated_bytes.take(block.bytes);
    });
  }
  void complete_free(BlockId block);
  /// torch.cuda.empty_cache().
  void empty_cache();
  /// Gives the segment at `address` back if all of it is free (a recorded segment_free); false otherwise.
  bool release_free_segment(Address address);

  [[nodiscard]] Address address_of(BlockId block) const { return blocks_[static_cast<std::size_t>(block)].address; }
  /// Bytes of the block, at least the request.
  [[nodiscard]] std::int64_t bytes_of(BlockId block) const { return blocks_[static_cast<std::size_t>(block)].bytes; }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }
  void reset_peaks() { statistics_.reset_peaks(); }
  /// What happened since the statistics were `since` happened `times` times more, and left everything as it is.
  void count_again(const AllocatorStatistics& since, std::int64_t times) { statistics_.count_again(since, times); }
  [[nodiscard]] const OutOfMemory& last_failure() const { return failure_; }
  [[nodiscard]] const std::vector<SegmentEvent>& segment_events() const { return events_; }
  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }
  [[nodiscard]] DeviceMemory& device() { return device_; }
  [[nodiscard]] const DeviceMemory& device() const { return device_; }
  /// Everything reserved, in address order.
  [[nodiscard]] std::vector<SegmentView> segments() const;
  /// Hash of all that decides where later requests go: equal fingerprints answer equal requests equally.
  [[nodiscard]] std::uint64_t fingerprint() const;
  /// The same of one pool.
  [[nodiscard]] std::uint64_t fingerprint(PoolKind kind) const;

 private:
  struct Block {
    Address address = 0;
    std::int64_t bytes = 0, requested = 0;
    BlockId previous = kNoBlock, next = kNoBlock;  ///< neighbours in the segment
    StreamId stream = 0;
    std::int32_t expandable = -1;  ///< its growing segment; -1 = a plain one
    std::int32_t users = 0;        ///< other streams that have not finished with it
    PoolKind pool = PoolKind::large;
    enum class State : std::uint8_t { unused, allocated, pending, free } state = State::unused;
    bool mapped = true;
    FreeBlocks::ListId list = 0;  ///< of the free ones: where it stands, or stood when it was last free
    std::int64_t age_base = 0;    ///< lookups of the pool when the block became free
    [[nodiscard]] bool split() const { return previous != kNoBlock || next != kNoBlock; }
  };
  struct Pool {
    FreeBlocks free, unmapped;
    std::int64_t lookups = 0;
  };
  struct Request {
    std::int64_t bytes = 0, rounded = 0;
    StreamId stream = 0;
    PoolKind pool = PoolKind::large;
  };
  /// Whole pages of a growing segment that have memory; addresses are relative to its start.
  struct ExpandableSegment {
    Address address = 0;
    std::int64_t bytes = 0, page = 0;
  };

  Block& at(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  Pool& pool_of(PoolKind kind) { return pools_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] static FreeBlock key_of(const Block& block, BlockId id) {
    return {block.stream, block.bytes, block.address, id};
  }
  [[nodiscard]] FreeBlock key_of(BlockId id) const { return key_of(at(id), id); }
  template <typename Change>
  void count(PoolKind kind, Change change) {
    change(statistics_.all);
    change(statistics_.pools[static_cast<std::size_t>(kind)]);
  }

  [[gnu::always_inline]] BlockId new_block(const Block& block) {
    BlockId id = static_cast<BlockId>(blocks_.size());
    if (unused_.empty()) {
      blocks_.push_back(block);
    } else {
      id = unused_.back();
      unused_.pop_back();
      at(id) = block;
    }
    at(id).state = Block::State::allocated;
    return id;
  }
  [[gnu::always_inline]] void recycle(BlockId id) {
    at(id).state = Block::State::unused;
    unused_.push_back(id);
  }
  void make_available(BlockId id);
  [[gnu::always_inline]] FreeBlock mark_free(BlockId id) {
    Block& block = at(id);
    block.state = Block::State::free;
    block.age_base = pool_of(block.pool).lookups;
    return key_of(block, id);
  }
  /// Where none that is free serves.
  BlockId allocate_segment(const Request& request);
  /// Of free blocks with enough bytes, of which `best` is the first, the one that the settings choose; their end where
  /// all are too large.
  [[nodiscard]] FreeBlocks::Iterator chosen(const Pool& pool, FreeBlocks::Iterator best, const Request& request) const;
  /// A block at the edge of a growing segment counts with the room behind it: of two, the one with less room is better.
  [[nodiscard]] FreeBlocks::Iterator with_least_room(const Pool& pool, FreeBlocks::Iterator best,
                                                     StreamId stream) const;
  BlockId ask_device(const Request& request);
  void hand_out(Block& block, std::int64_t requested) {
    block.state = Block::State::allocated;
    block.users = 0;
    block.requested = requested;
    if (counts_ == Counts::held) statistics_.all.allocated_bytes.add(block.bytes);
    else count_handed_out(block);
  }
  /// Cuts the first `bytes` off, a block of their own, which is returned.
  [[gnu::always_inline]] BlockId cut(BlockId id, std::int64_t bytes);
  [[nodiscard]] bool should_split(const Block& block, std::int64_t rounded) const {
    const std::int64_t rest = block.bytes - rounded;
    if (block.pool == PoolKind::small || settings_.expandable_segments) return rest >= kMinBlock;
    return rounded < settings_.max_split_size && rest > kLargestSmall;
  }
  /// Is there a free neighbour that becomes part of the block when that one is free too?
  [[nodiscard]] bool joins(const Block& block, BlockId neighbour) const {
    return available(neighbour) && at(neighbour).mapped == block.mapped;
  }
  /// Makes it part of the block, which is `id`.
  [[gnu::always_inline]] void absorb(Block& block, BlockId id, BlockId neighbour);
  void merge_and_erase(BlockId into, BlockId neighbour);
  [[gnu::always_inline]] void free_block(BlockId id);
  // For Counts::everything. Of a free block whose first `bytes` become one of their own; that is handed out whole; that
  // was handed out; that is freed and merges with these free neighbours.
  void count_cut(const Block& block, std::int64_t bytes);
  void count_whole(const Block& block);
  void count_handed_out(const Block& block);
  void count_free(const Block& block, BlockId before, BlockId after);
  void fail(const Request& request);

  // Giving memory back to the device (release.cpp) and expandable segments (expandable_segments.cpp).
  void collect_garbage();
  bool release_oversize(const Request& request);
  void release_cached();
  void release_segment(BlockId id);
  BlockId grow(const Request& request);
  BlockId block_with_room(const Request& request);
  [[nodiscard]] bool has_room(BlockId id, std::int64_t bytes) const;
  [[nodiscard]] bool available(BlockId id) const { return id != kNoBlock && at(id).state == Block::State::free; }
  bool map(BlockId id, std::int64_t bytes);
  void unmap(BlockId id);

  AllocatorSettings settings_;
  bool divides_powers_;         ///< sizes round up to a part of a power of two
  bool chooses_among_fitting_;  ///< the smallest block that fits need not be the one
  DeviceMemory device_;
  Counts counts_;
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;   ///< entries of blocks_ that stand for nothing
  std::vector<BlockId> waiting_;  ///< freed, but used by other streams, in order
  Pool pools_[2];
  std::vector<ExpandableSegment> expandable_;
  AllocatorStatistics statistics_;
  OutOfMemory failure_;
  std::vector<SegmentEvent> events_;
};

}  // namespace ridgeline
