// Utilisation and exposed latency of made-up timelines against sums over moments of the step: kernels of several
// streams, beside each other, of every size, some of which run many times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/timeline/utilization.h"
#include "tests/support/draws.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline {
namespace {

using testing_support::changing_seed;
using testing_support::Draws;
using testing_support::ProgramBuilder;
using testing_support::round_gpu;

constexpr double kDramBandwidth = 1e12;
constexpr int kSms = 100;

struct MadeKernel {
  double start = 0.0, end = 0.0, exposed = 0.0, dram_bytes = 0.0, math = 0.0;
  bool on_tensor_cores = false, communicates = false;
  std::int64_t blocks = 0;
  std::uint8_t stream = 0;
  [[nodiscard]] double seconds() const { return end - start; }
  [[nodiscard]] double of_sms() const { return std::min(1.0, static_cast<double>(blocks) / kSms); }
  [[nodiscard]] double of_dram() const { return std::min(1.0, dram_bytes / kDramBandwidth / seconds()); }
  [[nodiscard]] double alone() const { return stream == 0 ? 1.0 : exposed / seconds(); }
};

struct MadeStep {
  std::vector<MadeKernel> kernels;
  double length = 0.0;
  ProgramBuilder builder;
  std::vector<KernelTime> times;
  Timeline timeline;
  Gpu gpu = round_gpu();
};

MadeStep made_step(Draws& draws) {
  MadeStep step;
  step.gpu.sm.count = kSms;
  step.gpu.dram.bandwidth = BytesPerSecond(kDramBandwidth);
  double now = draws.between(1e-7, 1e-4);
  const std::size_t count = 1 + draws.index(12);
  for (std::size_t i = 0; i < count; ++i) {
    MadeKernel kernel;
    kernel.stream = static_cast<std::uint8_t>(draws.index(3) / 2);
    kernel.start = kernel.stream == 0 ? now : now * draws.share();
    kernel.end = kernel.start + draws.between(1e-6, 1e-4);
    if (kernel.stream == 0) now = kernel.end + draws.between(1e-8, 1e-5);
    kernel.exposed = kernel.stream == 0 ? kernel.seconds() : kernel.seconds() * draws.share();
    kernel.dram_bytes = draws.between(0.01, 3.0) * kernel.seconds() * kDramBandwidth;
    kernel.math = draws.share();
    kernel.on_tensor_cores = draws.share() < 0.5;
    kernel.blocks = 1 + static_cast<std::int64_t>(draws.index(2 * kSms));
    kernel.communicates = kernel.stream != 0 && draws.share() < 0.5;
    step.kernels.push_back(kernel);
  }
  for (const MadeKernel& kernel : step.kernels) step.length = std::max(step.length, kernel.end);
  step.length += draws.between(1e-8, 1e-5);
  step.builder.begin_step();
  for (const MadeKernel& kernel : step.kernels) {
    step.builder.host(HostClass::pointwise)
        .kernel(1e6 * kernel.seconds(), kernel.on_tensor_cores ? 1.0 : 0.0, false, kernel.blocks);
    if (kernel.communicates) step.builder.communicates();
    KernelSpan span;
    span.start = Seconds(kernel.start);
    span.end = Seconds(kernel.end);
    span.taken = span.end - span.start;
    span.exposed = Seconds(kernel.exposed);
    span.stream = kernel.stream;
    step.timeline.kernels.push_back(span);
  }
  step.builder.end_step();
  step.times = step.builder.times();
  for (std::size_t i = 0; i < step.times.size(); ++i) {
    const double read = draws.share();
    step.times[i].dram_read_bytes = read * step.kernels[i].dram_bytes;
    step.times[i].dram_write_bytes = (1.0 - read) * step.kernels[i].dram_bytes;
    step.times[i].math_utilization = step.kernels[i].math;
  }
  step.timeline.step = Seconds(step.length);
  return step;
}

/// What is used at one moment, times the share of a kernel's time in which no stream before its own runs.
Utilization at_moment(const MadeStep& step, double moment) {
  Utilization used;
  for (const MadeKernel& kernel : step.kernels) {
    if (moment < kernel.start || moment >= kernel.end) continue;
    used.kernel_active += kernel.alone();
    used.sm += kernel.alone() * kernel.of_sms();
    used.tensor += kernel.on_tensor_cores ? kernel.alone() * kernel.math : 0.0;
    used.dram += kernel.alone() * kernel.of_dram();
  }
  return used;
}

void expect_near(const Utilization& a, const Utilization& b, double tolerance) {
  EXPECT_NEAR(a.kernel_active, b.kernel_active, tolerance);
  EXPECT_NEAR(a.sm, b.sm, tolerance);
  EXPECT_NEAR(a.tensor, b.tensor, tolerance);
  EXPECT_NEAR(a.dram, b.dram, tolerance);
}

TEST(UtilizationByHand, EachStretchIsTheMeanOfItsMoments) {
  const std::uint64_t seed = changing_seed();
  SCOPED_TRACE(seed);
  Draws draws(seed);
  constexpr int kMoments = 2000;
  for (int turn = 0; turn < 60; ++turn) {
    const MadeStep step = made_step(draws);
    const int bins = 1 + static_cast<int>(draws.index(6));
    const auto found = utilization_over_time(step.builder.program(), step.times, step.timeline, step.gpu, bins);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(bins));
    for (int bin = 0; bin < bins; ++bin) {
      Utilization mean;
      for (int i = 0; i < kMoments; ++i) {
        const Utilization now = at_moment(step, (bin + (i + 0.5) / kMoments) * step.length / bins);
        mean.kernel_active += now.kernel_active / kMoments;
        mean.sm += now.sm / kMoments;
        mean.tensor += now.tensor / kMoments;
        mean.dram += now.dram / kMoments;
      }
      // A moment more or less at either end of each kernel.
      expect_near(found[static_cast<std::size_t>(bin)], mean,
                  2.0 * static_cast<double>(step.kernels.size()) / kMoments);
    }
  }
}

