#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ridgeline
