#include <gtest/gtest.h>

#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/timeline/power.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}

/// 1 ms: `tflops` averaged over it, done in `tensor_share` of it, `dram` bytes a second in the rest.
struct Step {
  ProgramBuilder builder;
  std::vector<KernelTime> times;
  Step(double tflops, double tensor_share, double dram = 0.0) {
    builder.begin_step().kernel(1000 * tensor_share, tflops * 1e12 * 1e-3).kernel(1000 * (1 - tensor_share)).end_step();
    times = builder.times();
    times[1].dram_read_bytes = dram * 1e-3;
  }
  [[nodiscard]] StepEnergy energy(const Gpu& gpu) const { return energy_of(builder.program(), times, gpu); }
  [[nodiscard]] double slowdown(const Gpu& gpu) const { return tensor_slowdown(energy(gpu), Seconds(1e-3), gpu); }
};

TEST(Power, back_to_back_products_settle_at_the_rate_that_was_measured) {
  // 783 TFLOP/s for the first 30 ms, 656 from then on.
  EXPECT_NEAR(Step(783, 1.0).slowdown(h200()), 783.0 / 656.0, 0.015);
}

TEST(Power, steps_slow_down_as_the_same_kernels_did_in_recorded_ones) {
  // GPT-2 steps of an H200, 4 TB/s in what is not matrix products: 60 % of the eager steps, half of the compiled ones.
  EXPECT_NEAR(Step(190, 0.4, 1.45e12).slowdown(h200()), 1.0, 0.005);
  EXPECT_NEAR(Step(306, 0.4, 1.4e12).slowdown(h200()), 1.011, 0.01);
  EXPECT_NEAR(Step(372, 0.55, 1.2e12).slowdown(h200()), 1.046, 0.01);
  EXPECT_NEAR(Step(408, 0.6, 1.2e12).slowdown(h200()), 1.075, 0.01);
}

TEST(Power, a_step_just_under_the_limit_is_not_slowed_and_one_just_over_it_is) {
  // 100 W idle, 1 pJ a FLOP, of which the round GPU's tensor cores do none at all: no rate, so no higher energy.
  EXPECT_DOUBLE_EQ(Step(399, 1.0).slowdown(round_gpu()), 1.0);
  EXPECT_GT(Step(401, 1.0).slowdown(round_gpu()), 1.0);
}

TEST(Power, a_slowed_step_draws_the_limit) {
  const Step step(408, 0.6, 1.2e12);
  const double slowdown = step.slowdown(h200());
  const StepEnergy energy = step.energy(h200());
  const Seconds longer = Seconds(1e-3) + energy.tensor_time * (slowdown - 1.0);
  EXPECT_NEAR(power_of(energy, longer, slowdown, h200()).value(), h200().power.limit.value(), 1e-3);
}

TEST(Power, more_work_in_the_same_time_never_slows_less) {
  double last = 1.0;
  for (double tflops = 100; tflops < 900; tflops += 20) {
    const double slowdown = Step(tflops, 0.9).slowdown(h200());
    EXPECT_GE(slowdown, last);
    last = slowdown;
  }
}

TEST(Power, memory_traffic_above_the_limit_is_not_blamed_on_the_tensor_cores) {
  EXPECT_DOUBLE_EQ(Step(1, 0.1, 1e14).slowdown(h200()), 1.0);
}

}  // namespace
}  // namespace ridgeline
