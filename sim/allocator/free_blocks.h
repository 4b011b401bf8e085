// The free blocks of one pool in the order best fit needs: stream, then size, then address.
//
// A sorted list of sizes, and for each its blocks by address: equal layers leave many blocks of few sizes, so that a
// search looks at some dozen words (bench/allocator_bench.cpp). A block alone of its size, as the rest of a large one
// that is split again and again is, changes its size where it stands.
#pragma once

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
    const FreeBlock& operator*() const { return in_->blocks_at(size_)[at_]; }
    const FreeBlock* operator->() const { return &**this; }
    Iterator& operator++() {
      if (at_ > 0) --at_;
      else to_front_of(size_ + 1);
      return *this;
    }
    Iterator& operator--() {
      if (size_ < in_->sizes_.size() && at_ + 1 < in_->blocks_at(size_).size()) ++at_;
      else --size_, at_ = 0;
      return *this;
    }
    bool operator==(const Iterator& other) const { return size_ == other.size_ && at_ == other.at_; }

   private:
    friend class FreeBlocks;
    Iterator(const FreeBlocks* in, std::size_t size, std::size_t at) : in_(in), size_(size), at_(at) {}
    void to_front_of(std::size_t size) {
      size_ = size;
      at_ = size < in_->sizes_.size() ? in_->blocks_at(size).size() - 1 : 0;
    }
    const FreeBlocks* in_;
    std::size_t size_, at_;
  };

  void insert(const FreeBlock& free) {
    const std::size_t size = first_from(free.order);
    if (size == sizes_.size() || sizes_[size] != free.order) return insert_size(size, free);
    OfOneSize& blocks = blocks_at(size);
    blocks.insert(blocks.begin() + place_in(blocks, free.address), free);
  }
  void erase(const FreeBlock& free) { erase(position(free)); }
  void erase(Iterator at) {
    OfOneSize& blocks = blocks_at(at.size_);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at.at_));
    if (!blocks.empty()) return;
    empty_.push_back(list_[at.size_]);
    list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(at.size_));
    sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(at.size_));
  }
  /// Erases the block at `at` and inserts another.
  void replace(Iterator at, const FreeBlock& by) {
    OfOneSize& blocks = blocks_at(at.size_);
    const bool stays = blocks.size() == 1 && (at.size_ == 0 || sizes_[at.size_ - 1] < by.order) &&
                       (at.size_ + 1 == sizes_.size() || by.order < sizes_[at.size_ + 1]);
    if (stays) {
      sizes_[at.size_] = by.order;
      blocks.front() = by;
      return;
    }
    erase(at);
    insert(by);
  }
  void replace(const FreeBlock& free, const FreeBlock& by) { replace(position(free), by); }
  /// The smallest block of `stream` with at least `bytes` (lowest address first), or the first one of a later stream.
  [[nodiscard]] Iterator best_fit(StreamId stream, std::int64_t bytes) const {
    Iterator fit = end();
    fit.to_front_of(first_from(FreeBlock(stream, bytes, 0, kNoBlock).order));
    return fit;
  }
  [[nodiscard]] Iterator begin() const {
    Iterator first = end();
    first.to_front_of(0);
    return first;
  }
  [[nodiscard]] Iterator end() const { return {this, sizes_.size(), 0}; }

 private:
  using OfOneSize = std::vector<FreeBlock>;  ///< the lowest address last, where it is taken from

  OfOneSize& blocks_at(std::size_t size) { return lists_[list_[size]]; }
  [[nodiscard]] const OfOneSize& blocks_at(std::size_t size) const { return lists_[list_[size]]; }

  /// The first of `count` entries for which `is_before` does not hold, as it does for those in front of it: a binary
  /// search without a branch that depends on the data.
  template <class Entry, class IsBefore>
  static std::size_t first_not(const Entry* entries, std::size_t count, const IsBefore& is_before) {
    const Entry* first = entries;
    while (count > 0) {
      const std::size_t half = (count + 1) / 2;
      first += is_before(first[half - 1]) ? half : 0;
      count -= half;
    }
    return static_cast<std::size_t>(first - entries);
  }
  /// Place of the smallest size that is not below `order`.
  [[nodiscard]] std::size_t first_from(std::uint64_t order) const {
    return first_not(sizes_.data(), sizes_.size(), [&](std::uint64_t size) { return size < order; });
  }
  static std::ptrdiff_t place_in(const OfOneSize& blocks, Address address) {
    return static_cast<std::ptrdiff_t>(
        first_not(blocks.data(), blocks.size(), [&](const FreeBlock& free) { return free.address > address; }));
  }
  /// Where a block that is free stands.
  [[nodiscard]] Iterator position(const FreeBlock& free) const {
    const std::size_t size = first_from(free.order);
    return {this, size, static_cast<std::size_t>(place_in(blocks_at(size), free.address))};
  }
  void insert_size(std::size_t at, const FreeBlock& free) {
    if (empty_.empty()) {
      empty_.push_back(static_cast<std::uint32_t>(lists_.size()));
      lists_.emplace_back();
    }
    const std::uint32_t list = empty_.back();
    empty_.pop_back();
    lists_[list].push_back(free);
    list_.insert(list_.begin() + static_cast<std::ptrdiff_t>(at), list);
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(at), free.order);
  }

  std::vector<std::uint64_t> sizes_;  ///< FreeBlock::order of those there are, ascending
  std::vector<std::uint32_t> list_;   ///< entry of `lists_` by place in `sizes_`
  std::vector<OfOneSize> lists_;
  std::vector<std::uint32_t> empty_;  ///< entries of `lists_` that stand for no size
};

}  // namespace ridgeline
