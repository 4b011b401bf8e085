// What a step draws: energies of arithmetic and of bytes, worked out by hand.
#include <gtest/gtest.h>

#include "sim/timeline/power.h"
#include "sim/timing/clock_law.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;

/// Two joules of arithmetic, and as much of reads and writes: 10 + 10 GB at 0.1 nJ a byte.
struct TwoKernels {
  Gpu gpu = round_gpu();
  ProgramBuilder builder;
  std::vector<KernelTime> times;
  TwoKernels() {
    builder.begin_step().kernel(1000, 2e12).kernel(1000).end_step();
    times = builder.times();
    times[1].dram_read_bytes = times[1].dram_write_bytes = 1e10;
  }
  [[nodiscard]] double joules(Hertz clock) const {
    const StepLoad load(builder.program(), times, gpu);
    return (load.power(clock, Seconds{1.0}) - idle_power(gpu, clock)).value();
  }
};

TEST(StepEnergy, ArithmeticReadsAndWritesAddUp) {
  TwoKernels step;
  EXPECT_NEAR(step.joules(step.gpu.clock.boost), 4.0, 1e-9);
  step.times[1].dram_write_bytes = 0.0;
  EXPECT_NEAR(step.joules(step.gpu.clock.boost), 3.0, 1e-9);
  step.times[1].dram_read_bytes = 0.0;
  EXPECT_NEAR(step.joules(step.gpu.clock.boost), 2.0, 1e-9);
}

// At the knee the SMs have 0.7 of the voltage and 0.49 of the energy; the DRAM keeps its own.
TEST(StepEnergy, TheVoltageLowersWhatTheSmsUseAndNotTheBoard) {
  TwoKernels step;
  const WorkEnergy bytes = kernel_energy(step.builder.program().launches[1], step.times[1], step.gpu);
  EXPECT_GT(bytes.board.value(), 0.0);
  EXPECT_NEAR((bytes.board + bytes.core).value(), 2.0, 1e-9);
  const double expected = 0.49 * (2.0 + bytes.core.value()) + bytes.board.value();
  EXPECT_NEAR(step.joules(step.gpu.clock.knee), expected, 1e-9);
}

// 4 J in all, on two boards of one process 2 J on each; a kernel more on the second one makes it 4 J.
TEST(StepEnergy, OfSeveralBoardsTheOneThatDoesMostDecides) {
  const Gpu gpu = round_gpu();
  ProgramBuilder builder;
  builder.begin_step().kernel(1000, 2e12).kernel(1000, 2e12).kernel(1000, 2e12).end_step();
  StepProgram program = builder.program();
  const auto joules = [&] {
    const StepLoad load(program, builder.times(), gpu);
    return (load.power(gpu.clock.boost, Seconds{1.0}) - idle_power(gpu, gpu.clock.boost)).value();
  };
  EXPECT_NEAR(joules(), 6.0, 1e-9);
  std::vector<Action> actions(program.actions.begin(), program.actions.end());
  std::uint8_t launches = 0;
  for (Action& action : actions)
    if (action.kind == Action::Kind::launch) action.stream = launches++ == 0 ? 0 : 1;
  program.actions = actions;
  EXPECT_NEAR(joules(), 6.0, 1e-9) << "streams of one board";
  program.device = 0;
  EXPECT_NEAR(joules(), 4.0, 1e-9);
}

TEST(StepEnergy, ItsRangeIsThatOfTheTimeAndOfTheWork) {
  Gpu gpu = round_gpu();  // idle 100 W, limit 500 W
  const EnergyRange range = step_energy(Watts{300.0}, Seconds{2.0}, Seconds{1.5}, Seconds{3.0}, gpu);
  EXPECT_DOUBLE_EQ(range.energy.value(), 600.0);
  EXPECT_DOUBLE_EQ(range.low.value(), 100.0 * 1.5 + 400.0 * 0.75);
  EXPECT_DOUBLE_EQ(range.high.value(), 100.0 * 3.0 + 400.0 * 1.25);
  // No more than the limit draws.
  EXPECT_DOUBLE_EQ(step_energy(Watts{480.0}, Seconds{2.0}, Seconds{2.0}, Seconds{2.1}, gpu).high.value(), 500.0 * 2.1);
}

}  // namespace
}  // namespace ridgeline
