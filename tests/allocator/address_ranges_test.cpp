// Ranges of addresses against a list of single bytes.
#include "sim/allocator/address_ranges.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <tuple>
#include <vector>

namespace ridgeline {
namespace {

constexpr Address kBytes = 120;

/// Who has each byte: 0, nobody; ranges that cannot grow have numbers of their own.
struct ByteOwners {
  std::array<int, kBytes + 1> range{};
  std::vector<AddressRange> ranges{{}};

  void add(Address address, const AddressRange& range_added) {
    ranges.push_back(range_added);
    for (Address at = address; at < address + static_cast<Address>(range_added.bytes); ++at)
      range[at] = static_cast<int>(ranges.size()) - 1;
  }
  [[nodiscard]] bool one(Address a, Address b) const {
    if (range[a] == 0 || range[b] == 0) return false;
    return range[a] == range[b] ||
           ranges[static_cast<std::size_t>(range[a])].joins(ranges[static_cast<std::size_t>(range[b])]);
  }
  [[nodiscard]] const AddressRange& of(Address at) const { return ranges[static_cast<std::size_t>(range[at])]; }
  [[nodiscard]] bool growing(Address at) const { return range[at] != 0 && of(at).expandable; }
};

using Listed = std::vector<std::tuple<Address, std::int64_t, StreamId, PoolKind, bool>>;
Listed listed(const ByteOwners& bytes) {
  Listed all;
  for (Address at = 0; at < kBytes; ++at) {
    if (bytes.range[at] == 0) continue;
    if (at > 0 && bytes.one(at - 1, at)) ++std::get<1>(all.back());
    else all.emplace_back(at, 1, bytes.of(at).owner, bytes.of(at).kind, bytes.of(at).expandable);
  }
  return all;
}
Listed listed(const AddressRanges& ranges) {
  Listed all;
  for (const auto& [address, range] : ranges.all())
    all.emplace_back(address, range.bytes, range.owner, range.kind, range.expandable);
  return all;
}

TEST(AddressRanges, AreWhatTheirBytesAre) {
  std::mt19937_64 random(3);
  for (int history = 0; history < 40; ++history) {
    AddressRanges ranges;
    ByteOwners bytes;
    for (int i = 0; i < 150; ++i) {
      const Address begin = random() % kBytes, end = begin + 1 + random() % std::min<Address>(12, kBytes - begin);
      std::int64_t taken = 0;
      for (Address at = begin; at < end; ++at) taken += bytes.range[at] != 0;
      if (taken == 0) {
        const AddressRange added{static_cast<std::int64_t>(end - begin), static_cast<StreamId>(random() % 2),
                                 random() % 2 == 0 ? PoolKind::small : PoolKind::large, random() % 4 != 0};
        ranges.add(begin, added);
        bytes.add(begin, added);
      } else if (random() % 3 == 0) {
        EXPECT_EQ(ranges.remove(begin, static_cast<std::int64_t>(end - begin)), taken);
        for (Address at = begin; at < end; ++at) bytes.range[at] = 0;
      }
      ASSERT_EQ(listed(ranges), listed(bytes));
      for (Address at = 0; at < kBytes; ++at) {
        const auto* found = ranges.at(at);
        ASSERT_EQ(found != nullptr, bytes.range[at] != 0);
        if (found != nullptr) {
          ASSERT_TRUE(found->first <= at && at < found->first + static_cast<Address>(found->second.bytes));
        }
      }
      // What ends or begins at a stretch nobody has; of two, the one behind it.
      const auto* beside = ranges.growing_next_to(begin, end);
      const bool after = bytes.growing(end) && (end == 0 || !bytes.one(end - 1, end));
      const bool before = begin > 0 && bytes.growing(begin - 1);
      ASSERT_EQ(beside != nullptr, after || before) << begin << " to " << end;
      if (beside != nullptr) {
        ASSERT_EQ(beside->owner, bytes.of(after ? end : begin - 1).owner);
        ASSERT_EQ(beside->kind, bytes.of(after ? end : begin - 1).kind);
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline
