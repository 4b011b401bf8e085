#include "sim/timing/clock_law.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

TEST(ClockLaw, busy_tensor_pipes_lower_the_clock_and_cuda_cores_do_not) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_DOUBLE_EQ(kernel_clock(gpu, Pipe::fp32, 1.0).value(), gpu.clock.sustained.value());
  EXPECT_DOUBLE_EQ(kernel_clock(gpu, Pipe::tensor_wgmma, 0.0).value(), gpu.clock.tensor.value());
  EXPECT_NEAR(kernel_clock(gpu, Pipe::tensor_wgmma, 1.0).value(), 1.60e9, 1e7);
  EXPECT_DOUBLE_EQ(kernel_clock(gpu, Pipe::tensor_mma, 7.0).value(), kernel_clock(gpu, Pipe::tensor_mma, 1.0).value());
}

TEST(ClockLaw, seventy_watts_hold_a_t4_to_about_half_of_its_fp32_peak) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const double flops = 1e13;
  const Seconds floor = power_floor(gpu, Pipe::fp32, DType::fp32, flops, 0.0);
  EXPECT_NEAR(flops / floor.value(), 4.15e12, 0.3e12);
  EXPECT_EQ(power_limited(gpu, Pipe::fp32, DType::fp32, flops, 0.0, floor * 0.5), floor);
  EXPECT_EQ(power_limited(gpu, Pipe::fp32, DType::fp32, flops, 0.0, floor * 2.0), floor * 2.0);
}

TEST(ClockLaw, a_board_averages_short_bursts_away_and_long_ones_not) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  ASSERT_GT(gpu.power.averaging.value(), 0.0);
  const auto stretch = [&](double flops) {
    const Seconds floor = power_floor(gpu, Pipe::tensor_wgmma, DType::bf16, flops, 0.0);
    return power_limited(gpu, Pipe::tensor_wgmma, DType::bf16, flops, 0.0, floor * 0.8) / (floor.value() * 0.8);
  };
  EXPECT_LT(stretch(1e11).value(), 1.01);  // 0.15 ms
  EXPECT_GT(stretch(1e16).value(), 1.24);  // 15 s
}

TEST(ClockLaw, traffic_beyond_that_of_large_products_costs_power_too) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const double flops = 1e12;
  EXPECT_EQ(power_floor(gpu, Pipe::fp32, DType::fp32, flops, flops / 600.0),
            power_floor(gpu, Pipe::fp32, DType::fp32, flops, 0.0));
  EXPECT_GT(power_floor(gpu, Pipe::fp32, DType::fp32, flops, flops / 10.0),
            power_floor(gpu, Pipe::fp32, DType::fp32, flops, 0.0));
}

}  // namespace
}  // namespace ridgeline
