#include "sim/timeline/utilization.h"

#include <gtest/gtest.h>

#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;
using testing_support::round_gpu;
using testing_support::round_host;

struct Step {
  ProgramBuilder builder;
  std::vector<KernelTime> times;
  Gpu gpu = round_gpu();
  Timeline timeline;
  Utilization over_all;
  ExposedLatency latency;

  explicit Step(ProgramBuilder made, double bytes = 0.0, double math = 0.0)
      : builder(std::move(made)), times(builder.times()) {
    gpu.dram.bandwidth = BytesPerSecond(1e12);
    for (KernelTime& time : times) {
      time.dram_read_bytes = bytes;
      time.math_utilization = math;
    }
    timeline = run_timeline(builder.program(), times, gpu, round_host(), {});
    over_all = utilization(builder.program(), times, timeline, gpu);
    latency = exposed_latency(builder.program(), times, timeline, gpu);
  }
};

ProgramBuilder kernels_of(double us, double tensor_flops, std::int64_t blocks) {
  ProgramBuilder builder;
  builder.begin_step();
  for (int i = 0; i < 20; ++i) builder.host(HostClass::pointwise).kernel(us, tensor_flops, false, blocks);
  builder.end_step();
  return builder;
}

TEST(Utilization, a_kernel_of_one_block_keeps_the_gpu_active_and_its_sms_idle) {
  const Step step(kernels_of(49, 0.0, 1));
  EXPECT_NEAR(step.over_all.kernel_active, 0.98, 1e-9);
  EXPECT_NEAR(step.over_all.sm, 0.0098, 1e-9);
}

TEST(Utilization, memory_and_tensor_cores_count_what_they_did_over_what_they_could) {
  const Step step(kernels_of(49, 1.0, 100), 24.5e6, 0.25);
  EXPECT_NEAR(step.over_all.dram, 0.5 * 0.98, 1e-9);
  EXPECT_NEAR(step.over_all.tensor, 0.25 * 0.98, 1e-9);
}

TEST(Utilization, math_on_the_cuda_cores_is_no_tensor_activity) {
  const Step step(kernels_of(49, 0.0, 100), 0.0, 0.25);
  EXPECT_EQ(step.over_all.tensor, 0.0);
  EXPECT_GT(step.latency.math, Seconds{0});
}

TEST(Utilization, stretches_of_the_step_average_to_the_step) {
  const Step step(kernels_of(7, 1.0, 50), 1e6, 0.5);
  for (const int bins : {1, 7, 200}) {
    Utilization mean;
    for (const Utilization& bin :
         utilization_over_time(step.builder.program(), step.times, step.timeline, step.gpu, bins)) {
      EXPECT_LE(bin.kernel_active, 1.0 + 1e-9);
      mean.kernel_active += bin.kernel_active / bins;
      mean.dram += bin.dram / bins;
    }
    EXPECT_NEAR(mean.kernel_active, step.over_all.kernel_active, 1e-9) << bins;
    EXPECT_NEAR(mean.dram, step.over_all.dram, 1e-9) << bins;
  }
}

TEST(ExposedLatency, its_parts_add_up_to_the_step_whether_host_or_gpu_is_slower) {
  for (const double us : {1.0, 3.9, 4.1, 50.0}) {
    const Step step(kernels_of(us, 1.0, 100), 1e6 * us / 4, 0.5);
    EXPECT_NEAR(step.latency.total().value(), step.timeline.step.value(), 1e-12) << us;
  }
}

TEST(ExposedLatency, long_kernels_hide_the_host_and_short_ones_show_it) {
  const Step hidden(kernels_of(50, 0.0, 100)), shown(kernels_of(1, 0.0, 100));
  EXPECT_NEAR(in_microseconds(hidden.latency.host_exposed), 0.0, 1e-9);
  EXPECT_NEAR(in_microseconds(hidden.latency.host_hidden), 20 * 5, 1e-6);
  // 5 us of host for each kernel of 1 us with its gap of 1 us.
  EXPECT_NEAR(in_microseconds(shown.latency.host_exposed), 20 * 3, 1e-6);
  EXPECT_NEAR(in_microseconds(shown.latency.gaps), 20 * 1, 1e-6);
}

}  // namespace
}  // namespace ridgeline
