// What a timeline says of a step against its kernels, looked at one by one: whatever is trained how on how many GPUs,
// the parts add up to the whole, and nothing lies where it cannot.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/timeline/host_slices.h"
#include "sim/timeline/utilization.h"

namespace ridgeline {
namespace {

struct TimelineCase {
  const char* name;
  std::vector<std::pair<const char*, const char*>> settings;
};
std::ostream& operator<<(std::ostream& out, const TimelineCase& c) { return out << c.name; }

constexpr const char* kSmallGpt =
    "{family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: 1000, max_positions: 256}";

Scenario scenario_of(const TimelineCase& c) {
  ScenarioSource source;
  std::vector<std::pair<const char*, const char*>> all{{"model", kSmallGpt},
                                                       {"training.micro_batch", "8"},
                                                       {"training.sequence_length", "256"},
                                                       {"training.precision", "amp-bf16"}};
  all.insert(all.end(), c.settings.begin(), c.settings.end());
  for (const auto& [key, value] : all) source.overrides.push_back({key, value, ""});
  return load_scenario(source);
}

class TimelineParts : public ::testing::TestWithParam<TimelineCase> {
 protected:
  [[nodiscard]] double times_of(std::size_t launch) const {
    return static_cast<double>(line_.repeat.launches.times_of(launch));
  }
  /// `sum` over kernels of what `of` says, a repeated one as often as it runs.
  template <typename Of>
  double sum(Of of) const {
    double all = 0.0;
    for (std::size_t i = 0; i < line_.kernels.size(); ++i) all += times_of(i) * of(i);
    return all;
  }
  [[nodiscard]] bool one_stream() const {
    return std::all_of(line_.kernels.begin(), line_.kernels.end(), [](const KernelSpan& k) { return k.stream == 0; });
  }
  [[nodiscard]] IssuePlan plan() const {
    const Scenario& s = run_.scenario();
    return s.cuda_graphs ? plan_graph(run_.program(), s.gpu, s.host) : plan_issues(run_.program(), s.gpu, s.host);
  }
  /// Seconds in which a kernel runs on any stream.
  [[nodiscard]] double covered() const {
    std::vector<std::pair<double, double>> spans;
    for (const KernelSpan& k : line_.kernels) spans.emplace_back(k.start.value(), k.end.value());
    std::sort(spans.begin(), spans.end());
    double all = 0.0, until = -1e300;
    for (const auto& [start, end] : spans) {
      all += std::max(0.0, end - std::max(start, until));
      until = std::max(until, end);
    }
    return all;
  }

  Session session_;
  const StepRun run_{session_, scenario_of(GetParam()), "analytic"};
  const Timeline& line_ = run_.timeline();
  const double step_ = line_.step.value();
};

TEST_P(TimelineParts, KernelsOfAStreamFollowEachOtherBehindTheirLaunches) {
  const double latency = run_.scenario().cuda_graphs ? 0.0 : run_.scenario().gpu.launch.start_latency.value();
  std::vector<double> end(256, -1e300);
  double issued = -1e300;
  for (const KernelSpan& k : line_.kernels) {
    EXPECT_GE(k.issued.value(), issued - 1e-12);
    EXPECT_GE(k.start.value(), k.issued.value() + latency - 1e-12);
    EXPECT_GE(k.start.value(), end[k.stream] - 1e-12);
    EXPECT_GE(k.end, k.start);
    issued = k.issued.value();
    end[k.stream] = k.end.value();
  }
}

TEST_P(TimelineParts, AKernelTakesItsTimeAndWhatHoldsItBack) {
  const std::vector<KernelTime>& times = run_.times();
  ASSERT_EQ(line_.kernels.size(), times.size());
  const double shortest = run_.scenario().cuda_graphs ? run_.scenario().gpu.launch.graph_period.value() : 0.0;
  double contention = 0.0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const KernelSpan& k = line_.kernels[i];
    const double alone = (times[i].time - times[i].held + k.held).value(), took = (k.end - k.start).value();
    EXPECT_GE(took, alone * (1.0 - 1e-9)) << i;
    EXPECT_GE(k.held, times[i].held * (1.0 - 1e-9)) << i;
    if (one_stream()) {
      EXPECT_LE(took, std::max(alone, shortest) * (1.0 + 1e-9)) << i;
    } else if (k.stream == 0) {
      contention += took - alone;
    }
  }
  EXPECT_NEAR(line_.contention.value(), contention, 1e-9 * step_);
  EXPECT_NEAR(line_.held.value(), sum([&](std::size_t i) { return line_.kernels[i].held.value(); }), 1e-9 * step_);
}

TEST_P(TimelineParts, BusyAndIdleAreTheStep) {
  const double exposed = sum([&](std::size_t i) { return line_.kernels[i].exposed.value(); });
  EXPECT_NEAR(line_.gpu_busy.value(), exposed, 1e-9 * step_);
  EXPECT_NEAR(line_.idle.value(), std::max(0.0, step_ - exposed), 1e-9 * step_);
  EXPECT_LE(line_.starved.value(), line_.idle.value() + 1e-12);
  EXPECT_GE(line_.starved.value(), 0.0);
  EXPECT_EQ(line_.host_bound, line_.starved.value() > 0.1 * step_);
  for (const KernelSpan& k : line_.kernels) {
    if (k.stream == 0) {
      EXPECT_NEAR(k.exposed.value(), (k.end - k.start).value(), 1e-9 * step_);
    }
    EXPECT_LE(k.exposed.value(), (k.end - k.start).value() + 1e-12);
  }
  if (line_.repeat.launches.times <= 1 && covered() <= step_) {
    EXPECT_NEAR(exposed, covered(), 1e-9 * step_);
  }
}

TEST_P(TimelineParts, TheHostDoesOneThingAfterTheOther) {
  const IssuePlan planned = plan();
  double work = 0.0;
  const std::vector<HostSlice> slices = host_slices(planned, line_, run_.scenario().gpu);
  ASSERT_EQ(slices.size(), planned.groups.size());
  ASSERT_FALSE(slices.empty());
  const bool repeats = line_.repeat.launches.times > 1;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const HostGroup& group = slices[i].group;
    const double own = group.kind == HostGroup::Kind::graph ? group.rest : group.share * group.launches + group.rest;
    if (group.kind != HostGroup::Kind::wait) {
      EXPECT_GE(slices[i].end - slices[i].begin, own - 1e-12) << i;
    }
    if (i > 0 && !repeats) {
      EXPECT_EQ(slices[i].begin, slices[i - 1].end) << i;
    }
    work += own;
  }
  EXPECT_NEAR(slices.front().begin, line_.host_begin.value(), 1e-12);
  if (!repeats) {
    EXPECT_NEAR(work, line_.host.value(), 1e-9 * step_);
    // A host that the GPU waits for does the same again a step later; another may still be running ahead.
    const double took = slices.back().end - slices.front().begin;
    EXPECT_LE(took, step_ * (1.0 + 2e-6));
    if (line_.host_bound) {
      EXPECT_NEAR(took, step_, 2e-6 * step_);
    }
  }
}

