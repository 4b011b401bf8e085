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

  static std::uint64_t order_of(StreamId stream, std::int64_t bytes) {
    return static_cast<std::uint64_t>(stream) << kSizeBits | static_cast<std::uint64_t>(bytes) >> 9;
  }
  FreeBlock(std::uint64_t ordered, Address where, BlockId id) : order(ordered), address(where), block(id) {}
  FreeBlock(StreamId stream, std::int64_t bytes, Address where, BlockId id)
      : FreeBlock(order_of(stream, bytes), where, id) {}
  [[nodiscard]] StreamId stream() const { return static_cast<StreamId>(order >> kSizeBits); }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(order << (64 - kSizeBits) >> (64 - kSizeBits) << 9);
  }

  std::uint64_t order;
  Address address;
  BlockId block;  ///< not part of the order: addresses are unique
};

class FreeBlocks {
  struct Entry {
    Address address;
    BlockId block;
  };
  using OfOneSize = std::vector<Entry>;  ///< the lowest address last, where it is taken from

 public:
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = FreeBlock;
    using difference_type = std::ptrdiff_t;
    using pointer = const FreeBlock*;
    using reference = FreeBlock;
    FreeBlock operator*() const { return {in_->sizes_[size_].order, entry().address, entry().block}; }
    [[nodiscard]] BlockId block() const { return entry().block; }
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
    Iterator(const FreeBlocks* in, std::size_t size, std::size_t at)
        : in_(in), size_(static_cast<std::uint32_t>(size)), at_(static_cast<std::uint32_t>(at)) {}
    [[nodiscard]] const Entry& entry() const { return in_->blocks_at(size_)[at_]; }
    void to_front_of(std::size_t size) { *this = in_->front_of(size); }
    const FreeBlocks* in_;
    std::uint32_t size_, at_;
  };

  void insert(const FreeBlock& free) {
    const std::size_t size = first_from(free.order);
    if (size == sizes_.size() || sizes_[size].order != free.order) return insert_size(size, free);
    OfOneSize& blocks = blocks_at(size);
    const Entry entry{free.address, free.block};
    if (entry.address < blocks.back().address) return blocks.push_back(entry);
    blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(place_in(blocks, free.address)), entry);
  }
  void erase(const FreeBlock& free) { erase(position(free)); }
  void erase(Iterator at) {
    OfOneSize& blocks = blocks_at(at.size_);
    if (at.at_ + 1 == blocks.size()) blocks.pop_back();
    else blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at.at_));
    if (blocks.empty()) erase_size(at.size_);
  }
  /// Erases the block at `at` and inserts another.
  void replace(Iterator at, const FreeBlock& by) {
    OfOneSize& blocks = blocks_at(at.size_);
    const bool stays = blocks.size() == 1 && (at.size_ == 0 || sizes_[at.size_ - 1].order < by.order) &&
                       (at.size_ + 1 == sizes_.size() || by.order < sizes_[at.size_ + 1].order);
    if (stays) {
      sizes_[at.size_].order = by.order;
      blocks.front() = {by.address, by.block};
      return;
    }
    erase(at);
    insert(by);
  }
  void replace(const FreeBlock& free, const FreeBlock& by) { replace(position(free), by); }
  /// The smallest block of `stream` with at least `bytes` (lowest address first); end() where there is none.
  [[nodiscard]] Iterator best_fit(StreamId stream, std::int64_t bytes) const {
    const std::uint64_t order = FreeBlock::order_of(stream, bytes);
    const std::size_t size = first_from(order);
    const bool fits =
        size < sizes_.size() && sizes_[size].order >> FreeBlock::kSizeBits == order >> FreeBlock::kSizeBits;
    return fits ? front_of(size) : end();
  }
  /// The same, or the first one of a later stream.
  [[nodiscard]] Iterator first_of_at_least(StreamId stream, std::int64_t bytes) const {
    return front_of(first_from(FreeBlock::order_of(stream, bytes)));
  }
  [[nodiscard]] Iterator begin() const { return front_of(0); }
  [[nodiscard]] Iterator end() const { return {this, sizes_.size(), 0}; }

 private:
  struct Size {
    std::uint64_t order;  ///< FreeBlock::order
    std::uint32_t list;   ///< entry of `lists_`
  };

  OfOneSize& blocks_at(std::size_t size) { return lists_[sizes_[size].list]; }
  [[nodiscard]] const OfOneSize& blocks_at(std::size_t size) const { return lists_[sizes_[size].list]; }
  [[nodiscard]] Iterator front_of(std::size_t size) const {
    return {this, size, size < sizes_.size() ? blocks_at(size).size() - 1 : 0};
  }

  /// The first of `count` entries for which `is_before` does not hold, as it does for those in front of it: a binary
  /// search without a branch that depends on the data.
  template <class One, class IsBefore>
  static std::size_t first_not(const One* entries, std::size_t count, const IsBefore& is_before) {
    const One* first = entries;
    while (count > 0) {
      const std::size_t half = (count + 1) / 2;
      first += half & (std::size_t{0} - static_cast<std::size_t>(is_before(first[half - 1])));
      count -= half;
    }
    return static_cast<std::size_t>(first - entries);
  }
  /// Place of the smallest size that is not below `order`.
  [[nodiscard]] std::size_t first_from(std::uint64_t order) const {
    return first_not(sizes_.data(), sizes_.size(), [&](const Size& size) { return size.order < order; });
  }
  static std::size_t place_in(const OfOneSize& blocks, Address address) {
    return first_not(blocks.data(), blocks.size(), [&](const Entry& free) { return free.address > address; });
  }
  /// Where a block that is free stands.
  [[nodiscard]] Iterator position(const FreeBlock& free) const {
    const std::size_t size = first_from(free.order);
    const OfOneSize& blocks = blocks_at(size);
    return {this, size, blocks.size() == 1 ? 0 : place_in(blocks, free.address)};
  }
  void insert_size(std::size_t at, const FreeBlock& free) {
    if (empty_.empty()) {
      empty_.push_back(static_cast<std::uint32_t>(lists_.size()));
      lists_.emplace_back();
    }
    const std::uint32_t list = empty_.back();
    empty_.pop_back();
    lists_[list].push_back({free.address, free.block});
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(at), {free.order, list});
  }
  void erase_size(std::size_t at) {
    empty_.push_back(sizes_[at].list);
    sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<Size> sizes_;  ///< those there are, ascending
  std::vector<OfOneSize> lists_;
  std::vector<std::uint32_t> empty_;  ///< entries of `lists_` that stand for no size
};

}  // namespace ridgeline
