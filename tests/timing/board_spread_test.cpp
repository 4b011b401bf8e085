// The slowest of several boards: the largest of normal numbers against an integral over its density, and what it does.
#include "sim/timing/board_spread.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/clock_law.h"

namespace ridgeline {
namespace {

/// Mean of the largest of `count` normal numbers: the integral of x over its density, count·phi(x)·Phi(x)^(count - 1).
double integrated_mean_of_largest(int count) {
  constexpr double kStep = 1e-3;
  double sum = 0.0;
  for (double x = -8.0; x < 8.0; x += kStep) {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI), below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    sum += kStep * x * count * density * std::pow(below, count - 1);
  }
  return sum;
}

TEST(BoardSpread, mean_of_the_largest_is_that_of_the_integral) {
  EXPECT_EQ(mean_of_largest(1), 0.0);
  for (const int count : {2, 3, 4, 8, 16, 64, 512, 4096})
    EXPECT_NEAR(mean_of_largest(count), integrated_mean_of_largest(count), 0.03) << count;
}

TEST(BoardSpread, quantiles_of_the_largest_are_the_root_of_those_of_one) {
  EXPECT_NEAR(quantile_of_largest(0.5, 1), 0.0, 1e-12);
  EXPECT_NEAR(quantile_of_largest(0.975, 1), 1.96, 1e-3);
  // Two numbers both stay below x as often as one stays below it, squared.
  EXPECT_NEAR(quantile_of_largest(0.25, 2), 0.0, 1e-12);
  EXPECT_LT(quantile_of_largest(0.05, 64), mean_of_largest(64));
  EXPECT_GT(quantile_of_largest(0.95, 64), mean_of_largest(64));
}

TEST(BoardSpread, energies_go_with_the_spread_and_the_boards) {
  PowerSpec power;
  power.board_spread = 0.05;
  EXPECT_EQ(hungriest_board(power, 1), 1.0);
  EXPECT_NEAR(hungriest_board(power, 8), 1.0 + 0.05 * integrated_mean_of_largest(8), 0.002);
  EXPECT_LT(hungriest_board(power, 8), hungriest_board(power, 9));
  EXPECT_GT(hungriest_board(power, 8, 0.95), hungriest_board(power, 8));
  power.board_spread = 0.0;
  EXPECT_EQ(hungriest_board(power, 512), 1.0);
  power.board_spread = 0.3;
  EXPECT_EQ(hungriest_board(power, 1, 1e-12), 0.1);  // none does its work for nothing
}

TEST(BoardSpread, a_hungrier_board_is_slower_under_the_limit_alone) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  const double flops = 1e13;
  const Seconds full{flops / 300e12};
  const auto time = [&] { return power_limited(gpu, Pipe::tensor_mma, DType::fp16, flops, 0.0, full, full).time; };
  const Seconds typical = time();
  ASSERT_GT(typical, full);
  gpu.power.board = 1.1;
  EXPECT_GT(time(), 1.02 * typical);
  EXPECT_LT(time(), 1.1 * typical);  // the clock falls, and with it the voltage
  const auto energy = [&] { return work_energy(gpu, Pipe::tensor_mma, DType::fp16, flops, 1e12, 1e9).at(1.0).value(); };
  const double of_hungry = energy();
  gpu.power.board = 1.0;
  EXPECT_NEAR(of_hungry, 1.1 * energy(), 1e-9 * of_hungry);
  gpu.power.limit = Watts{5000.0};
  EXPECT_EQ(time(), full);
  gpu.power.board = 1.1;
  EXPECT_EQ(time(), full);
}

}  // namespace
}  // namespace ridgeline