TEST_P(TimelineParts, StretchesOfTheStepAverageToTheStep) {
  const Gpu& gpu = run_.scenario().gpu;
  const Utilization whole = utilization(run_.program(), run_.times(), line_, gpu);
  const std::vector<Utilization> parts = utilization_over_time(run_.program(), run_.times(), line_, gpu, 9);
  Utilization mean;
  for (const Utilization& part : parts) {
    mean.sm += part.sm / 9.0;
    mean.tensor += part.tensor / 9.0;
    mean.dram += part.dram / 9.0;
    mean.kernel_active += part.kernel_active / 9.0;
  }
  EXPECT_NEAR(mean.sm, whole.sm, 1e-9);
  EXPECT_NEAR(mean.tensor, whole.tensor, 1e-9);
  EXPECT_NEAR(mean.dram, whole.dram, 1e-9);
  EXPECT_NEAR(mean.kernel_active, whole.kernel_active, 1e-9);
  EXPECT_NEAR(whole.kernel_active, line_.active_fraction(), 1e-6);
  EXPECT_NEAR(whole.sm, line_.sm_utilization, 1e-6);
  EXPECT_EQ(whole.tensor > 0.0, run_.scenario().training.precision != Precision::fp32);
  EXPECT_LE(whole.tensor, whole.kernel_active);
}

TEST_P(TimelineParts, WhatLimitsAndWhatHidesAddUpToTheStep) {
  const ExposedLatency parts = exposed_latency(run_.program(), run_.times(), line_, run_.scenario().gpu);
  if (line_.gpu_busy <= line_.step) {
    EXPECT_NEAR(parts.total().value(), step_, 1e-9 * step_);
  }
  EXPECT_NEAR((parts.host_exposed + parts.host_hidden).value(), std::max(line_.host, line_.starved).value(), 1e-12);
  EXPECT_NEAR((parts.host_exposed + parts.gaps).value(), line_.idle.value(), 1e-12);
  EXPECT_EQ(parts.communication > Seconds{}, !one_stream());
}

TEST_P(TimelineParts, EnergyIsThatOfTheKernelsAndOfIdling) {
  const Gpu& gpu = run_.scenario().gpu;
  const StepLoad load(run_.program(), run_.times(), gpu);
  double energy = idle_power(gpu, line_.settled).value() * step_;
  for (std::size_t i = 0; i < load.size(); ++i) energy += load.energy_of(i, line_.settled).value();
  EXPECT_NEAR(line_.power.value() * step_, energy, 1e-9 * energy);
  EXPECT_LE(line_.power.value(), gpu.power.limit.value() * (1.0 + 1e-4));
  EXPECT_LE(line_.settled, top_clock(gpu));
  EXPECT_LE(line_.clock, line_.settled * (1.0 + 1e-9));
}

const TimelineCase kTimelineCases[] = {
    {"host_bound", {{"hardware", "nvidia-h200-sxm-141gb"}}},
    {"gpu_bound", {{"hardware", "nvidia-t4"}, {"training.precision", "fp32"}}},
    {"reads_the_loss", {{"hardware", "nvidia-a100-sxm4-80gb"}, {"training.reads_loss", "micro-batch"}}},
    {"micro_batches", {{"hardware", "nvidia-a100-sxm4-80gb"}, {"training.gradient_accumulation", "40"}}},
    {"graph", {{"hardware", "nvidia-h200-sxm-141gb"}, {"training.cuda_graphs", "true"}}},
    {"compiled", {{"hardware", "nvidia-h200-sxm-141gb"}, {"training.compile", "true"}}},
    {"held_back",
     {{"hardware", "nvidia-h200-sxm-141gb"},
      {"hardware.power.limit", "200 W"},
      {"training.micro_batch", "128"},
      {"training.cuda_graphs", "true"}}},
    {"data_parallel", {{"cluster", "h200-x2"}, {"training.parallel.data", "2"}}},
    {"sharded",
     {{"cluster", "h200-x2"}, {"training.parallel", "{strategy: fsdp, data: 2}"}, {"training.micro_batch", "64"}}},
};
INSTANTIATE_TEST_SUITE_P(Steps, TimelineParts, ::testing::ValuesIn(kTimelineCases),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace ridgeline
