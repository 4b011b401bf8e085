// A step's kernels as the power limit sees them: stretched, repeated, held back on their own.
#include <gtest/gtest.h>

#include "sim/timeline/power.h"
#include "sim/timeline/timeline.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

/// Kernels of 100, 200 and 100 us: a product of 2e8 FLOPs (0.2 mJ), one of memory alone (4e5 bytes), the product again.
struct ThreeKernels {
  ProgramBuilder builder;
  std::vector<KernelTime> times;
  Gpu gpu = round_gpu();
  ThreeKernels() {
    builder.begin_step().kernel(100, 2e8).kernel(200).kernel(100, 2e8).end_step();
    times = builder.times();
    times[0].clocked = times[2].clocked = microseconds(60);
    times[1].dram_read_bytes = 4e5;
    times[1].held = microseconds(50);
    times[1].clocked = microseconds(150);
    times[1].clock = Hertz{0.6e9};
  }
  [[nodiscard]] StepLoad load() const { return {builder.program(), times, gpu}; }
};

TEST(StepLoad, energies_of_kernels_add_up_to_the_steps) {
  const ThreeKernels three;
  const StepLoad load = three.load();
  for (const double clock : {1e9, 0.8e9, 0.5e9}) {
    const Hertz at{clock};
    const Joules sum = load.energy_of(0, at) + load.energy_of(1, at) + load.energy_of(2, at);
    EXPECT_NEAR(sum.value(), load.energy(at).value(), 1e-12);
    EXPECT_EQ(load.energy_of(0, at).value(), load.energy_of(2, at).value());
    EXPECT_NEAR(load.power(at, microseconds(400)).value(), idle_power(three.gpu, at).value() + sum.value() / 400e-6,
                1e-9);
  }
  const Hertz top{1e9};
  EXPECT_NEAR(load.energy_of(0, top).value(), 2e8 * 1e-12, 1e-12) << "a picojoule a FLOP";
  const WorkEnergy bytes = work_energy(three.gpu, Pipe::none, DType::bf16, 0, 4e5);
  EXPECT_NEAR(load.energy_of(1, top).value(), bytes.at(voltage(three.gpu, Hertz{0.6e9})).value(), 1e-15)
      << "at its own clock";
  EXPECT_LT(load.energy_of(1, top).value(), 4e5 * 1e-10);
  EXPECT_LT(load.energy_of(0, Hertz{0.6e9}), load.energy_of(0, top)) << "a lower voltage";
  EXPECT_EQ(load.power(top, Seconds{0}), idle_power(three.gpu, top));
}

TEST(StepLoad, what_a_limit_holds_back_on_its_own_is_not_held_twice) {
  const ThreeKernels three;
  const StepLoad load = three.load();
  const Hertz top{1e9}, low{0.5e9};
  EXPECT_EQ(load.size(), 3u);
  EXPECT_NEAR(in_microseconds(load.held(0, top)), 0, 1e-9);
  EXPECT_NEAR(in_microseconds(load.held(1, top)), 50, 1e-9);
  EXPECT_NEAR(in_microseconds(load.held(0, low)), in_microseconds(load.duration(0, low)) - 100, 1e-9);
  EXPECT_NEAR(in_microseconds(load.held(1, low)), in_microseconds(load.duration(1, low)) - 150, 1e-9);
  EXPECT_GT(load.held(0, low).value(), 0.0);
  EXPECT_EQ(load.clock_of(0, top), top);
  EXPECT_EQ(load.clock_of(1, top), Hertz{0.6e9});
  EXPECT_EQ(load.clock_of(1, low), low);
  std::vector<double> all(3);
  load.durations(low, all);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(all[i], load.duration(i, low).value());
  EXPECT_EQ(load.kind_of(0) == load.kind_of(1), false);
}

TEST(StepLoad, stretched_kernels_take_so_many_times_as_long_at_every_clock) {
  const ThreeKernels three;
  const StepLoad load = three.load(), twice = load.stretched(2.0);
  const std::vector<double> factors{1.0, 3.0, 1.5};
  const StepLoad each = load.stretched(factors);
  ASSERT_EQ(each.size(), 3u);
  for (const double clock : {1e9, 0.8e9, 0.4e9}) {
    const Hertz at{clock};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(twice.duration(i, at).value(), 2 * load.duration(i, at).value(), 1e-15);
      EXPECT_NEAR(twice.held(i, at).value(), 2 * load.held(i, at).value(), 1e-15);
      EXPECT_NEAR(each.duration(i, at).value(), factors[i] * load.duration(i, at).value(), 1e-15);
      EXPECT_NEAR(each.held(i, at).value(), factors[i] * load.held(i, at).value(), 1e-15);
      EXPECT_EQ(each.clock_of(i, at), load.clock_of(i, at));
      EXPECT_EQ(each.energy_of(i, at), load.energy_of(i, at)) << "the same work";
    }
  }
}

TEST(StepLoad, repeated_launches_have_the_energy_of_all_their_runs) {
  const ThreeKernels three;
  StepProgram program = three.builder.program();
  const std::uint32_t begin = program.steps.back().begin;
  program.repeats.push_back({{begin + 1, begin + 3}, 5});
  const StepLoad once = three.load(), five(program, three.times, three.gpu);
  const Hertz at{0.7e9};
  EXPECT_NEAR(five.energy_of(0, at).value(), once.energy_of(0, at).value(), 1e-15);
  EXPECT_NEAR(five.energy_of(1, at).value(), 5 * once.energy_of(1, at).value(), 1e-12);
  EXPECT_NEAR(five.energy_of(2, at).value(), 5 * once.energy_of(2, at).value(), 1e-12);
  EXPECT_NEAR(five.energy(at).value(), (five.energy_of(0, at) + five.energy_of(1, at) + five.energy_of(2, at)).value(),
              1e-12);
  EXPECT_EQ(five.duration(2, at), once.duration(2, at)) << "of one run";
}

