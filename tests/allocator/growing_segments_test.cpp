// Expandable segments against a slow and obvious allocator that keeps a flag a page and a list of what is in use: the
// same addresses under random histories, with room and without.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "sim/allocator/caching_allocator.h"

namespace ridgeline {
namespace {

/// One range of addresses of a pool and stream. Everything is looked for from the start.
struct GrowingSegment {
  Address address = 0;
  std::int64_t page = 0;
  std::vector<bool> mapped;                   ///< by page
  std::map<std::int64_t, std::int64_t> used;  ///< bytes by offset

  struct Stretch {
    std::int64_t begin, end;
    bool mapped, used;
    [[nodiscard]] std::int64_t bytes() const { return end - begin; }
  };
  /// The segment from its first to its last byte: what is in use, and between it free stretches with memory or without.
  [[nodiscard]] std::vector<Stretch> stretches() const {
    std::vector<Stretch> all;
    const auto end = static_cast<std::int64_t>(mapped.size()) * page;
    const auto add_free = [&](std::int64_t from, std::int64_t to) {
      while (from < to) {
        const auto first = static_cast<std::size_t>(from / page);
        std::size_t next = first;
        while (next < mapped.size() && mapped[next] == mapped[first]) ++next;
        const std::int64_t until = std::min(to, static_cast<std::int64_t>(next) * page);
        all.push_back({from, until, mapped[first], false});
        from = until;
      }
    };
    std::int64_t at = 0;
    for (const auto& [offset, bytes] : used) {
      add_free(at, offset);
      all.push_back({offset, offset + bytes, true, true});
      at = offset + bytes;
    }
    add_free(at, end);
    return all;
  }
};

class ObviousGrowingAllocator {
 public:
  ObviousGrowingAllocator(const AllocatorSettings& settings, DeviceMemory device)
      : settings_(settings), device_(std::move(device)) {}

  /// Address of the block, or 0.
  Address allocate(std::int64_t request, StreamId stream) {
    const std::int64_t bytes = rounded_request(request, settings_);
    const Key key{bytes <= kLargestSmall, stream};
    if (const auto found = best_fit(key, bytes)) return take(*found, bytes);
    for (const bool again : {false, true}) {
      if (again) give_back();
      if (const auto grown = grow(key, bytes)) return take(*grown, bytes);
    }
    return 0;
  }
  void free(Address address) {
    for (auto& [key, segment] : segments_)
      if (address >= segment.address && segment.used.erase(static_cast<std::int64_t>(address - segment.address)) == 1)
        return;
    FAIL() << "an address that is not in use";
  }
  [[nodiscard]] std::int64_t reserved() const {
    std::int64_t bytes = 0;
    for (const auto& [key, segment] : segments_)
      bytes += segment.page * std::count(segment.mapped.begin(), segment.mapped.end(), true);
    return bytes;
  }

 private:
  using Key = std::pair<bool, StreamId>;
  struct Place {
    GrowingSegment* segment;
    std::int64_t offset;
  };

