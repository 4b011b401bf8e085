// Kernels beside collectives, as measured on two and four H200, and the limits of the law.
#include "sim/network/overlap.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/measured_overlaps.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

constexpr double kMedian = 0.08, kWorst = 0.25;  // of both times

TEST(Overlap, both_times_are_what_an_h200_took) {
  const MeasuredOverlaps measured = load_measured_overlaps(testing::measurements());
  std::vector<double> errors;
  for (const MeasuredOverlap& one : measured.rows) {
    if (!one.held_out) continue;
    const SideBySide both = side_by_side(measured.gpus[static_cast<std::size_t>(one.gpu)], one.collective, one.kernel);
    const Seconds predicted = one.of_collective ? both.collective : both.kernel;
    errors.push_back(std::abs(ratio(predicted, one.beside) - 1.0));
    if (errors.back() > kWorst)
      fmt::print("{} {}: {:.0f} us, measured {:.0f}\n", one.name, one.of_collective ? "collective" : "kernel",
                 in_microseconds(predicted), in_microseconds(one.beside));
  }
  ASSERT_GE(errors.size(), 30u);
  std::sort(errors.begin(), errors.end());
  fmt::print("n {}  median {:.1f} %  nine in ten {:.1f} %  worst {:.1f} %\n", errors.size(),
             100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10], 100 * errors.back());
  EXPECT_LE(errors[errors.size() / 2], kMedian);
  EXPECT_LE(errors.back(), kWorst);
  EXPECT_EQ(measured.disturbed_held_out, 1);
}

class OverlapLimits : public ::testing::Test {
 protected:
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  CollectiveTime collective = [] {
    CollectiveTime time;
    time.time = microseconds(1000);
    time.channels = 24;
    time.dram = Bytes{5e8};
    return time;
  }();
};

TEST_F(OverlapLimits, a_kernel_of_one_full_wave_takes_two) {
  const KernelBesides full{.time = microseconds(100), .blocks = 132};
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, full), 2.0);
  const KernelBesides small{.time = microseconds(100), .blocks = 108};
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, small), 1.0);
}

TEST_F(OverlapLimits, a_kernel_of_many_waves_loses_the_share_of_sms) {
  const KernelBesides many{.time = microseconds(100), .blocks = 1e6};
  EXPECT_NEAR(compute_slowdown(gpu, collective, many), 132.0 / 108.0, 1e-6);
}

TEST_F(OverlapLimits, nothing_beside_slows_nothing) {
  const KernelBesides kernel{.time = microseconds(100), .blocks = 1000};
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, kernel, 0.0), 1.0);
  collective.channels = 0;
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, kernel), 1.0);
  EXPECT_DOUBLE_EQ(collective_slowdown(gpu, collective, kernel), 1.0);
}

TEST_F(OverlapLimits, more_channels_and_more_of_the_dram_slow_more) {
  KernelBesides kernel{.time = microseconds(100), .blocks = 1e6, .dram = Bytes{1e8}, .memory_bound = 1};
  CollectiveTime fewer = collective;
  fewer.channels = 8;
  EXPECT_GT(compute_slowdown(gpu, collective, kernel), compute_slowdown(gpu, fewer, kernel));
  collective.dram = Bytes{1e9};
  const double light = collective_slowdown(gpu, collective, kernel);
  kernel.dram = Bytes{4.6e8};
  EXPECT_GT(collective_slowdown(gpu, collective, kernel), light);
}

TEST_F(OverlapLimits, a_collective_waits_until_the_last_blocks_are_placed) {
  const KernelBesides waves{.time = microseconds(100), .blocks = 132 * 4};
  EXPECT_NEAR(in_microseconds(wait_for_room(gpu, waves, microseconds(0))), 75, 1e-9);
  EXPECT_NEAR(in_microseconds(wait_for_room(gpu, waves, microseconds(30))), 45, 1e-9);
  EXPECT_EQ(wait_for_room(gpu, waves, microseconds(90)).value(), 0.0);
  const KernelBesides full{.time = microseconds(100), .blocks = 132}, small{.time = microseconds(100), .blocks = 100};
  EXPECT_NEAR(in_microseconds(wait_for_room(gpu, full, microseconds(10))), 90, 1e-9);
  EXPECT_EQ(wait_for_room(gpu, small, microseconds(10)).value(), 0.0);
}

TEST_F(OverlapLimits, room_comes_with_the_last_wave_however_many_blocks_an_sm_holds) {
  for (const int a_sm : {1, 2, 4}) {
    const double at_once = 132.0 * a_sm;
    const auto wait = [&](double blocks, double elapsed) {
      const KernelBesides kernel{.time = microseconds(100), .blocks = blocks, .blocks_per_sm = 1.0 * a_sm};
      return in_microseconds(wait_for_room(gpu, kernel, microseconds(elapsed)));
    };
    EXPECT_EQ(wait(at_once - 1, 10), 0.0) << "an SM has room from the start";
    for (const int waves : {2, 3, 5}) {
      EXPECT_NEAR(wait(waves * at_once, 0), 100.0 * (waves - 1) / waves, 1e-9) << a_sm;
      EXPECT_NEAR(wait(waves * at_once - 1, 0), 100.0 * (waves - 1) / waves, 1e-9) << "a wave is begun or not";
    }
    EXPECT_NEAR(wait(at_once, 10), 90.0, 1e-9);
    double before = wait(2 * at_once, 0);
    for (double elapsed = 10; elapsed <= 120; elapsed += 10) {
      const double now = wait(2 * at_once, elapsed);
      EXPECT_LE(now, before);
      EXPECT_GE(now, 0.0);
      before = now;
    }
  }
}

}  // namespace
}  // namespace ridgeline
