// The allocator against a slow and obvious one under random histories: the same addresses, the same counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "sim/allocator/caching_allocator.h"

namespace ridgeline {
namespace {

/// Every block in one list in address order; every question answered by looking at all of them.
class ObviousAllocator {
 public:
  struct Block {
    Address address;
    std::int64_t bytes;
    Address segment;
    StreamId stream;
    bool small, used;
    std::int64_t since = 0;  ///< requests to the pool when it became free
  };

  ObviousAllocator(const AllocatorSettings& settings, DeviceMemory device)
      : settings_(settings), device_(std::move(device)) {}

  /// Address of the block, or 0.
  Address allocate(std::int64_t request, StreamId stream) {
    const std::int64_t bytes = rounded_request(request, settings_);
    const bool small = bytes <= kLargestSmall;
    ++requests_[small];
    auto found = best(bytes, stream, small);
    if (found == blocks_.end()) {
      collect_garbage();
      found = ask_device(bytes, stream, small);
    }
    if (found == blocks_.end() && give_large_back(bytes, stream, small)) found = ask_device(bytes, stream, small);
    if (found == blocks_.end()) {
      give_back();
      found = ask_device(bytes, stream, small);
    }
    if (found == blocks_.end()) return 0;
    Block& block = found->second;
    const std::int64_t rest = block.bytes - bytes;
    const bool splits = small ? rest >= 512 : rest > kLargestSmall && bytes < settings_.max_split_size;
    if (splits) {
      const Address tail = block.address + static_cast<Address>(bytes);
      blocks_.emplace(tail, Block{tail, rest, block.segment, stream, small, false, requests_[small]});
      block.bytes = bytes;
    }
    block.used = true;
    return block.address;
  }

  void free(Address address) {
    const bool small = blocks_.at(address).small;
    blocks_.at(address).used = false;
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      auto next = std::next(it);
      if (next != blocks_.end() && !it->second.used && !next->second.used &&
          it->second.segment == next->second.segment) {
        it->second.bytes += next->second.bytes;
        blocks_.erase(next);
      } else {
        it = next;
      }
    }
    std::prev(blocks_.upper_bound(address))->second.since = requests_[small];
  }

  template <typename Which>
  std::int64_t sum(Which which) const {
    std::int64_t total = 0;
    for (const auto& [address, block] : blocks_) total += which(block) ? block.bytes : 0;
    return total;
  }
  std::int64_t allocated() const {
    return sum([](const Block& b) { return b.used; });
  }
  std::int64_t reserved() const {
    return sum([](const Block&) { return true; });
  }
  std::int64_t inactive_split() const {
    return sum([this](const Block& b) { return !b.used && !whole(b); });
  }

