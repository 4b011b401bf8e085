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
  /// The smallest block of `stream` with at least `bytes` (lowest address first), or the first one of a later stream.
  [[nodiscard]] Iterator best_fit(StreamId stream, std::int64_t bytes) const {
    return position({stream, bytes, 0, kNoBlock});
  }
  [[nodiscard]] Iterator begin() const { return sorted_.begin(); }
  [[nodiscard]] Iterator end() const { return sorted_.end(); }

 private:
  [[nodiscard]] Iterator position(const FreeBlock& key) const {
    return std::lower_bound(sorted_.begin(), sorted_.end(), key, [](const FreeBlock& a, const FreeBlock& b) {
      return a.order < b.order || (a.order == b.order && a.address < b.address);
    });
  }
  std::vector<FreeBlock> sorted_;
};

}  // namespace ridgeline
