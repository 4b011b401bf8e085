// The free blocks of one pool in the order best fit needs: stream, then size, then address.
//
// Sorted chunks of a bounded length: training steps keep some hundred free blocks, where moving a few KiB of keys is
// cheaper than chasing the nodes of a tree (bench/allocator_bench.cpp), and models of thousands of layers keep many
// more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
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
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = FreeBlock;
    using difference_type = std::ptrdiff_t;
    using pointer = const FreeBlock*;
    using reference = const FreeBlock&;
    const FreeBlock& operator*() const { return in_->chunks_[chunk_][at_]; }
    const FreeBlock* operator->() const { return &**this; }
    Iterator& operator++() {
      if (++at_ == in_->chunks_[chunk_].size()) ++chunk_, at_ = 0;
      return *this;
    }
    Iterator& operator--() {
      if (at_ == 0) at_ = in_->chunks_[--chunk_].size();
      --at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return chunk_ == other.chunk_ && at_ == other.at_; }

   private:
    friend class FreeBlocks;
    Iterator(const FreeBlocks* in, std::size_t chunk, std::size_t at) : in_(in), chunk_(chunk), at_(at) {}
    const FreeBlocks* in_;
    std::size_t chunk_, at_;
  };

  void insert(const FreeBlock& free) {
    if (chunks_.empty()) {
      chunks_.push_back({free});
      return;
    }
    const std::size_t c = std::min(chunk_of(free), chunks_.size() - 1);
    Chunk& chunk = chunks_[c];
    chunk.insert(chunk.begin() + place_in(chunk, free), free);
    if (chunk.size() <= kMostOfAChunk) return;
    const auto half = chunk.begin() + kMostOfAChunk / 2;
    Chunk rest(half, chunk.end());
    chunk.erase(half, chunk.end());
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(c) + 1, std::move(rest));
  }
  void erase(const FreeBlock& free) { erase(position(free)); }
  void erase(Iterator at) {
    Chunk& chunk = chunks_[at.chunk_];
    chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(at.at_));
    if (chunk.empty()) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk_));
  }
  /// Erases the block at `at` and inserts another: only what lies between the two moves, where it is one chunk.
  void replace(Iterator at, const FreeBlock& by) {
    Chunk& chunk = chunks_[at.chunk_];
    const bool here = chunks_.size() == 1 || (!before(by, chunk.front()) && before(by, chunk.back()));
    if (!here) {
      erase(at);
      insert(by);
      return;
    }
    const auto from = chunk.begin() + static_cast<std::ptrdiff_t>(at.at_);
    const auto to = chunk.begin() + place_in(chunk, by);
    if (to > from) *std::move(from + 1, to, from) = by;
    else *(std::move_backward(to, from, from + 1) - 1) = by;
  }
  void replace(const FreeBlock& free, const FreeBlock& by) { replace(position(free), by); }
  /// The smallest block of `stream` with at least `bytes` (lowest address first), or the first one of a later stream.
  [[nodiscard]] Iterator best_fit(StreamId stream, std::int64_t bytes) const {
    return position({stream, bytes, 0, kNoBlock});
  }
  [[nodiscard]] Iterator begin() const { return {this, 0, 0}; }
  [[nodiscard]] Iterator end() const { return {this, chunks_.size(), 0}; }

 private:
  using Chunk = std::vector<FreeBlock>;
  static constexpr std::size_t kMostOfAChunk = 64;  // 1.5 KiB

  /// Two subtractions with a borrow: half the instructions of comparing word by word.
  static bool before(const FreeBlock& a, const FreeBlock& b) {
    __extension__ using Both = unsigned __int128;
    return (Both{a.order} << 64 | a.address) < (Both{b.order} << 64 | b.address);
  }
  /// The first chunk that ends at or after `key`.
  [[nodiscard]] std::size_t chunk_of(const FreeBlock& key) const {
    const auto found = std::partition_point(chunks_.begin(), chunks_.end(),
                                            [&](const Chunk& chunk) { return before(chunk.back(), key); });
    return static_cast<std::size_t>(found - chunks_.begin());
  }
  /// The first that is not before `key`: a binary search without a branch that depends on the data.
  static std::ptrdiff_t place_in(const Chunk& chunk, const FreeBlock& key) {
    const FreeBlock* first = chunk.data();
    for (std::size_t length = chunk.size(); length > 0;) {
      const std::size_t half = (length + 1) / 2;
      first += before(first[half - 1], key) ? half : 0;
      length -= half;
    }
    return first - chunk.data();
  }
  [[nodiscard]] Iterator position(const FreeBlock& key) const {
    const std::size_t c = chunk_of(key);
    if (c == chunks_.size()) return end();
    return {this, c, static_cast<std::size_t>(place_in(chunks_[c], key))};
  }
  std::vector<Chunk> chunks_;  ///< sorted, one after the other; none is empty
};

}  // namespace ridgeline
