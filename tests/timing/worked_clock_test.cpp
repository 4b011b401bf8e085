// Clock and power worked out by hand on a made-up board of round numbers (docs/model/clock-and-power.md).
//
// Boost 2 GHz, sustained 1.8, tensor cores 1.6 less up to 0.4; the voltage is 0.7 up to 1 GHz, then rises to 1 at 2
// GHz; no less than 0.5 GHz. 400 W at most, 100 W idle at 2 GHz of which 34 fall with clock and voltage. A FLOP takes 4
// pJ on the CUDA cores, 1 pJ in bf16; a byte of the DRAM 100 pJ, 48 of them at the voltage of the SMs.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/clock_law.h"

namespace ridgeline::worked_clock {
namespace {

Gpu board() {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.clock.boost = Hertz{2e9}, gpu.clock.sustained = Hertz{1.8e9}, gpu.clock.tensor = Hertz{1.6e9};
  gpu.clock.tensor_droop = Hertz{0.4e9}, gpu.clock.lowest = Hertz{0.5e9}, gpu.clock.knee = Hertz{1e9};
  gpu.clock.knee_voltage = 0.7;
  gpu.power.limit = Watts{400.0}, gpu.power.idle = Watts{100.0};
  gpu.power.fp32 = JoulesPerFlop{4e-12}, gpu.power.tensor_bf16 = JoulesPerFlop{1e-12};
  gpu.power.tensor_fp16 = JoulesPerFlop{2e-12}, gpu.power.tensor_tf32 = JoulesPerFlop{3e-12};
  gpu.power.dram = JoulesPerByte{100e-12};
  gpu.power.averaging = Seconds{0.5};
  gpu.power.board = 1.0;
  return gpu;
}

TEST(WorkedClock, kernels_on_tensor_cores_run_the_slower_the_busier_their_pipes_are) {
  const Gpu gpu = board();
  for (const Pipe pipe : {Pipe::tensor_wgmma, Pipe::tensor_mma}) {
    EXPECT_DOUBLE_EQ(kernel_clock(gpu, pipe, 0.0).value(), 1.6e9);
    EXPECT_DOUBLE_EQ(kernel_clock(gpu, pipe, 0.25).value(), 1.5e9);
    EXPECT_DOUBLE_EQ(kernel_clock(gpu, pipe, 1.5).value(), 1.2e9);
    EXPECT_DOUBLE_EQ(kernel_clock(gpu, pipe, -1.0).value(), 1.6e9);
    EXPECT_DOUBLE_EQ(own_clock(gpu, pipe).value(), 1.6e9);
  }
  for (const Pipe pipe : {Pipe::fp32, Pipe::none}) EXPECT_DOUBLE_EQ(kernel_clock(gpu, pipe, 0.9).value(), 1.8e9);
  EXPECT_DOUBLE_EQ(top_clock(gpu).value(), 1.8e9);
  Gpu other = gpu;
  other.clock.tensor = Hertz{1.9e9};
  EXPECT_DOUBLE_EQ(top_clock(other).value(), 1.9e9);
}

TEST(WorkedClock, the_voltage_rises_from_the_knee_to_the_boost_clock_and_beyond) {
  const Gpu gpu = board();
  EXPECT_DOUBLE_EQ(voltage(gpu, Hertz{0.4e9}), 0.7);
  EXPECT_DOUBLE_EQ(voltage(gpu, Hertz{1e9}), 0.7);
  EXPECT_DOUBLE_EQ(voltage(gpu, Hertz{1.5e9}), 0.85);
  EXPECT_DOUBLE_EQ(voltage(gpu, Hertz{2e9}), 1.0);
  EXPECT_DOUBLE_EQ(voltage(gpu, Hertz{2.4e9}), 1.2);
  EXPECT_DOUBLE_EQ(idle_power(gpu, Hertz{2e9}).value(), 100.0);
  EXPECT_DOUBLE_EQ(idle_power(gpu, Hertz{1e9}).value(), 66.0 + 34.0 * 0.5 * 0.49);
  EXPECT_DOUBLE_EQ(idle_power(gpu, Hertz{1.5e9}).value(), 66.0 + 34.0 * 0.75 * 0.7225);
}

// 10^12 FLOPs in bf16 are 1 J and have 2 GB with them; another 3 GB cost 0.3 J, 0.144 of them in the SMs.
TEST(WorkedClock, energy_is_that_of_operations_and_of_the_bytes_beyond_theirs) {
  const Gpu gpu = board();
  const WorkEnergy alone = work_energy(gpu, Pipe::tensor_wgmma, DType::bf16, 1e12, 2e9);
  EXPECT_DOUBLE_EQ(alone.core.value(), 1.0);
  EXPECT_DOUBLE_EQ(alone.board.value(), 0.0);
  const WorkEnergy more = work_energy(gpu, Pipe::tensor_wgmma, DType::bf16, 1e12, 5e9, 1e9);
  EXPECT_NEAR(more.core.value(), 1.0 + 0.48 * (0.3 + 0.1), 1e-12);
  EXPECT_NEAR(more.board.value(), 0.52 * 0.3, 1e-12);
  EXPECT_NEAR(more.at(0.7).value(), 0.49 * 1.192 + 0.156, 1e-12);
  Gpu hungry = gpu;
  hungry.power.board = 1.5;
  const WorkEnergy half_more = work_energy(hungry, Pipe::tensor_wgmma, DType::bf16, 1e12, 5e9, 1e9);
  EXPECT_NEAR(half_more.core.value(), 1.5 * 1.192, 1e-12);
  EXPECT_NEAR(half_more.board.value(), 1.5 * 0.156, 1e-12);
  EXPECT_EQ(energy_per_flop(gpu, Pipe::none, DType::bf16).value(), 0.0);
  EXPECT_EQ(energy_per_flop(gpu, Pipe::fp32, DType::bf16).value(), 4e-12);
  EXPECT_EQ(energy_per_flop(gpu, Pipe::tensor_mma, DType::bf16).value(), 1e-12);
  EXPECT_EQ(energy_per_flop(gpu, Pipe::tensor_mma, DType::fp16).value(), 2e-12);
  EXPECT_EQ(energy_per_flop(gpu, Pipe::tensor_mma, DType::tf32).value(), 3e-12);
  EXPECT_EQ(energy_per_flop(gpu, Pipe::tensor_mma, DType::fp32).value(), 4e-12);
}

/// FLOPs on the CUDA cores of a kernel of one second, all of which goes with the clock, that keep to 400 W at `ghz`.
double flops_that_settle_at(double ghz) {
  const double v = ghz <= 1.0 ? 0.7 : 0.7 + 0.3 * (ghz - 1.0), idle = 66.0 + 34.0 * 0.5 * ghz * v * v;
  return (400.0 - idle) * (1.8 / ghz) / (v * v) / 4e-12;
}

// Time 1.8 / f: the limit is met where (energy at the voltage of f) / (1.8 / f) and what the board draws idle are 400
// W.
TEST(WorkedClock, the_clock_falls_to_where_the_board_draws_its_limit) {
  const Gpu gpu = board();
  for (const double ghz : {0.6, 0.9, 1.0, 1.3, 1.75}) {
    const WorkEnergy energy = work_energy(gpu, Pipe::fp32, DType::fp32, flops_that_settle_at(ghz), 0.0);
    const Settled settled = settle(gpu, energy, Seconds{1.0}, Seconds{1.0}, Hertz{1.8e9});
    EXPECT_NEAR(settled.clock.value(), ghz * 1e9, 1.0);
    EXPECT_NEAR(settled.time.value(), 1.8 / ghz, 1e-9);
    // Of a second that pays 1.8 / f, a window of half a second is free.
    const double slow = 1.8 / ghz, pays = slow / (slow + 0.5);
    const Settled held =
        power_limited(gpu, Pipe::fp32, DType::fp32, flops_that_settle_at(ghz), 0.0, Seconds{1.0}, Seconds{1.0});
    EXPECT_NEAR(held.time.value(), 1.0 + pays * (slow - 1.0), 1e-9);
    EXPECT_NEAR(held.clock.value(), 1.8e9 - pays * (1.8 - ghz) * 1e9, 1.0);
  }
  // No lower than the lowest, however much it draws; not at all where it draws no more.
  const auto settled = [&](double flops) {
    return settle(gpu, work_energy(gpu, Pipe::fp32, DType::fp32, flops, 0.0), Seconds{1.0}, Seconds{1.0}, Hertz{1.8e9});
  };
  EXPECT_DOUBLE_EQ(settled(1e18).clock.value(), 0.5e9);
  EXPECT_NEAR(settled(1e18).time.value(), 0.49 * 4e-12 * 1e18 / (400.0 - 66.0), 1e-6) << "until the limit is kept";
  EXPECT_DOUBLE_EQ(settled(0.999 * flops_that_settle_at(1.8)).clock.value(), 1.8e9);
  EXPECT_DOUBLE_EQ(settled(0.999 * flops_that_settle_at(1.8)).time.value(), 1.0);
  EXPECT_LT(settled(1.001 * flops_that_settle_at(1.8)).clock.value(), 1.8e9);
  Gpu unlimited = gpu;
  unlimited.power.limit = Watts{0.0};
  EXPECT_DOUBLE_EQ(
      settle(unlimited, work_energy(gpu, Pipe::fp32, DType::fp32, 1e18, 0.0), Seconds{1.0}, Seconds{1.0}, Hertz{1.8e9})
          .time.value(),
      1.0);
}

// What does not go with the clock takes its time meanwhile: 0.6 of a second that is 0.4 of it at full clock.
TEST(WorkedClock, a_kernel_that_waits_is_slowed_by_what_its_clock_makes_of_the_rest) {
  EXPECT_DOUBLE_EQ(time_at(Seconds{1.0}, Seconds{0.4}, Hertz{1.6e9}, Hertz{0.8e9}).value(), 1.0);
  EXPECT_DOUBLE_EQ(time_at(Seconds{1.0}, Seconds{0.4}, Hertz{1.6e9}, Hertz{0.5e9}).value(), 1.28);
  EXPECT_DOUBLE_EQ(time_at(Seconds{1.0}, Seconds{2.0}, Hertz{1.6e9}, Hertz{1.6e9}).value(), 1.0);
  EXPECT_DOUBLE_EQ(time_at(Seconds{1.0}, Seconds{1.0}, Hertz{1.6e9}, Hertz{1.7e9}).value(), 1.0);
}

// A kernel's own bytes: those of memory-bound ones from the L2 count too, of products they are in the FLOPs' energy.
TEST(WorkedClock, a_kernel_is_held_by_its_own_energy) {
  const Gpu gpu = board();
  KernelLaunch launch;
  launch.pipe = Pipe::fp32, launch.type = DType::fp32, launch.flops = 1e12;
  KernelTime time;
  time.dram_read_bytes = 3e9, time.dram_write_bytes = 1e9, time.l2_bytes = 10e9;
  launch.work = MemoryBoundWork{};
  const WorkEnergy streamed = kernel_energy(launch, time, gpu);
  EXPECT_NEAR(streamed.core.value(), 4.0 + 0.48 * (0.2 + 0.6), 1e-12);
  EXPECT_NEAR(streamed.board.value(), 0.52 * 0.2, 1e-12);
  launch.work = GemmWork{};
  EXPECT_NEAR(kernel_energy(launch, time, gpu).core.value(), 4.0 + 0.48 * 0.2, 1e-12);
  launch.work = MemoryBoundWork{};
  time.l2_bytes = 3e9;  // fewer than come from the DRAM
  EXPECT_NEAR(kernel_energy(launch, time, gpu).core.value(), 4.0 + 0.48 * 0.2, 1e-12);

  KernelTime held;
  held.time = held.clocked = Seconds{1.0};
  launch.flops = flops_that_settle_at(0.9);
  launch.work = FixedWork{};
  limit_power(held, launch, gpu);
  const double pays = 2.0 / 2.5;
  EXPECT_NEAR(held.time.value(), 1.0 + pays, 1e-9);
  EXPECT_NEAR(held.held.value(), pays, 1e-9);
  EXPECT_NEAR(held.clock.value(), (1.8 - pays * 0.9) * 1e9, 1.0);
  EXPECT_NEAR(held.clocked.value(), 1.0, 0.0);
}

// No kernel of a continuing load is faster than one that is nothing but its multiply-adds at their peak.
TEST(WorkedClock, a_floor_is_what_the_limit_leaves_of_multiply_adds_at_their_peak) {
  Gpu gpu = board();
  gpu.sm.rates.sparsity_factor = 2.0;
  const double flops = 1e15;
  const auto least = [&](double rate, double hertz) { return 0.5 * flops / (2.0 * rate * gpu.sm.count * hertz); };
  const auto alone = [&](Pipe pipe, DType type, double seconds, double hertz) {
    return settle(gpu, work_energy(gpu, pipe, type, flops, 0.0), Seconds{seconds}, Seconds{seconds}, Hertz{hertz})
        .time.value();
  };
  const PowerLimit cores = power_limit(gpu, Pipe::fp32, DType::fp32, flops, 0.0);
  EXPECT_NEAR(cores.floor.value(), alone(Pipe::fp32, DType::fp32, least(gpu.sm.rates.fp32, 1.8e9), 1.8e9), 1e-9);
  EXPECT_GE(cores.floor.value(), 0.49 * 4e-12 * flops / (400.0 - 66.0)) << "the least energy there is";
  EXPECT_NEAR(cores.charged, cores.floor.value() / (cores.floor.value() + 0.5), 1e-12);
  gpu.power.fp32 = JoulesPerFlop{4e-10};
  EXPECT_NEAR(power_limit(gpu, Pipe::fp32, DType::fp32, flops, 0.0).floor.value(), 0.49 * 4e-10 * flops / 334.0, 1e-6);
  // mma.sync's are held to the rate of wgmma.
  EXPECT_NEAR(power_limit(gpu, Pipe::tensor_mma, DType::bf16, flops, 0.0).floor.value(),
              alone(Pipe::tensor_wgmma, DType::bf16, least(gpu.sm.rates.tensor_bf16, 1.6e9), 1.6e9), 1e-9);
  EXPECT_EQ(power_limit(gpu, Pipe::none, DType::bf16, flops, 0.0).floor.value(), 0.0);
  gpu.power.limit = Watts{60.0};
  EXPECT_NEAR(power_limit(gpu, Pipe::fp32, DType::fp32, flops, 0.0).floor.value(), 0.49 * 4e-10 * flops / 3.0, 1e-3)
      << "less than it draws idle: a twentieth is left for work";
}

}  // namespace
}  // namespace ridgeline::worked_clock