 private:
  using Blocks = std::map<Address, Block>;
  bool whole(const Block& block) const {
    int parts = 0;
    for (const auto& [address, other] : blocks_) parts += other.segment == block.segment;
    return parts == 1;
  }
  Blocks::iterator best(std::int64_t bytes, StreamId stream, bool small) {
    auto best = blocks_.end();
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
      const Block& b = it->second;
      if (b.used || b.small != small || b.stream != stream || b.bytes < bytes) continue;
      if (best == blocks_.end() || b.bytes < best->second.bytes) best = it;
    }
    if (best == blocks_.end()) return best;
    const std::int64_t limit = settings_.max_split_size;
    if (bytes < limit && best->second.bytes >= limit) return blocks_.end();
    if (bytes >= limit && best->second.bytes >= bytes + settings_.max_non_split_rounding) return blocks_.end();
    return best;
  }
  Blocks::iterator ask_device(std::int64_t bytes, StreamId stream, bool small) {
    const std::int64_t size = segment_size(bytes, settings_);
    const bool allowed =
        settings_.memory_fraction <= 0 ||
        static_cast<double>(reserved() + size) <= settings_.memory_fraction * static_cast<double>(device_.capacity());
    const auto address = allowed ? device_.allocate(size) : std::nullopt;
    if (!address) return blocks_.end();
    return blocks_.emplace(*address, Block{*address, size, *address, stream, small, false}).first;
  }
  /// Segments without a block in use, by stream and size: the order in which addresses return matters.
  std::vector<Block> free_segments(bool small) const {
    std::vector<Block> all;
    for (const auto& [address, block] : blocks_)
      if (!block.used && block.small == small && whole(block)) all.push_back(block);
    std::sort(all.begin(), all.end(), [](const Block& a, const Block& b) {
      return std::tie(a.stream, a.bytes, a.address) < std::tie(b.stream, b.bytes, b.address);
    });
    return all;
  }
  void release(const Block& block) {
    device_.release(block.address, block.bytes);
    blocks_.erase(block.address);
  }
  void give_back() {
    for (const bool small : {false, true})
      for (const Block& block : free_segments(small)) release(block);
  }
  /// Large segments that lie unused for at least as long as the others do on average, until what is reserved beyond the
  /// threshold is gone.
  void collect_garbage() {
    if (settings_.memory_fraction <= 0 || settings_.garbage_collection_threshold <= 0) return;
    std::int64_t excess =
        reserved() - static_cast<std::int64_t>(settings_.garbage_collection_threshold * settings_.memory_fraction *
                                               static_cast<double>(device_.capacity()));
    for (bool found = true; found && excess > 0;) {
      found = false;
      const std::vector<Block> candidates = free_segments(false);
      double ages = 0.0;
      for (const Block& block : candidates) ages += static_cast<double>(requests_[false] - block.since);
      for (const Block& block : candidates) {
        const auto age = static_cast<double>(requests_[false] - block.since);
        if (excess <= 0 || age < ages / static_cast<double>(candidates.size())) continue;
        found = true;
        excess -= block.bytes;
        release(block);
      }
    }
  }
  /// Under a limit on splitting: the smallest segment that would have served were it not too large for the request, or
  /// the largest ones that together would.
  bool give_large_back(std::int64_t bytes, StreamId stream, bool small) {
    if (settings_.max_split_size == AllocatorSettings::kUnlimited) return false;
    const std::int64_t wanted = std::max(bytes, settings_.max_split_size);
    std::vector<Block> own = free_segments(small);
    std::erase_if(own, [&](const Block& b) { return b.stream != stream || b.bytes < settings_.max_split_size; });
    for (const Block& block : own) {
      if (block.bytes < wanted) continue;
      release(block);
      return true;
    }
    std::int64_t released = 0;
    for (auto block = own.rbegin(); block != own.rend() && released < wanted; ++block) {
      released += block->bytes;
      release(*block);
    }
    return released >= wanted;
  }

  AllocatorSettings settings_;
  DeviceMemory device_;
  Blocks blocks_;
  std::map<bool, std::int64_t> requests_;  ///< by whether they are small
};

/// Sizes as training steps have them: many tiny, many around the borders of pools and segments, few huge; few
/// different.
std::int64_t random_size(std::mt19937_64& random) {
  static constexpr std::int64_t kTypical[] = {
      8, 512, 4096, 1 << 20, (1 << 20) + 1, 3 << 20, (10 << 20) - 512, 10 << 20, 11 << 20, 48 << 20};
  if (random() % 3 != 0) return kTypical[random() % std::size(kTypical)];
  return 1 + static_cast<std::int64_t>(random() % (std::uint64_t{1} << (random() % 26)));
}

void expect_tiled(const CachingAllocator& allocator) {
  std::int64_t bytes = 0, used = 0;
  Address end_of_last = 0;
  for (const SegmentView& segment : allocator.segments()) {
    ASSERT_GE(segment.address, end_of_last);
    Address next = segment.address;
    bool last_free = false;
    for (const BlockView& block : segment.blocks) {
      ASSERT_EQ(block.address, next) << "blocks tile their segment";
      ASSERT_EQ(block.bytes % kMinBlock, 0);
      const bool is_free = block.state == BlockView::State::free;
      ASSERT_FALSE(is_free && last_free) << "two free neighbours";
      last_free = is_free;
      if (block.state == BlockView::State::allocated) used += block.bytes;
      next += static_cast<Address>(block.bytes);
    }
    bytes += segment.bytes;
    end_of_last = next;
  }
  ASSERT_EQ(bytes, allocator.statistics().all.reserved_bytes.current);
  ASSERT_EQ(used, allocator.statistics().all.allocated_bytes.current);
  const AllocatorStatistics& s = allocator.statistics();
  ASSERT_EQ(s.of(PoolKind::small).reserved_bytes.current + s.of(PoolKind::large).reserved_bytes.current, bytes);
  ASSERT_EQ(s.of(PoolKind::small).allocated_bytes.current + s.of(PoolKind::large).allocated_bytes.current, used);
  ASSERT_LE(s.all.requested_bytes.current, s.all.active_bytes.current);
}

