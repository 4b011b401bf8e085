#include "sim/timing/clock_law.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::changing_seed;
using testing_support::Draws;

TEST(ClockLaw, busy_tensor_pipes_lower_the_clock_and_cuda_cores_do_not) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_DOUBLE_EQ(kernel_clock(gpu, Pipe::fp32, 1.0).value(), gpu.clock.sustained.value());
  EXPECT_DOUBLE_EQ(kernel_clock(gpu, Pipe::tensor_wgmma, 0.0).value(), gpu.clock.tensor.value());
  EXPECT_NEAR(kernel_clock(gpu, Pipe::tensor_wgmma, 1.0).value(), 1.60e9, 1e7);
  EXPECT_DOUBLE_EQ(kernel_clock(gpu, Pipe::tensor_mma, 7.0).value(), kernel_clock(gpu, Pipe::tensor_mma, 1.0).value());
}

TEST(ClockLaw, voltage_is_flat_to_the_knee_and_one_at_the_boost_clock) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    EXPECT_DOUBLE_EQ(voltage(gpu, gpu.clock.lowest), gpu.clock.knee_voltage) << name;
    EXPECT_DOUBLE_EQ(voltage(gpu, gpu.clock.knee), gpu.clock.knee_voltage) << name;
    EXPECT_NEAR(voltage(gpu, gpu.clock.boost), 1.0, 1e-12) << name;
    EXPECT_NEAR(voltage(gpu, 0.5 * (gpu.clock.knee + gpu.clock.boost)), 0.5 * (1.0 + gpu.clock.knee_voltage), 1e-12);
    EXPECT_NEAR(idle_power(gpu, gpu.clock.boost).value(), gpu.power.idle.value(), 1e-9) << name;
  }
}

Settled limited(const Gpu& gpu, double flops, Seconds time, double clocked = 1.0) {
  return power_limited(gpu, Pipe::fp32, DType::fp32, flops, 0.0, time, clocked * time);
}

TEST(ClockLaw, seventy_watts_hold_a_t4_to_about_half_of_its_fp32_peak) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const double flops = 1e13;
  const Seconds full{flops / 7.6e12};
  const Settled settled = limited(gpu, flops, full);
  EXPECT_NEAR(flops / settled.time.value(), 4.15e12, 0.3e12);
  EXPECT_LT(settled.clock, gpu.clock.boost);
  // At the clock that settles, the board draws its limit.
  const WorkEnergy energy = work_energy(gpu, Pipe::fp32, DType::fp32, flops, 0.0);
  EXPECT_NEAR((idle_power(gpu, settled.clock) + energy.at(voltage(gpu, settled.clock)) / settled.time).value(), 70.0,
              1e-6);
  EXPECT_EQ(limited(gpu, flops, 10.0 * full).time, 10.0 * full);
}

TEST(ClockLaw, no_limit_is_so_low_that_the_clock_falls_below_the_lowest) {
  Gpu gpu = load_gpu("nvidia-t4");
  gpu.power.limit = gpu.power.idle;
  const Seconds full{1.0};
  const Settled settled = limited(gpu, 7.6e12, full);
  EXPECT_DOUBLE_EQ(settled.clock.value(), gpu.clock.lowest.value());
  EXPECT_GE(settled.time.value(), gpu.clock.sustained.value() / gpu.clock.lowest.value() - 1e-9);
  EXPECT_GT(limited(gpu, 7.6e12, full, 0.0).time, full) << "work that does not go with the clock waits too";
}

TEST(ClockLaw, dram_traffic_alone_keeps_the_limit) {
  for (const std::string& name : hardware_names()) {
    Gpu gpu = load_gpu(name);
    gpu.dram.bandwidth = 4.0 * gpu.dram.bandwidth;
    gpu.power.averaging = Seconds{0.0};
    const double bytes = gpu.dram.bandwidth.value();
    const Seconds full{1.0};
    const Settled settled = power_limited(gpu, Pipe::none, DType::fp32, 0.0, bytes, full, Seconds{0.0});
    const WorkEnergy energy = work_energy(gpu, Pipe::none, DType::fp32, 0.0, bytes);
    const Watts draw = idle_power(gpu, settled.clock) + energy.at(voltage(gpu, settled.clock)) / settled.time;
    EXPECT_LE(draw.value(), 1.08 * gpu.power.limit.value()) << name;
  }
}

TEST(ClockLaw, a_board_averages_short_bursts_away_and_long_ones_not) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  ASSERT_GT(gpu.power.averaging.value(), 0.0);
  const auto stretch = [&](double flops) {
    const Seconds full{flops / 790e12};
    return power_limited(gpu, Pipe::tensor_wgmma, DType::bf16, flops, 0.0, full, full).time / full;
  };
  EXPECT_LT(stretch(1e11).value(), 1.01);   // 0.13 ms
  EXPECT_GT(stretch(1e16).value(), 1.155);  // 13 s
}