TEST(StepLoad, settles_where_the_draw_meets_the_limit) {
  ThreeKernels three;
  const auto step = [&](const StepLoad& load) {
    return [&load](Hertz f) { return load.duration(0, f) + load.duration(1, f) + load.duration(2, f); };
  };
  const Hertz top = top_clock(three.gpu);
  three.gpu.power.limit = Watts{0};
  const StepLoad unlimited = three.load();
  EXPECT_EQ(unlimited.settle(step(unlimited)), top);
  const StepLoad free = three.load();
  const Watts most = free.power(top, step(free)(top)), least = free.power(Hertz{0.2e9}, step(free)(Hertz{0.2e9}));
  ASSERT_GT(most, least);
  for (const double share : {0.2, 0.5, 0.9}) {
    three.gpu.power.limit = least + (most - least) * share;
    const StepLoad load = three.load();
    const Hertz settled = load.settle(step(load));
    EXPECT_LE(load.power(settled, step(load)(settled)).value(), three.gpu.power.limit.value() * (1 + 1e-12));
    const Hertz above = settled * 1.00003;
    EXPECT_GT(load.power(above, step(load)(above)), three.gpu.power.limit) << "and no lower than it must be";
  }
  three.gpu.power.limit = least * 0.9;
  const StepLoad load = three.load();
  EXPECT_EQ(load.settle(step(load)), Hertz{0.2e9}) << "the lowest, where none is low enough";
}

TEST(StepEnergy, idling_goes_with_time_and_work_is_known_to_a_quarter) {
  Gpu gpu = round_gpu();
  const Seconds step{2}, low{1.5}, high{4};
  const EnergyRange range = step_energy(Watts{300}, step, low, high, gpu);
  EXPECT_NEAR(range.energy.value(), 600, 1e-9);
  EXPECT_NEAR(range.low.value(), 150 + 0.75 * 400, 1e-9);
  EXPECT_NEAR(range.high.value(), 400 + 1.25 * 400, 1e-9);
  EXPECT_NEAR(step_energy(Watts{700}, step, low, high, gpu).energy.value(), 1000, 1e-9) << "the board's limit";
  EXPECT_NEAR(step_energy(Watts{500}, step, low, step, gpu).high.value(), 1000, 1e-9) << "and of the most";
  const EnergyRange idle = step_energy(Watts{50}, step, low, high, gpu);
  EXPECT_NEAR(idle.energy.value(), 100, 1e-9);
  EXPECT_NEAR(idle.low.value(), 100, 1e-9) << "no work, and never above the middle";
  EXPECT_NEAR(idle.high.value(), 400, 1e-9);
  EXPECT_NEAR(step_energy(Watts{120}, step, low, Seconds{0.5}, gpu).high.value(), 240, 1e-9) << "never below it";
  gpu.power.limit = Watts{0};
  EXPECT_NEAR(step_energy(Watts{700}, step, low, high, gpu).high.value(), 400 + 1.25 * 1200, 1e-9) << "no limit";
}

TEST(Timeline, says_clocks_and_what_the_limit_holds_of_its_kernels) {
  const ThreeKernels three;
  StepProgram program = three.builder.program();
  const std::uint32_t begin = program.steps.back().begin;
  program.repeats.push_back({{begin + 1, begin + 2}, 4});
  TimelineOptions options;
  options.throttle = false;
  const Timeline timeline = run_timeline(program, three.times, three.gpu, round_host(), options);
  // Six kernels of 100, 4 x 200 and 100 us, a gap of one before each.
  EXPECT_NEAR(in_microseconds(timeline.gpu_busy), 1000, 1e-6);
  EXPECT_NEAR(in_microseconds(timeline.step), 1006, 1e-6);
  EXPECT_NEAR(in_microseconds(timeline.idle), 6, 1e-6);
  EXPECT_NEAR(in_microseconds(timeline.held), 4 * 50, 1e-6);
  EXPECT_NEAR(timeline.clock.value(), (200 * 1e9 + 800 * 0.6e9) / 1000, 1);
  EXPECT_EQ(timeline.settled, Hertz{1e9});
  EXPECT_EQ(timeline.contention.value(), 0.0);
  EXPECT_EQ(timeline.kernel_count(), 6);
  EXPECT_EQ(timeline.kernels.size(), 3u);
  EXPECT_EQ(timeline.repeat.launches.times, 4);
  EXPECT_NEAR(in_microseconds(timeline.repeat.gpu_end - timeline.kernels[1].end), 3 * 201, 1e-6);
  EXPECT_LT(timeline.repeat.host_end, timeline.repeat.gpu_end);
  EXPECT_EQ(timeline.kernels[1].held, microseconds(50));
  EXPECT_NEAR(timeline.power.value(),
              StepLoad(program, three.times, three.gpu).power(Hertz{1e9}, timeline.step).value(), 1e-9);
  EXPECT_GE(timeline.steps_run, 2);
  EXPECT_LE(timeline.host_begin.value(), 0.0) << "the host is ahead";
}

}  // namespace
}  // namespace ridgeline
