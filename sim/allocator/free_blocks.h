// The free blocks of one pool in the order best fit needs: stream, then size, then address.
//
// A sorted list of sizes, and for each its blocks by address: equal layers leave many blocks of few sizes, so that a
// search looks at some dozen words (bench/allocator_bench.cpp), and at none where a size that is asked for, or of a
// block that comes back, was met shortly before. A block alone of its size, as the rest of a large one that is split
// again and again is, changes its size where it stands. Short functions of every event are inlined by order: in a file
// as large as those of a unity build the compiler leaves many as they are.
#pragma once

#include <array>
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
  using Entries = std::vector<Entry>;  ///< the lowest address last, where it is taken from

 public:
  using ListId = std::uint32_t;  ///< names the blocks of one size, as long as there are any

  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = FreeBlock;
    using difference_type = std::ptrdiff_t;
    using pointer = const FreeBlock*;
    using reference = FreeBlock;
    FreeBlock operator*() const { return {in_->lists_[list_].order, entry().address, entry().block}; }
    [[nodiscard]] BlockId block() const { return entry().block; }
    Iterator& operator++() {
      if (at_ > 0) --at_;
      else *this = in_->front_of(in_->place_of(list_) + 1);
      return *this;
    }
    Iterator& operator--() {
      if (list_ != kNoList && at_ + 1 < in_->lists_[list_].blocks.size()) ++at_;
      else *this = {in_, in_->sizes_[(list_ != kNoList ? in_->place_of(list_) : in_->sizes_.size()) - 1].list, 0};
      return *this;
    }
    bool operator==(const Iterator& other) const { return list_ == other.list_ && at_ == other.at_; }

   private:
    friend class FreeBlocks;
    Iterator(const FreeBlocks* in, ListId list, std::size_t at)
        : in_(in), list_(list), at_(static_cast<std::uint32_t>(at)) {}
    [[nodiscard]] const Entry& entry() const { return in_->lists_[list_].blocks[at_]; }
    const FreeBlocks* in_;
    ListId list_;
    std::uint32_t at_;
  };

  /// Returns the list that it now stands in, as replace() does.
  [[gnu::always_inline]] ListId insert(const FreeBlock& free) {
    const ListId list = list_of(free.order);
    add(lists_[list].blocks, {free.address, free.block});
    return list;
  }
  void erase(const FreeBlock& free) { erase(position(free)); }
  [[gnu::always_inline]] void erase(Iterator at) {
    Entries& blocks = lists_[at.list_].blocks;
    if (blocks.size() == 1) erase_list(at.list_);
    else if (at.at_ + 1 == blocks.size()) blocks.pop_back();
    else blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at.at_));
  }
  /// Erases the block at `at` and inserts another.
  [[gnu::always_inline]] ListId replace(Iterator at, const FreeBlock& by) {
    OfOneSize& one = lists_[at.list_];
    if (one.blocks.size() == 1) {
      const std::size_t place = place_of(at.list_);
      const bool stays = (place == 0 || sizes_[place - 1].order < by.order) &&
                         (place + 1 == sizes_.size() || by.order < sizes_[place + 1].order);
      if (stays) {
        sizes_[place].order = one.order = by.order;
        one.blocks.front() = {by.address, by.block};
        return at.list_;
      }
    }
    erase(at);
    return insert(by);
  }
  ListId replace(const FreeBlock& free, const FreeBlock& by) { return replace(position(free), by); }
  /// Where a block that is free stands; quicker where its list is known.
  [[nodiscard]] Iterator position(const FreeBlock& free) const {
    return position(free.address, sizes_[first_from(free.order)].list);
  }
  [[gnu::always_inline]] [[nodiscard]] Iterator position(Address address, ListId list) const {
    const Entries& blocks = lists_[list].blocks;
    return {this, list, blocks.size() == 1 ? 0 : place_in(blocks, address)};
  }
  /// The smallest block of `stream` with at least `bytes` (lowest address first); end() where there is none.
  [[gnu::always_inline]] [[nodiscard]] Iterator best_fit(StreamId stream, std::int64_t bytes) const {
    const std::uint64_t order = FreeBlock::order_of(stream, bytes);
    ListId& known = known_[slot_of(order)];
    if (serves(known, order)) return front_of_list(known);
    const std::size_t size = first_from(order);
    const bool fits =
        size < sizes_.size() && sizes_[size].order >> FreeBlock::kSizeBits == order >> FreeBlock::kSizeBits;
    if (!fits) return end();
    known = sizes_[size].list;
    lists_[known].place = static_cast<std::uint32_t>(size);
    return front_of_list(known);
  }
  /// The same, or the first one of a later stream.
  [[nodiscard]] Iterator first_of_at_least(StreamId stream, std::int64_t bytes) const {
    return front_of(first_from(FreeBlock::order_of(stream, bytes)));
  }
  [[nodiscard]] Iterator begin() const { return front_of(0); }
  [[nodiscard]] Iterator end() const { return {this, kNoList, 0}; }

 private:
  struct Size {
    std::uint64_t order;  ///< FreeBlock::order
    ListId list;          ///< entry of `lists_`
  };
  struct OfOneSize {
    Entries blocks;
    std::uint64_t order = kNoOrder;   ///< FreeBlock::order; kNoOrder: the list stands for no size
    mutable std::uint32_t place = 0;  ///< where it stood in `sizes_` when that was asked last
  };
  static constexpr std::uint64_t kNoOrder = ~std::uint64_t{0};
  static constexpr ListId kNoList = 0;
  static constexpr std::size_t kKnown = 64;

  [[nodiscard]] Iterator front_of_list(ListId list) const { return {this, list, lists_[list].blocks.size() - 1}; }
  [[nodiscard]] Iterator front_of(std::size_t size) const {
    return size < sizes_.size() ? front_of_list(sizes_[size].list) : end();
  }
  /// Its blocks are the smallest of at least that size.
  [[nodiscard]] bool serves(ListId list, std::uint64_t order) const {
    const std::size_t place = lists_[list].place;
    return place < sizes_.size() && sizes_[place].list == list && sizes_[place].order >= order &&
           sizes_[place].order >> FreeBlock::kSizeBits == order >> FreeBlock::kSizeBits &&
           (place == 0 || sizes_[place - 1].order < order);
  }
  static std::size_t slot_of(std::uint64_t order) { return order * 0x9e3779b97f4a7c15u >> 58; }
  /// Where a list stands in `sizes_`.
  [[gnu::always_inline]] [[nodiscard]] std::size_t place_of(ListId list) const {
    const OfOneSize& one = lists_[list];
    if (one.place >= sizes_.size() || sizes_[one.place].list != list)
      one.place = static_cast<std::uint32_t>(first_from(one.order));
    return one.place;
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
  static std::size_t place_in(const Entries& blocks, Address address) {
    return first_not(blocks.data(), blocks.size(), [&](const Entry& free) { return free.address > address; });
  }
  [[gnu::always_inline]] static void add(Entries& blocks, const Entry& entry) {
    if (blocks.empty() || entry.address < blocks.back().address) blocks.push_back(entry);
    else blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(place_in(blocks, entry.address)), entry);
  }
  /// The list of a size, empty where there was none.
  [[gnu::always_inline]] ListId list_of(std::uint64_t order) {
    ListId& known = known_[slot_of(order)];
    if (lists_[known].order == order) return known;
    const std::size_t size = first_from(order);
    if (size == sizes_.size() || sizes_[size].order != order) make_list(size, order);
    return known = sizes_[size].list;
  }
  void make_list(std::size_t at, std::uint64_t order) {
    if (empty_.empty()) {
      empty_.push_back(static_cast<ListId>(lists_.size()));
      lists_.emplace_back();
    }
    const ListId list = empty_.back();
    empty_.pop_back();
    lists_[list].order = order;
    lists_[list].place = static_cast<std::uint32_t>(at);
    sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(at), {order, list});
  }
  /// With the last block in it.
  void erase_list(ListId list) {
    sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(place_of(list)));
    lists_[list].blocks.clear();
    lists_[list].order = kNoOrder;
    empty_.push_back(list);
  }

  std::vector<Size> sizes_;                                   ///< those there are, ascending
  std::vector<OfOneSize> lists_ = std::vector<OfOneSize>(1);  ///< the first is kNoList
  std::vector<ListId> empty_;                                 ///< entries of `lists_` that stand for no size
  mutable std::array<ListId, kKnown> known_{};                ///< lists of sizes met lately, by slot_of()
};

}  // namespace ridgeline