TEST(ClockLaw, traffic_beyond_that_of_large_products_costs_power_too) {
  const Gpu gpu = load_gpu("nvidia-t4");
  const auto energy = [&](double bytes) { return work_energy(gpu, Pipe::fp32, DType::fp32, 1e12, bytes).at(1.0); };
  EXPECT_EQ(energy(1e12 / 600.0), energy(0.0));
  EXPECT_NEAR((energy(1e12 / 500.0 + 1e10) - energy(0.0)).value(), 1e10 * gpu.power.dram.value(), 1e-9);
}

TEST(ClockLaw, energy_does_not_depend_on_how_many_or_how_fast_the_units_are) {
  const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  Gpu more = gpu;
  more.sm.count *= 3;
  more.sm.rates.tensor_bf16 *= 2.0;
  more.dram.bandwidth = 2.0 * gpu.dram.bandwidth;
  EXPECT_EQ(work_energy(gpu, Pipe::tensor_mma, DType::bf16, 1e12, 1e10).at(0.9),
            work_energy(more, Pipe::tensor_mma, DType::bf16, 1e12, 1e10).at(0.9));
}

/// A load on a chip, and what a change for the better makes of both.
struct Case {
  Gpu gpu;
  double flops = 0, bytes = 0;
  Seconds time, clocked;  ///< at full clock

  [[nodiscard]] Settled settled() const {
    return power_limited(gpu, Pipe::tensor_mma, DType::fp16, flops, bytes, time, clocked);
  }
};

Case random_case(Draws& draw) {
  static const std::vector<Gpu> gpus = [] {
    std::vector<Gpu> all;
    for (const std::string& name : hardware_names()) all.push_back(load_gpu(name));
    return all;
  }();
  Case c;
  c.gpu = gpus[draw.index(gpus.size())];
  c.gpu.power.limit = c.gpu.power.idle * draw.between(1.02, 10.0);
  c.gpu.clock.lowest = c.gpu.clock.lowest * draw.between(0.2, 1.0);
  if (draw.share() < 0.5) c.gpu.power.averaging = Seconds{draw.between(1e-3, 1.0)};
  c.flops = draw.between(1e7, 1e15);
  const double rate = 2.0 * c.gpu.sm.count * c.gpu.sm.rates.tensor_fp16 * c.gpu.clock.tensor.value();
  c.clocked = Seconds{c.flops / rate * draw.between(1.0, 5.0)};
  c.time = c.clocked * draw.between(1.0, 10.0);
  c.bytes = draw.share() * c.time.value() * c.gpu.dram.bandwidth.value();
  return c;
}

using Change = std::function<void(Case&, double)>;
const std::vector<std::pair<const char*, Change>>& improvements() {
  static const std::vector<std::pair<const char*, Change>> all{
      {"limit", [](Case& c, double f) { c.gpu.power.limit = f * c.gpu.power.limit; }},
      {"idle", [](Case& c, double f) { c.gpu.power.idle = c.gpu.power.idle / f; }},
      {"energy", [](Case& c, double f) { c.gpu.power.tensor_fp16 = c.gpu.power.tensor_fp16 / f; }},
      {"dram energy", [](Case& c, double f) { c.gpu.power.dram = c.gpu.power.dram / f; }},
      {"averaging", [](Case& c, double f) { c.gpu.power.averaging = f * c.gpu.power.averaging; }},
      {"boost", [](Case& c, double f) { c.gpu.clock.boost = f * c.gpu.clock.boost; }},
      {"lowest", [](Case& c, double f) { c.gpu.clock.lowest = f * c.gpu.clock.lowest; }},
      {"knee", [](Case& c, double f) { c.gpu.clock.knee = std::min(f * c.gpu.clock.knee, 0.99 * c.gpu.clock.boost); }},
      {"voltage", [](Case& c, double f) { c.gpu.clock.knee_voltage /= f; }},
      {"less traffic", [](Case& c, double f) { c.bytes /= f; }},
      {"shorter", [](Case& c, double f) { c.time = std::max(c.clocked, c.time / f); }},
      {"faster units",
       [](Case& c, double f) {
         c.clocked = c.clocked / f;
         c.time = c.time / f;
       }},
      {"faster tensor clock",
       [](Case& c, double f) {
         c.gpu.clock.tensor = f * c.gpu.clock.tensor;
         c.clocked = c.clocked / f;
       }},
  };
  return all;
}

