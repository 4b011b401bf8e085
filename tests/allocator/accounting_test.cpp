// What the allocator counts against what its segments show, after every request of random histories: all counters and
// their peaks, what it asked of the device, and the same memory taken over by another allocator.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "sim/allocator/caching_allocator.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

/// The counters in the order of PoolStatistics.
using Counts = std::array<std::int64_t, 9>;
Counts currents(const PoolStatistics& s) {
  return {s.allocation.current,     s.allocated_bytes.current, s.active.current,         s.active_bytes.current,
          s.segment.current,        s.reserved_bytes.current,  s.inactive_split.current, s.inactive_split_bytes.current,
          s.requested_bytes.current};
}
Counts peaks(const PoolStatistics& s) {
  return {s.allocation.peak,     s.allocated_bytes.peak, s.active.peak,         s.active_bytes.peak,
          s.segment.peak,        s.reserved_bytes.peak,  s.inactive_split.peak, s.inactive_split_bytes.peak,
          s.requested_bytes.peak};
}

/// The same, counted block by block.
Counts counted(const std::vector<SegmentView>& segments, std::optional<PoolKind> pool) {
  Counts counts{};
  for (const SegmentView& segment : segments) {
    if (pool && segment.pool != *pool) continue;
    counts[4] += segment.expandable ? 0 : 1;
    counts[5] += segment.bytes;
    for (const BlockView& block : segment.blocks) {
      const bool allocated = block.state == BlockView::State::allocated;
      const bool active = allocated || block.state == BlockView::State::pending_free;
      const bool split = block.state == BlockView::State::free && segment.blocks.size() > 1 && !segment.expandable;
      counts[0] += allocated;
      counts[1] += allocated ? block.bytes : 0;
      counts[2] += active;
      counts[3] += active ? block.bytes : 0;
      counts[6] += split;
      counts[7] += split ? block.bytes : 0;
      counts[8] += active ? block.requested : 0;
    }
  }
  return counts;
}

/// Pages of 2 MiB that segments have.
std::set<Address> pages_of(const std::vector<SegmentView>& segments) {
  std::set<Address> pages;
  for (const SegmentView& segment : segments)
    for (const BlockView& block : segment.blocks)
      if (block.state != BlockView::State::unmapped)
        for (Address page = block.address / DeviceMemory::kPage;
             page * DeviceMemory::kPage < block.address + static_cast<Address>(block.bytes); ++page)
          pages.insert(page);
  return pages;
}
/// … and those that the device was asked for.
std::set<Address> pages_of(const std::vector<SegmentEvent>& events) {
  std::set<Address> pages;
  for (const SegmentEvent& event : events) {
    const bool taken = event.kind == SegmentEvent::Kind::allocate || event.kind == SegmentEvent::Kind::map;
    const Address first = event.address / DeviceMemory::kPage;
    for (Address page = first; page < first + static_cast<Address>(event.bytes / DeviceMemory::kPage); ++page)
      EXPECT_TRUE(taken ? pages.insert(page).second : pages.erase(page) == 1) << "a page is taken once, then returned";
  }
  return pages;
}

/// Mapped stretches of a segment, as a recorded snapshot lists them.
std::vector<SegmentView> mapped_stretches(const SegmentView& segment) {
  std::vector<SegmentView> stretches;
  bool goes_on = false;
  for (const BlockView& block : segment.blocks) {
    const bool mapped = block.state != BlockView::State::unmapped;
    if (mapped && !goes_on)
      stretches.push_back({block.address, 0, segment.pool, segment.stream, segment.expandable, {}});
    if (mapped) {
      stretches.back().bytes += block.bytes;
      stretches.back().blocks.push_back(block);
    }
    goes_on = mapped;
  }
  return stretches;
}

/// Every block with memory: its place, its bytes, those that were asked for and its state.
using MappedBlock = std::tuple<Address, std::int64_t, std::int64_t, BlockView::State>;
std::vector<MappedBlock> mapped_blocks(const CachingAllocator& allocator) {
  std::vector<MappedBlock> blocks;
  for (const SegmentView& segment : allocator.segments())
    for (const SegmentView& stretch : mapped_stretches(segment))
      for (const BlockView& b : stretch.blocks) blocks.emplace_back(b.address, b.bytes, b.requested, b.state);
  return blocks;
}

