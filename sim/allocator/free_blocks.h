// The free blocks of one pool in the order best fit needs: stream, then size, then address.
//
// A sorted vector: training steps keep some hundred free blocks, where moving a few KiB of keys is cheaper than chasing
// the nodes of a tree (bench/allocator_bench.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/allocator/device_memory.h"

namespace ridgeline {

using BlockId = std::int32_t;
using StreamId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

/// A free block as its pool sorts it. Stream and size share one word (blocks are multiples of 512 bytes), so that two
/// comparisons of words decide.
struct FreeBlock {
  static constexpr int kSizeBits = 48;

  FreeBlock(StreamId stream, std::int64_t bytes, Address where, BlockId id)
      : order(static_cast<std::uint64_t>(stream) << kSizeBits | static_cast<std::uint64_t>(bytes) >> 9),
        address(where),
        block(id) {}
  [[nodiscard]] StreamId stream() const { return static_cast<StreamId>(order >> kSizeBits); }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(order << (64 - kSizeBits) >> (64 - kSizeBits) << 9);
  }

  std::uint64_t order;
  Address address;
  BlockId block;  ///< not part of the order: addresses are unique
};

class FreeBlocks {
 public:
  using Iterator = std::vector<FreeBlock>::const_iterator;

  void insert(const FreeBlock& free) { sorted_.insert(position(free), free); }
  void erase(const FreeBlock& free) { sorted_.erase(position(free)); }
  void erase(Iterator at) { sorted_.erase(at); }
  /// Erases the block at `at` and inserts another: only what lies between the two moves.
  void replace(Iterator at, const FreeBlock& by) {
    const auto from = sorted_.begin() + (at - sorted_.cbegin());
    const auto to = sorted_.begin() + (position(by) - sorted_.cbegin());
    if (to > from) *std::move(from + 1, to, from) = by;
    else *(std::move_backward(to, from, from + 1) - 1) = by;
  }
  void replace(const FreeBlock& free, const FreeBlock& by) { replace(position(free), by); }
  /// The smallest block of `stream` with at least `bytes` (lowest address first), or the first one of a later stream.
  [[nodiscard]] Iterator best_fit(StreamId stream, std::int64_t bytes) const {
    return position({stream, bytes, 0, kNoBlock});
  }
  [[nodiscard]] Iterator begin() const { return sorted_.begin(); }
  [[nodiscard]] Iterator end() const { return sorted_.end(); }

 private:
  /// The first that is not before `key`: a binary search without a branch that depends on the data.
  [[nodiscard]] Iterator position(const FreeBlock& key) const {
    const FreeBlock* first = sorted_.data();
    for (std::size_t length = sorted_.size(); length > 0;) {
      const std::size_t half = (length + 1) / 2;
      const FreeBlock& middle = first[half - 1];
      const bool before = (middle.order < key.order) | ((middle.order == key.order) & (middle.address < key.address));
      first += before ? half : 0;
      length -= half;
    }
    return sorted_.begin() + (first - sorted_.data());
  }
  std::vector<FreeBlock> sorted_;
};

}  // namespace ridgeline