TEST(ClockLaw, whatever_is_better_is_never_slower) {
  const std::uint64_t seed = changing_seed();
  RecordProperty("seed", std::to_string(seed));
  Draws draw(seed);
  int held_back = 0;
  for (int i = 0; i < 20000; ++i) {
    const Case c = random_case(draw);
    const Settled now = c.settled();
    held_back += now.time > c.time;
    for (const auto& [what, improve] : improvements()) {
      Case better = c;
      improve(better, draw.between(1.001, 4.0));
      ASSERT_LE(better.settled().time.value(), now.time.value() * (1.0 + 1e-9))
          << what << ", case " << i << " of RIDGELINE_TEST_SEED=" << seed << " on " << c.gpu.name;
    }
  }
  EXPECT_GT(held_back, 2000);
}

TEST(ClockLaw, small_changes_have_small_effects) {
  const std::uint64_t seed = changing_seed();
  RecordProperty("seed", std::to_string(seed));
  Draws draw(seed);
  for (int i = 0; i < 20000; ++i) {
    const Case c = random_case(draw);
    for (const auto& [what, improve] : improvements()) {
      Case better = c;
      improve(better, 1.0 + 1e-7);
      // Near its idle power a board's share for work grows without bound with the limit: no jump, but steep.
      const double steep = 1.0 + c.gpu.power.limit.value() / (c.gpu.power.limit - c.gpu.power.idle).value();
      ASSERT_NEAR(ratio(better.settled().time, c.settled().time), 1.0, 1e-5 * steep)
          << what << ", case " << i << " of RIDGELINE_TEST_SEED=" << seed << " on " << c.gpu.name;
    }
  }
}

TEST(ClockLaw, everything_twice_as_fast_takes_half_the_time) {
  const std::uint64_t seed = changing_seed();
  RecordProperty("seed", std::to_string(seed));
  Draws draw(seed);
  for (int i = 0; i < 5000; ++i) {
    const Case c = random_case(draw);
    Case fast = c;
    fast.time = 0.5 * c.time;
    fast.clocked = 0.5 * c.clocked;
    fast.gpu.power.averaging = 0.5 * c.gpu.power.averaging;
    fast.gpu.power.limit = 2.0 * c.gpu.power.limit;
    fast.gpu.power.idle = 2.0 * c.gpu.power.idle;
    ClockSpec& f = fast.gpu.clock;
    for (Hertz* clock : {&f.boost, &f.boost_tensor, &f.sustained, &f.tensor, &f.tensor_droop, &f.lowest, &f.knee})
      *clock = 2.0 * *clock;
    ASSERT_NEAR(ratio(fast.settled().time, c.settled().time), 0.5, 1e-9)
        << "RIDGELINE_TEST_SEED=" << seed << " case " << i;
  }
}

TEST(ClockLaw, the_floor_that_candidates_are_cut_by_is_below_every_time) {
  const std::uint64_t seed = changing_seed();
  Draws draw(seed);
  for (int i = 0; i < 20000; ++i) {
    const Case c = random_case(draw);
    const PowerLimit limit = power_limit(c.gpu, Pipe::tensor_mma, DType::fp16, c.flops, c.bytes);
    const Seconds bound = c.time + std::max(Seconds{}, limit.floor - c.time) * limit.charged;
    ASSERT_LE(bound.value(), c.settled().time.value() * (1.0 + 1e-9))
        << "RIDGELINE_TEST_SEED=" << seed << " case " << i;
  }
}

TEST(ClockLaw, what_the_l2_delivers_beyond_the_dram_takes_energy_of_the_core) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  KernelLaunch launch;
  launch.work = MemoryBoundWork{};
  KernelTime cold;
  cold.dram_read_bytes = 0.6e9;
  cold.dram_write_bytes = 0.4e9;
  cold.l2_bytes = 1e9;  // all of it comes from the DRAM
  KernelTime warm = cold;
  warm.l2_bytes = 3e9;
  const WorkEnergy less = kernel_energy(launch, cold, gpu), more = kernel_energy(launch, warm, gpu);
  EXPECT_GT(more.core.value(), 2.5 * less.core.value()) << "three times the bytes reach the SMs";
  EXPECT_LT(more.core.value(), 3.5 * less.core.value());
  EXPECT_DOUBLE_EQ(more.board.value(), less.board.value()) << "the DRAM moves the same";
}

// An H200 at rest draws 117 W at 1980 MHz and 81 W at 345 MHz (measured).
TEST(ClockLaw, a_gpu_at_rest_draws_less_at_a_lower_clock) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    EXPECT_LT(idle_power(gpu, 0.5 * gpu.clock.boost), 0.95 * idle_power(gpu, gpu.clock.boost)) << name;
  }
  const Gpu h200 = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_NEAR(ratio(idle_power(h200, Hertz{345e6}), idle_power(h200, Hertz{1980e6})), 81.0 / 117.0, 0.04);
}

}  // namespace
}  // namespace ridgeline
