// Kernels beside collectives with round constants: each part of the law by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/network/overlap.h"

namespace ridgeline {
namespace {

/// 100 SMs, a memory that gives 1 TB/s either way.
Gpu hundred_sms() {
  Gpu gpu;
  gpu.sm.count = 100;
  gpu.dram.bandwidth = BytesPerSecond{1e12};
  gpu.dram.read_efficiency = 0.7;
  gpu.dram.write_efficiency = 1.3;
  return gpu;
}
constexpr OverlapConstants kRound{.shared = 1.1, .queued = 2.0, .fewer_waiting = 0.5, .hidden = 0.25};

/// 20 channels for 1 ms, moving so many bytes.
CollectiveTime twenty_channels(double bytes = 0) {
  CollectiveTime time;
  time.time = microseconds(1000);
  time.channels = 20;
  time.dram = Bytes{bytes};
  return time;
}
KernelBesides kernel_of(double blocks, double a_sm, double memory_bound = 0, double bytes = 0) {
  return {.time = microseconds(100),
          .blocks = blocks,
          .blocks_per_sm = a_sm,
          .dram = Bytes{bytes},
          .memory_bound = memory_bound};
}
double slowdown(const KernelBesides& kernel, double share = 1.0, int channels = 20) {
  CollectiveTime collective = twenty_channels();
  collective.channels = channels;
  return compute_slowdown(hundred_sms(), collective, kernel, share, kRound);
}

TEST(OverlapByHand, a_kernel_that_computes_takes_the_waves_that_fewer_sms_need) {
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(80, 1)), 1.0) << "80 SMs are left";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(81, 1)), 2.0);
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(160, 2)), 1.0) << "two blocks an SM";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(161, 2)), 2.0);
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(300, 1)), 4.0 / 3) << "3 waves lose 60 places: 3.6";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(600, 1)), 8.0 / 6) << "7.2";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(600, 1), 0.5), 7.0 / 6) << "half of the time: 6.6";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(600, 2), 0.5), 4.0 / 3) << "3 waves of 200: 3.3";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(90, 1), 0.1), 2.0) << "a wave is lost or not";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(6400, 1)), 77.0 / 64) << "76.8";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(6401, 1)), 1 / 0.8) << "beyond 64 waves none is seen";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(6401, 1), 0.5), 1 / 0.9);
  EXPECT_NEAR(slowdown(kernel_of(6401, 1), 1.0, 500), 100.0, 1e-9) << "one SM is left at least";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(6401, 1), 1.0, 1), 1 / 0.99);
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(6401, 1), 2.0), 1 / 0.8) << "a share is at most one";
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(6401, 1), -1.0), 1.0);
  EXPECT_DOUBLE_EQ(slowdown(kernel_of(0, 0)), 1.0);
}

TEST(OverlapByHand, a_kernel_that_waits_for_memory_misses_the_sms_more_where_the_memory_idles) {
  // 100/80, and half as much again of the share of the memory's time that it leaves idle.
  EXPECT_NEAR(slowdown(kernel_of(80, 1, 1.0)), 1.25 * 1.5, 1e-12);
  EXPECT_NEAR(slowdown(kernel_of(80, 1, 1.0, 40e6)), 1.25 * (1 + 0.5 * 0.6), 1e-12) << "40 MB in 100 us are 0.4 of it";
  EXPECT_NEAR(slowdown(kernel_of(80, 1, 1.0, 400e6)), 1.25, 1e-12) << "no more than all of it";
  EXPECT_NEAR(slowdown(kernel_of(80, 1, 1.0, 40e6), 0.5), 1 / (1 - 0.5 * (1 - 1 / 1.625)), 1e-12);
  EXPECT_NEAR(slowdown(kernel_of(81, 1, 0.25, 40e6)), 0.25 * 1.625 + 0.75 * 2, 1e-12) << "partly";
  EXPECT_NEAR(slowdown(kernel_of(81, 1, 7.0, 40e6)), 1.625, 1e-12);
}

TEST(OverlapByHand, a_collective_queues_for_the_memory_that_both_ask_for) {
  const auto slowed = [](double of_collective, double of_kernel) {
    return collective_slowdown(hundred_sms(), twenty_channels(of_collective * 1e9),
                               kernel_of(80, 1, 0, of_kernel * 1e8), kRound);
  };
  EXPECT_NEAR(slowed(0.5, 0.5), 1.1, 1e-12) << "shared caches and clock";
  EXPECT_NEAR(slowed(0.5, 0.54), 1.1, 1e-12);
  EXPECT_NEAR(slowed(0.5, 0.8), 1 + 2 * 0.3, 1e-12);
  EXPECT_NEAR(slowed(5, 0.8), 1 + 2 * 0.8, 1e-12) << "nobody asks for more than all of it";
  EXPECT_NEAR(slowed(0, 0), 1.1, 1e-12);
}

TEST(OverlapByHand, side_by_side_kernels_follow_each_other_until_the_collective_ends) {
  // Kernels of 100 us, twice as long beside it. The collective takes 1.1 ms: six of 200 us, but for a quarter of one.
  const Gpu gpu = hundred_sms();
  const SideBySide six = side_by_side(gpu, twenty_channels(), kernel_of(81, 1), kRound);
  EXPECT_NEAR(in_microseconds(six.kernel), 200, 1e-9);
  EXPECT_NEAR(in_microseconds(six.collective), 1200, 1e-9) << "5.5 less a quarter are six";
  KernelBesides longer = kernel_of(81, 1);
  longer.time = microseconds(106);  // 1100 / 212 = 5.19: five, and the collective itself is the longer
  EXPECT_NEAR(in_microseconds(side_by_side(gpu, twenty_channels(), longer, kRound).collective), 1100, 1e-9);
  longer.time = microseconds(2000);
  EXPECT_NEAR(in_microseconds(side_by_side(gpu, twenty_channels(), longer, kRound).collective), 4000, 1e-9)
      << "one at least";
  // Of many waves, beside it for 1100 of the kernel's time only.
  KernelBesides many = kernel_of(100'000, 1);
  many.time = microseconds(10'000);
  const double kernel = in_microseconds(side_by_side(gpu, twenty_channels(), many, kRound).kernel);
  EXPECT_NEAR(kernel, 10'000 / (1 - 0.2 * 1100 / kernel), 0.1);
}

}  // namespace
}  // namespace ridgeline