TEST(UtilizationByHand, AKernelThatRepeatsIsSpreadOverAllItsRuns) {
  const std::uint64_t seed = changing_seed();
  SCOPED_TRACE(seed);
  Draws draws(seed);
  for (int turn = 0; turn < 40; ++turn) {
    MadeStep step = made_step(draws);
    step.kernels.resize(1);
    const std::int64_t times = 2 + static_cast<std::int64_t>(draws.index(20));
    ProgramBuilder builder;
    builder.begin_step().kernel(1.0, step.kernels[0].on_tensor_cores ? 1.0 : 0.0, false, step.kernels[0].blocks);
    builder.end_step();
    step.timeline.kernels.resize(1);
    step.timeline.kernels[0].stream = 0;
    step.times.resize(1);
    const MadeKernel& kernel = step.kernels[0];
    step.timeline.repeat.launches = {0, 1, times};
    const double idle = draws.between(1e-8, 1e-5),
                 end = kernel.start + static_cast<double>(times) * (kernel.seconds() + idle);
    step.timeline.repeat.gpu_end = Seconds(end);
    step.timeline.step = Seconds(end + idle);
    const Utilization all = utilization(builder.program(), step.times, step.timeline, step.gpu);
    const double active = static_cast<double>(times) * kernel.seconds() / (end + idle);
    expect_near(all,
                {active, active * kernel.of_sms(), kernel.on_tensor_cores ? active * kernel.math : 0.0,
                 active * kernel.of_dram()},
                1e-9);
    const ExposedLatency latency = exposed_latency(builder.program(), step.times, step.timeline, step.gpu);
    EXPECT_NEAR(latency.math.value(), static_cast<double>(times) * kernel.seconds() * kernel.math, 1e-12);
  }
}

TEST(UtilizationByHand, ExposedLatencyIsASumOverKernels) {
  const std::uint64_t seed = changing_seed();
  SCOPED_TRACE(seed);
  Draws draws(seed);
  for (int turn = 0; turn < 200; ++turn) {
    MadeStep step = made_step(draws);
    step.timeline.starved = Seconds(draws.between(1e-7, 1e-4));
    step.timeline.idle = Seconds(draws.between(1e-7, 1e-4));
    step.timeline.host = Seconds(draws.between(1e-7, 1e-4));
    double math = 0.0, memory = 0.0, both = 0.0, inside = 0.0, communication = 0.0;
    for (const MadeKernel& kernel : step.kernels) {
      const double seconds = kernel.stream == 0 ? kernel.seconds() : kernel.exposed;
      if (kernel.communicates) {
        communication += seconds;
        continue;
      }
      math += seconds * kernel.math;
      memory += seconds * kernel.of_dram();
      both += seconds * std::min(kernel.math, kernel.of_dram());
      inside += seconds * (1.0 - std::max(kernel.math, kernel.of_dram()));
    }
    const ExposedLatency found = exposed_latency(step.builder.program(), step.times, step.timeline, step.gpu);
    EXPECT_NEAR(found.math.value(), math, 1e-12);
    EXPECT_NEAR(found.memory.value(), memory, 1e-12);
    EXPECT_NEAR(found.overlapped.value(), both, 1e-12);
    EXPECT_NEAR(found.in_kernels.value(), inside, 1e-12);
    EXPECT_NEAR(found.communication.value(), communication, 1e-12);
    const double starved = step.timeline.starved.value();
    EXPECT_EQ(found.host_exposed.value(), starved);
    EXPECT_NEAR(found.gaps.value(), std::max(0.0, step.timeline.idle.value() - starved), 1e-15);
    EXPECT_NEAR(found.host_hidden.value(), std::max(0.0, step.timeline.host.value() - starved), 1e-15);
  }
}

TEST(UtilizationByHand, AStepThatTakesNoTimeUsesNothing) {
  Draws draws(1);
  MadeStep step = made_step(draws);
  step.timeline.step = Seconds(0.0);
  for (const Utilization& bin : utilization_over_time(step.builder.program(), step.times, step.timeline, step.gpu, 3))
    EXPECT_EQ(bin.kernel_active + bin.sm + bin.tensor + bin.dram, 0.0);
}

}  // namespace
}  // namespace ridgeline