class Accounting : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { allocator_ = std::make_unique<CachingAllocator>(settings_, DeviceMemory(kCapacity)); }

  void play(int requests) {
    for (int i = 0; i < requests; ++i) {
      const auto what = random_() % 16;
      if (what == 0 && random_() % 8 == 0) allocator_->complete_events();
      else if (what == 1 && random_() % 32 == 0) allocator_->empty_cache();
      else if (live_.empty() || (what < 9 && live_.size() < 60)) allocate();
      else free_one();
      ASSERT_NO_FATAL_FAILURE(look());
    }
  }
  void allocate() {
    static constexpr std::int64_t kTypical[] = {
        8, 4096, 700 * 1024, kMebibyte, 3 * kMebibyte, 10 * kMebibyte, 21 * kMebibyte, 48 * kMebibyte};
    const std::int64_t bytes = kTypical[random_() % std::size(kTypical)] + static_cast<std::int64_t>(random_() % 600);
    const auto stream = static_cast<StreamId>(random_() % 5 == 0);
    const BlockId block = allocator_->allocate(bytes, stream);
    if (block == kNoBlock) return;
    if (random_() % 6 == 0) allocator_->record_stream(block, 1 - stream);
    live_.push_back(block);
  }
  void free_one() {
    const std::size_t which = random_() % live_.size();
    allocator_->free(live_[which]);
    live_[which] = live_.back();
    live_.pop_back();
  }
  void look() {
    const std::vector<SegmentView> segments = allocator_->segments();
    const AllocatorStatistics& s = allocator_->statistics();
    const std::pair<const PoolStatistics*, std::optional<PoolKind>> all[] = {
        {&s.all, {}}, {&s.of(PoolKind::small), PoolKind::small}, {&s.of(PoolKind::large), PoolKind::large}};
    for (std::size_t i = 0; i < std::size(all); ++i)
      ASSERT_EQ(currents(*all[i].first), counted(segments, all[i].second)) << "pool " << i;
    ASSERT_EQ(allocator_->device().used(), s.all.reserved_bytes.current);
  }

  static constexpr std::int64_t kCapacity = 700 * kMebibyte;
  AllocatorSettings settings_ = AllocatorSettings::parse(GetParam());
  std::unique_ptr<CachingAllocator> allocator_;
  std::mt19937_64 random_{11};
  std::vector<BlockId> live_;
};

TEST_P(Accounting, CountersAreWhatTheBlocksAddUpTo) { play(1500); }

// Between two requests a counter can only be higher in the middle of one: where cached memory goes back before more is
// taken.
TEST_P(Accounting, PeaksAreTheHighestCounts) {
  std::array<Counts, 3> highest{};
  for (int i = 0; i < 400; ++i) {
    if (i == 200) {
      allocator_->reset_peaks();
      highest = {};
    }
    const auto raise = [&] {
      const AllocatorStatistics& s = allocator_->statistics();
      const PoolStatistics* pools[] = {&s.all, &s.of(PoolKind::small), &s.of(PoolKind::large)};
      for (std::size_t pool = 0; pool < 3; ++pool) {
        const Counts now = currents(*pools[pool]), peak = peaks(*pools[pool]);
        for (std::size_t counter = 0; counter < now.size(); ++counter) {
          highest[pool][counter] = std::max(highest[pool][counter], now[counter]);
          const bool of_free_blocks = counter == 6 || counter == 7;  // which a merge takes and gives back
          if (of_free_blocks) ASSERT_GE(peak[counter], highest[pool][counter]) << pool << ' ' << counter;
          else ASSERT_EQ(peak[counter], highest[pool][counter]) << pool << ' ' << counter;
        }
      }
    };
    raise();
    if (live_.empty() || random_() % 100 < 55) allocate();
    else free_one();
    raise();
  }
}