  static Address take(Place place, std::int64_t bytes) {
    place.segment->used[place.offset] = bytes;
    return place.segment->address + static_cast<Address>(place.offset);
  }
  /// The smallest that is large enough, the lowest of equals; of one that can grow at its end counts what it can grow
  /// by, as long as the next one then has less.
  std::optional<Place> best_fit(const Key& key, std::int64_t bytes) {
    struct Fitting {
      std::int64_t bytes, with_room;
      Place place;
    };
    std::map<std::pair<std::int64_t, Address>, Fitting> fitting;
    const auto [begin, end] = segments_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      const auto all = it->second.stretches();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].used || !all[i].mapped || all[i].bytes() < bytes) continue;
        const std::int64_t more = i + 1 < all.size() && !all[i + 1].mapped ? all[i + 1].bytes() : 0;
        fitting[{all[i].bytes(), it->second.address + static_cast<Address>(all[i].begin)}] = {
            all[i].bytes(), all[i].bytes() + more, {&it->second, all[i].begin}};
      }
    }
    if (fitting.empty()) return std::nullopt;
    auto best = fitting.begin();
    while (std::next(best) != fitting.end() && std::next(best)->second.with_room < best->second.with_room) ++best;
    return best->second.place;
  }
  /// Puts memory behind the smallest gap in whose place, with what is free around it, the request has room.
  std::optional<Place> grow(const Key& key, std::int64_t bytes) {
    struct Gap {
      GrowingSegment* segment;
      std::size_t place;
    };
    std::map<std::pair<std::int64_t, Address>, Gap> gaps;
    const auto [begin, end] = segments_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      const auto all = it->second.stretches();
      for (std::size_t i = 0; i < all.size(); ++i)
        if (!all[i].mapped)
          gaps[{all[i].bytes(), it->second.address + static_cast<Address>(all[i].begin)}] = {&it->second, i};
    }
    for (const auto& [size, gap] : gaps) {
      const auto all = gap.segment->stretches();
      const std::size_t first = gap.place > 0 && !all[gap.place - 1].used ? gap.place - 1 : gap.place;
      std::size_t last = first;
      while (last < all.size() && !all[last].used && all[last].end - all[first].begin < bytes) ++last;
      if (last < all.size() && !all[last].used) return put_memory(*gap.segment, all[first].begin, bytes);
    }
    GrowingSegment& fresh = segments_.emplace(key, GrowingSegment{})->second;
    fresh.page = key.first ? kSmallSegment : settings_.large_segment_size;
    const std::int64_t pages = (device_.capacity() / 8 * 9 + fresh.page - 1) / fresh.page;
    fresh.mapped.assign(static_cast<std::size_t>(pages), false);
    fresh.address = device_.reserve_addresses(pages * fresh.page);
    return put_memory(fresh, 0, bytes);
  }
  /// Each gap from `begin` on gets all the pages that it needs, or none of them.
  std::optional<Place> put_memory(GrowingSegment& segment, std::int64_t begin, std::int64_t bytes) {
    for (const auto& gap : segment.stretches()) {
      if (gap.mapped || gap.end <= begin || gap.begin >= begin + bytes) continue;
      const std::int64_t from = gap.begin / segment.page,
                         to = (std::min(gap.end, begin + bytes) + segment.page - 1) / segment.page;
      if (!device_.map((to - from) * segment.page)) return std::nullopt;
      std::fill(segment.mapped.begin() + from, segment.mapped.begin() + to, true);
    }
    return Place{&segment, begin};
  }
  /// Pages of which nothing is in use.
  void give_back() {
    for (auto& [key, segment] : segments_)
      for (std::size_t page = 0; page < segment.mapped.size(); ++page) {
        const auto begin = static_cast<std::int64_t>(page) * segment.page, end = begin + segment.page;
        const bool in_use = std::any_of(segment.used.begin(), segment.used.end(), [&](const auto& one) {
          return one.first < end && one.first + one.second > begin;
        });
        if (!segment.mapped[page] || in_use) continue;
        segment.mapped[page] = false;
        device_.unmap(segment.page);
      }
  }

  AllocatorSettings settings_;
  DeviceMemory device_;
  std::multimap<Key, GrowingSegment> segments_;
};

class GrowingSegments : public ::testing::TestWithParam<int> {
 protected:
  void run(const char* settings_text, std::int64_t capacity) {
    std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()) * 104729);
    const AllocatorSettings settings = AllocatorSettings::parse(settings_text);
    CachingAllocator allocator(settings, DeviceMemory(capacity));
    ObviousGrowingAllocator obvious(settings, DeviceMemory(capacity));
    std::vector<BlockId> live;
    const std::uint64_t wanted = 10 + random() % 40;
    for (int i = 0; i < 700; ++i) {
      if (live.empty() || random() % wanted > live.size()) {
        constexpr std::int64_t kSizes[] = {512,     100'000,  900'000,  (1 << 20) + 512,
                                           5 << 20, 19 << 20, 20 << 20, 33 << 20};
        const std::int64_t bytes = kSizes[random() % std::size(kSizes)] - static_cast<std::int64_t>(random() % 2 * 512);
        if (bytes <= 0) continue;
        const auto stream = static_cast<StreamId>(random() % 8 == 0);
        const BlockId block = allocator.allocate(bytes, stream);
        ASSERT_EQ(block == kNoBlock ? 0 : allocator.address_of(block), obvious.allocate(bytes, stream))
            << "request " << i << " of " << bytes;
        if (block != kNoBlock) live.push_back(block);
      } else {
        const std::size_t which = random() % live.size();
        obvious.free(allocator.address_of(live[which]));
        allocator.free(live[which]);
        live[which] = live.back();
        live.pop_back();
      }
      ASSERT_EQ(allocator.statistics().all.reserved_bytes.current, obvious.reserved()) << "after " << i;
    }
  }
};

TEST_P(GrowingSegments, AgreeWithTheObviousOnes) { run("expandable_segments:True", std::int64_t{2} << 30); }
TEST_P(GrowingSegments, AgreeWithTheObviousOnesOnADeviceTooSmall) {
  run("expandable_segments:True", std::int64_t{200} << 20);
}
TEST_P(GrowingSegments, AgreeWithTheObviousOnesByPagesOfAnotherSize) {
  run("expandable_segments:True,large_segment_size_mb:6", std::int64_t{200} << 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GrowingSegments, ::testing::Range(1, 5));

}  // namespace
}  // namespace ridgeline
