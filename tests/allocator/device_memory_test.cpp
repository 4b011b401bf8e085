#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>

#include "sim/allocator/device_memory.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(DeviceMemory, refuses_what_is_not_there_and_accepts_the_last_byte) {
  DeviceMemory device(100 * kMiB, 60 * kMiB);
  EXPECT_FALSE(device.allocate(42 * kMiB));
  EXPECT_TRUE(device.allocate(40 * kMiB));
  EXPECT_EQ(device.available(), 0);
}

TEST(DeviceMemory, gives_back_what_is_released) {
  DeviceMemory device(40 * kMiB);
  const auto address = device.allocate(40 * kMiB);
  device.release(*address, 40 * kMiB);
  EXPECT_EQ(device.allocate(40 * kMiB), address);
}

TEST(DeviceMemory, puts_new_ranges_below_the_old_ones_and_fills_a_slot_upwards) {
  DeviceMemory device(1000 * kMiB);
  const Address first = *device.allocate(16 * kMiB), second = *device.allocate(16 * kMiB),
                third = *device.allocate(64 * kMiB);
  EXPECT_EQ(second, first + 16 * kMiB);
  EXPECT_EQ(third, first - 64 * kMiB);
}

TEST(DeviceMemory, follows_recorded_addresses_until_the_sizes_differ) {
  DeviceMemory device(1000 * kMiB);
  device.expect(20 * kMiB, 0x1000);
  device.expect(2 * kMiB, 0x2000);
  EXPECT_EQ(*device.allocate(20 * kMiB), 0x1000u);
  EXPECT_NE(*device.allocate(4 * kMiB), 0x2000u);
}

TEST(DeviceMemory, ranges_in_use_never_overlap_and_a_slot_is_filled_before_the_next_begins) {
  DeviceMemory device(1000 * kMiB);
  const Address first = *device.allocate(2 * kMiB);
  for (int i = 1; i < 16; ++i) EXPECT_EQ(*device.allocate(2 * kMiB), first + static_cast<Address>(2 * i * kMiB));
  EXPECT_LT(*device.allocate(2 * kMiB), first) << "a slot has 32 MiB";
  EXPECT_EQ(device.available(), (1000 - 17 * 2) * kMiB);
  // Whatever is taken and given back.
  std::map<Address, std::int64_t> used;
  std::uint32_t random = 1;
  const auto next = [&](std::uint32_t below) { return (random = random * 1664525u + 1013904223u) / 65536 % below; };
  DeviceMemory other(1000 * kMiB);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t bytes = 2 * kMiB * (1 + next(12));
    if (const auto address = other.allocate(bytes)) {
      const auto above = used.lower_bound(*address);
      if (above != used.end()) {
        EXPECT_LE(*address + static_cast<Address>(bytes), above->first);
      }
      if (above != used.begin()) {
        EXPECT_LE(std::prev(above)->first + static_cast<Address>(std::prev(above)->second), *address);
      }
      used[*address] = bytes;
    }
    if (used.size() > 8 + next(20)) {
      auto gone = std::next(used.begin(), next(static_cast<std::uint32_t>(used.size())));
      other.release(gone->first, gone->second);
      used.erase(gone);
    }
  }
  std::int64_t sum = 0;
  for (const auto& [address, bytes] : used) sum += bytes;
  EXPECT_EQ(other.available(), 1000 * kMiB - sum);
}

TEST(DeviceMemory, a_hole_that_was_too_small_serves_later_and_one_given_back_serves_more) {
  DeviceMemory device(1000 * kMiB);
  const Address large = *device.allocate(20 * kMiB);  // leaves 12 MiB of its slot
  const Address other = *device.allocate(16 * kMiB);
  EXPECT_LT(other, large) << "the rest of the slot has no room for it";
  EXPECT_EQ(*device.allocate(14 * kMiB), other + 16 * kMiB);
  EXPECT_EQ(*device.allocate(12 * kMiB), large + 20 * kMiB);
  device.release(large, 20 * kMiB);
  EXPECT_EQ(*device.allocate(18 * kMiB), large);
}

}  // namespace
}  // namespace ridgeline