TEST_P(Accounting, TheDeviceWasAskedForWhatTheSegmentsHave) {
  for (int i = 0; i < 40; ++i) {
    play(30);
    ASSERT_EQ(pages_of(allocator_->segment_events()), pages_of(allocator_->segments()));
  }
  std::int64_t taken = 0, returned = 0;
  for (const SegmentEvent& event : allocator_->segment_events()) {
    const bool takes = event.kind == SegmentEvent::Kind::allocate || event.kind == SegmentEvent::Kind::map;
    ++(takes ? taken : returned);
  }
  EXPECT_EQ(allocator_->statistics().device_allocations, taken);
  EXPECT_EQ(allocator_->statistics().device_frees, returned);
}

TEST_P(Accounting, AnotherAllocatorTakesOverWhatIsThere) {
  for (int round = 0; round < 30; ++round) {
    play(40);
    CachingAllocator other(settings_, DeviceMemory(kCapacity));
    std::map<Address, BlockId> taken_over;
    for (const SegmentView& segment : allocator_->segments()) {
      const std::vector<SegmentView> stretches = mapped_stretches(segment);
      const auto used = other.adopt(stretches);
      ASSERT_TRUE(used.has_value());
      for (const BlockId block : *used) ASSERT_TRUE(taken_over.emplace(other.address_of(block), block).second);
    }
    ASSERT_EQ(mapped_blocks(other), mapped_blocks(*allocator_));
    ASSERT_EQ(currents(other.statistics().all), currents(allocator_->statistics().all));
    for (const PoolKind pool : {PoolKind::small, PoolKind::large})
      ASSERT_EQ(currents(other.statistics().of(pool)), currents(allocator_->statistics().of(pool)));
    ASSERT_EQ(other.device().used(), allocator_->device().used());
    // Both give the same blocks up and merge the same neighbours.
    allocator_->complete_events();
    for (const auto& taken : taken_over) {
      const bool alive = std::any_of(live_.begin(), live_.end(),
                                     [&](BlockId own) { return allocator_->address_of(own) == taken.first; });
      if (!alive) other.complete_free(taken.second);
    }
    ASSERT_EQ(mapped_blocks(other), mapped_blocks(*allocator_));
    while (live_.size() > 20) {
      other.free(taken_over.at(allocator_->address_of(live_.back())));
      allocator_->free(live_.back());
      live_.pop_back();
      allocator_->complete_events();
      ASSERT_EQ(mapped_blocks(other), mapped_blocks(*allocator_));
    }
  }
}

TEST_P(Accounting, OnlyASegmentWithoutABlockInUseCanBeGivenBack) {
  for (int round = 0; round < 20; ++round) {
    play(40);
    for (const SegmentView& segment : allocator_->segments()) {
      const std::size_t before = allocator_->segments().size();
      const bool free =
          !segment.expandable && segment.blocks.size() == 1 && segment.blocks.front().state == BlockView::State::free;
      for (const BlockView& block : segment.blocks)
        if (block.address != segment.address) {
          EXPECT_FALSE(allocator_->release_free_segment(block.address));
        }
      EXPECT_EQ(allocator_->release_free_segment(segment.address), free);
      EXPECT_EQ(allocator_->segments().size(), before - (free ? 1 : 0));
      ASSERT_NO_FATAL_FAILURE(look());
    }
  }
}

TEST_P(Accounting, NothingIsTakenOverThatTheDeviceHasNoRoomFor) {
  play(200);
  CachingAllocator other(settings_, DeviceMemory(allocator_->statistics().all.reserved_bytes.current - 1));
  bool all = true;
  for (const SegmentView& segment : allocator_->segments()) all = all && other.adopt(mapped_stretches(segment));
  EXPECT_FALSE(all);
}

INSTANTIATE_TEST_SUITE_P(Settings, Accounting,
                         ::testing::Values("", "expandable_segments:True", "max_split_size_mb:24",
                                           "garbage_collection_threshold:0.5,per_process_memory_fraction:0.8",
                                           "expandable_segments:True,large_segment_size_mb:10",
                                           "roundup_power2_divisions:4"));

}  // namespace
}  // namespace ridgeline
