// The fields of an answer, each worked out again from the parts that it stands on: kernels, their times, their places.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/answer/advice.h"
#include "sim/answer/parallel/communication.h"
#include "sim/answer/step_run.h"
#include "sim/program/launched_kernels.h"
#include "sim/timing/clock_law.h"

namespace ridgeline {
namespace {

struct AnsweredCase {
  const char* name;
  const char* hardware;  ///< YAML: a GPU or a cluster
  const char* training;  ///< YAML
};
std::ostream& operator<<(std::ostream& out, const AnsweredCase& c) { return out << c.name; }

Scenario answered_scenario(const AnsweredCase& c) {
  ScenarioSource source;
  source.text = std::string("{") + c.hardware +
                ", model: {family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: 1000, max_positions: 128, "
                "dropout: 0.1}, training: {micro_batch: 3, sequence_length: 80, " +
                c.training + "}}";
  source.text_name = "test";
  return load_scenario(source);
}

class AnswerByParts : public ::testing::TestWithParam<AnsweredCase> {
 protected:
  Session session_;
  const StepRun run_{session_, answered_scenario(GetParam()), "analytic"};
  const Prediction& answer_ = run_.prediction();
  const Timeline& line_ = run_.timeline();
  const double step_ = line_.step.value();
  /// What a kernel adds to the time of kernels: beside the default stream only while that is idle.
  [[nodiscard]] double added(std::size_t i) const {
    const KernelSpan& span = line_.kernels[i];
    return (span.stream == 0 ? span.taken : span.exposed).value() *
           static_cast<double>(line_.repeat.launches.times_of(i));
  }
};

TEST_P(AnswerByParts, TimeIsThatOfTheKernelsAndOfIdling) {
  std::array<double, kTimeClasses> by_class{};
  std::array<double, kPhases> by_phase{};
  std::array<double, kLimiters> limited_by{};
  double all = 0.0;
  const std::vector<LaunchedKernel> kernels = launched_kernels(run_.program());
  ASSERT_EQ(kernels.size(), line_.kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const double held = line_.kernels[i].held.value() * static_cast<double>(line_.repeat.launches.times_of(i));
    all += added(i);
    by_class[static_cast<std::size_t>(kernels[i].launch->time_class)] += added(i);
    by_phase[static_cast<std::size_t>(kernels[i].phase)] += added(i);
    limited_by[static_cast<std::size_t>(Limiter::power)] += held;
    limited_by[static_cast<std::size_t>(run_.times()[i].limiter)] += added(i) - held;
  }
  const double idle = std::max(0.0, step_ - all), close = 1e-9 * step_;
  limited_by[static_cast<std::size_t>(Limiter::launch)] += idle;
  EXPECT_NEAR(answer_.idle.value(), idle, close);
  for (std::size_t i = 0; i < kTimeClasses; ++i) EXPECT_NEAR(answer_.time_by_class[i].value(), by_class[i], close) << i;
  for (std::size_t i = 0; i < kPhases; ++i) EXPECT_NEAR(answer_.time_by_phase[i].value(), by_phase[i], close) << i;
  for (std::size_t i = 0; i < kLimiters; ++i) EXPECT_NEAR(answer_.limited_by[i].value(), limited_by[i], close) << i;
}

TEST_P(AnswerByParts, GroupsAreTheKernelsOfOneNameAndOperation) {
  std::map<std::pair<std::string, std::string>, KernelGroup> expected;  // by name and shape
  const std::vector<LaunchedKernel> kernels = launched_kernels(run_.program());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto runs = static_cast<double>(line_.repeat.launches.times_of(i));
    const KernelTime& time = run_.times()[i];
    const KernelLaunch& launch = *kernels[i].launch;
    KernelGroup& group = expected[{launch.name, std::to_string(kernels[i].op_index)}];
    group.count += static_cast<std::int64_t>(runs);
    group.time += Seconds{added(i)};
    group.flops += runs * launch.flops;
    group.dram_bytes += runs * (time.dram_read_bytes + time.dram_write_bytes);
    group.read_bytes += runs * launch.read_bytes();
    group.written_bytes += runs * launch.written_bytes();
    group.l2_bytes += runs * time.l2_bytes;
    group.l2_hit_bytes += runs * time.l2_bytes * time.l2_hit_rate;
    group.occupied_s += added(i) * time.occupancy;
  }
  ASSERT_EQ(answer_.kernels.size(), expected.size());
  std::multiset<std::pair<std::string, std::int64_t>> named, found;
  KernelGroup sum, found_sum;
  const auto add = [](KernelGroup& to, const KernelGroup& one) {
    to.time += one.time;
    to.flops += one.flops;
    to.dram_bytes += one.dram_bytes;
    to.read_bytes += one.read_bytes;
    to.written_bytes += one.written_bytes;
    to.l2_bytes += one.l2_bytes;
    to.l2_hit_bytes += one.l2_hit_bytes;
    to.occupied_s += one.occupied_s;
  };
  for (const auto& [key, group] : expected) named.emplace(key.first, group.count), add(sum, group);
  Seconds before{1e9};
  for (const KernelGroup& group : answer_.kernels) {
    found.emplace(group.name, group.count);
    add(found_sum, group);
    EXPECT_LE(group.time, before) << "the longest first";
    before = group.time;
  }
  EXPECT_EQ(found, named);
  for (const auto of :
       {&KernelGroup::flops, &KernelGroup::dram_bytes, &KernelGroup::read_bytes, &KernelGroup::written_bytes,
        &KernelGroup::l2_bytes, &KernelGroup::l2_hit_bytes, &KernelGroup::occupied_s})
    EXPECT_NEAR(found_sum.*of, sum.*of, 1e-9 * sum.*of);
  EXPECT_NEAR(found_sum.time.value(), sum.time.value(), 1e-9 * step_);
}

TEST_P(AnswerByParts, RatesAndEnergyAreThoseOfTheTime) {
  const Scenario& s = run_.scenario();
  const StepPrediction& step = answer_.step;
  EXPECT_EQ(step.time, line_.step);
  EXPECT_EQ(step.host_time, line_.host);
  EXPECT_EQ(step.gpu_busy, line_.gpu_busy);
  EXPECT_EQ(step.kernel_count, line_.kernel_count());
  EXPECT_EQ(step.clock, line_.clock);
  EXPECT_EQ(step.held, line_.held);
  EXPECT_EQ(step.sm_utilization, line_.sm_utilization);
  EXPECT_EQ(step.host.exposed, line_.starved);
  const double samples = 3.0 * static_cast<double>(s.training.gradient_accumulation) *
                         static_cast<double>(s.training.parallel.gradient_ranks());
  EXPECT_NEAR(step.samples_per_s, samples / step_, 1e-9 * samples / step_);
  EXPECT_NEAR(step.tokens_per_s, 80 * samples / step_, 1e-7 * samples / step_);
  EXPECT_LE(step.low, step.time);
  EXPECT_GE(step.high, step.time);
  // The board draws what the timeline says while the step lasts, and never more than its limit.
  const EnergyRange energy = step_energy(line_.power, step.time, step.low, step.high, s.gpu);
  EXPECT_GT(step.energy.energy.value(), 0.0);
  EXPECT_EQ(step.energy.energy, energy.energy);
  EXPECT_EQ(step.energy.low, energy.low);
  EXPECT_EQ(step.energy.high, energy.high);
  EXPECT_NEAR(step.power.value() * step_, step.energy.energy.value(), 1e-9 * step.energy.energy.value());
  EXPECT_NEAR(step.power.value(), std::min(line_.power, s.gpu.power.limit).value(), 1e-9 * step.power.value());
}

TEST_P(AnswerByParts, MemoryIsReservedWithTheContextAndItsSpread) {
  const Scenario& s = run_.scenario();
  const MemoryPrediction& memory = answer_.memory;
  EXPECT_EQ(memory.context, context_bytes(s.gpu, s.software) + communicator_bytes(s));
  EXPECT_EQ(memory.device_used, memory.peak_reserved + memory.context);
  EXPECT_EQ(memory.needed, memory.device_used);
  EXPECT_EQ(memory.capacity, static_cast<std::int64_t>(s.gpu.dram.capacity.value()));
  EXPECT_TRUE(memory.runs);
  std::int64_t at_peak = 0;
  for (const std::int64_t bytes : memory.at_peak) at_peak += bytes;
  EXPECT_EQ(at_peak, memory.peak_allocated);
  // Of the spread; buckets that a step may hold beside it come on top.
  const double needed = static_cast<double>(memory.needed), spread = s.software.memory_spread;
  EXPECT_GT(spread, 0.0);
  MemoryPrediction plain = predict_memory(run_.program(), s);
  EXPECT_EQ(plain.needed_low, std::llround(needed * (1.0 - spread)));
  EXPECT_EQ(plain.needed_high, std::llround(needed * (1.0 + spread)));
  allow_for_held_buckets(plain, s, run_.trace(), line_.step);
  EXPECT_EQ(memory.needed_low, plain.needed_low);
  EXPECT_EQ(memory.needed_high, plain.needed_high);
}

TEST_P(AnswerByParts, CommunicationIsWhatStreamsOfCollectivesAdd) {
  const Scenario& s = run_.scenario();
  ASSERT_EQ(answer_.parallel.has_value(), s.cluster.has_value());
  if (!answer_.parallel) return;
  const ParallelPrediction& parallel = *answer_.parallel;
  double exposed = 0.0, all = 0.0;
  std::int64_t count = 0;
  const std::vector<LaunchedKernel> kernels = launched_kernels(run_.program());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!std::holds_alternative<Collective>(*kernels[i].op)) continue;
    const auto runs = line_.repeat.launches.times_of(i);
    exposed += line_.kernels[i].exposed.value() * static_cast<double>(runs);
    all += line_.kernels[i].taken.value() * static_cast<double>(runs);
    count += runs;
  }
  EXPECT_NEAR(parallel.exposed.value(), exposed, 1e-9 * step_);
  EXPECT_NEAR(parallel.hidden.value(), all - exposed, 1e-9 * step_);
  std::int64_t uses = 0;
  double time = 0.0;
  for (const CommunicationUse& use : parallel.communication) uses += use.count, time += use.time.value();
  EXPECT_EQ(uses, count);
  EXPECT_NEAR(time, all, 1e-9 * step_);
  EXPECT_EQ(parallel.gpus, s.training.parallel.gpus());
  ASSERT_EQ(parallel.ranks.size(), 1u);
  const RankClass& ranks = parallel.ranks.front();
  const bool one_process = s.training.parallel.one_process();
  EXPECT_EQ(ranks.name, one_process ? "the fullest device" : "every rank");
  EXPECT_EQ(ranks.ranks, one_process ? 1 : parallel.gpus);
  EXPECT_EQ(ranks.step, line_.step);
  EXPECT_EQ(ranks.communicator_bytes, communicator_bytes(s));
  EXPECT_EQ(ranks.memory.needed, answer_.memory.needed);
  EXPECT_EQ(parallel.bubble, Seconds{});
}

const AnsweredCase kAnsweredCases[] = {
    {"alone", "hardware: nvidia-a100-sxm4-80gb", "precision: amp-bf16, gradient_accumulation: 9"},
    {"t4", "hardware: nvidia-t4", "precision: fp32, attention: eager, gradient_clipping: 1.0"},
    {"ddp", "cluster: hgx-h200", "precision: amp-bf16, gradient_accumulation: 3, parallel: {data: 8}"},
    {"fsdp", "cluster: hgx-h200", "precision: bf16, parallel: {data: 4, strategy: fsdp}"},
    {"split", "cluster: hgx-h200", "precision: bf16, parallel: {split: 2}"},
};
INSTANTIATE_TEST_SUITE_P(Answers, AnswerByParts, ::testing::ValuesIn(kAnsweredCases),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace ridgeline