class RandomHistory : public testing::TestWithParam<int> {
 protected:
  void run(const AllocatorSettings& settings, std::int64_t capacity, bool compare) {
    std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()) * 7919);
    CachingAllocator allocator(settings, DeviceMemory(capacity));
    ObviousAllocator obvious(settings, DeviceMemory(capacity));
    std::vector<std::pair<BlockId, Address>> live;
    const std::uint64_t wanted = 20 + random() % 120;
    for (int i = 0; i < 2500; ++i) {
      if (live.empty() || random() % wanted > live.size()) {
        const std::int64_t bytes = random_size(random);
        const auto stream = static_cast<StreamId>(random() % 8 == 0);
        const BlockId block = allocator.allocate(bytes, stream);
        if (compare) {
          const Address address = obvious.allocate(bytes, stream);
          ASSERT_EQ(block == kNoBlock ? 0 : allocator.address_of(block), address) << "request " << i << " of " << bytes;
        }
        if (block != kNoBlock) live.emplace_back(block, allocator.address_of(block));
      } else {
        const std::size_t which = random() % live.size();
        ASSERT_EQ(allocator.address_of(live[which].first), live[which].second) << "a block moved";
        allocator.free(live[which].first);
        if (compare) obvious.free(live[which].second);
        live[which] = live.back();
        live.pop_back();
      }
      if (compare) {
        ASSERT_EQ(allocator.statistics().all.allocated_bytes.current, obvious.allocated());
        ASSERT_EQ(allocator.statistics().all.reserved_bytes.current, obvious.reserved());
        ASSERT_EQ(allocator.statistics().all.inactive_split_bytes.current, obvious.inactive_split());
      }
      if (i % 16 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_tiled(allocator));
      }
    }
    for (const auto& [block, address] : live) allocator.free(block);
    allocator.empty_cache();
    EXPECT_EQ(allocator.statistics().all.reserved_bytes.current, 0);
    EXPECT_EQ(allocator.device().used(), 0);
    EXPECT_EQ(allocator.statistics().all.inactive_split_bytes.current, 0);
    EXPECT_EQ(allocator.statistics().all.active_bytes.current, 0);
  }
};

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

TEST_P(RandomHistory, agrees_with_the_obvious_allocator) { run({}, kPlenty, true); }
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_on_a_device_too_small) {
  run({}, std::int64_t{300} << 20, true);
}
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_when_sizes_round_to_eighths_of_powers_of_two) {
  run(AllocatorSettings::parse("roundup_power2_divisions:8,large_segment_size_mb:12"), kPlenty, true);
}
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_under_a_split_limit) {
  run(AllocatorSettings::parse("max_split_size_mb:24"), kPlenty, true);
}
TEST_P(RandomHistory, holds_its_promises_with_expandable_segments) {
  run(AllocatorSettings::parse("expandable_segments:True"), kPlenty, false);
}
TEST_P(RandomHistory, holds_its_promises_with_expandable_segments_on_a_device_too_small) {
  run(AllocatorSettings::parse("expandable_segments:True"), std::int64_t{300} << 20, false);
}
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_that_may_take_a_share_of_the_device) {
  run(AllocatorSettings::parse("per_process_memory_fraction:0.7"), std::int64_t{500} << 20, true);
}
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_under_a_split_limit_on_a_device_too_small) {
  run(AllocatorSettings::parse("max_split_size_mb:24"), std::int64_t{400} << 20, true);
}
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_that_collects_garbage) {
  run(AllocatorSettings::parse("garbage_collection_threshold:0.6,per_process_memory_fraction:0.9"),
      std::int64_t{500} << 20, true);
}
TEST_P(RandomHistory, agrees_with_the_obvious_allocator_that_collects_garbage_under_a_split_limit) {
  run(AllocatorSettings::parse("garbage_collection_threshold:0.6,per_process_memory_fraction:0.9,max_split_size_mb:30"),
      std::int64_t{500} << 20, true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHistory, testing::Range(1, 9));

}  // namespace
}  // namespace ridgeline
