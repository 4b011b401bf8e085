// A step of several GPUs whose steady micro-batch is held once is the step with all of them written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"
#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/repeated_range.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

struct WayOnGpus {
  const char* name;
  const char* model;     ///< YAML
  const char* training;  ///< YAML without the number of micro-batches
};
std::ostream& operator<<(std::ostream& out, const WayOnGpus& way) { return out << way.name; }

constexpr const char* kSmallGpt2 =
    "{family: gpt2, layers: 3, heads: 4, hidden: 256, vocabulary: 1000, max_positions: 128}";
constexpr const char* kSmallLlama =
    "{family: llama, layers: 3, heads: 4, key_value_heads: 4, hidden: 256, feed_forward: 512, vocabulary: 1024}";
constexpr const char* kSmallBert =
    "{family: bert, layers: 2, heads: 4, hidden: 256, feed_forward: 1024, vocabulary: 1000, max_positions: 128, "
    "dropout: 0.1, head: masked-lm}";

const WayOnGpus kWays[] = {
    {"ddp", kSmallGpt2, "precision: amp-bf16, parallel: {data: 8}"},
    {"ddp_no_sync", kSmallGpt2, "precision: fp32, gradient_clipping: 1.0, parallel: {data: 8, no_sync: true}"},
    {"ddp_compiled", kSmallGpt2, "precision: amp-bf16, compile: true, parallel: {data: 4, no_sync: true}"},
    {"ddp_graph", kSmallBert, "precision: amp-fp16, data_loader: tensor-dataset, parallel: {data: 8}"},
    {"zero1", kSmallGpt2, "precision: amp-bf16, parallel: {data: 8, strategy: zero1, no_sync: true}"},
    {"zero2", kSmallGpt2, "precision: bf16, parallel: {data: 8, strategy: zero2}"},
    {"fsdp", kSmallLlama, "precision: bf16, parallel: {data: 8, strategy: fsdp}"},
    {"fsdp_checkpointed", kSmallLlama,
     "precision: bf16, activation_checkpointing: block, parallel: {data: 8, strategy: fsdp}"},
    {"fsdp_no_sync", kSmallGpt2, "precision: amp-bf16, parallel: {data: 8, strategy: fsdp, no_sync: true}"},
    {"fsdp_loss_read", kSmallGpt2, "precision: bf16, reads_loss: micro-batch, parallel: {data: 8, strategy: fsdp}"},
    {"hsdp", kSmallLlama, "precision: bf16, parallel: {data: 8, strategy: hsdp, replicate: 2}"},
    {"tensor", kSmallLlama, "precision: bf16, parallel: {data: 2, tensor: 4, tensor_style: by-hand}"},
    {"tensor_fsdp", kSmallLlama,
     "precision: bf16, parallel: {data: 2, tensor: 2, tensor_style: by-hand, strategy: fsdp}"},
    {"megatron", kSmallGpt2, "precision: amp-bf16, parallel: {data: 2, tensor: 4, framework: megatron}"},
    {"context", kSmallLlama, "precision: bf16, parallel: {data: 2, context: 2}"},
    {"deepspeed", kSmallGpt2, "precision: amp-bf16, parallel: {data: 8, framework: deepspeed, strategy: zero2}"},
};

Scenario on_gpus(const WayOnGpus& way, std::int64_t micro_batches, int micro_batch = 2,
                 const char* cluster = "hgx-h200") {
  ScenarioSource source;
  source.text = std::string("{cluster: ") + cluster + ", model: " + way.model + ", training: {" + way.training +
                ", micro_batch: " + std::to_string(micro_batch) +
                ", sequence_length: 64, gradient_accumulation: " + std::to_string(micro_batches) + "}}";
  source.text_name = "test";
  return load_scenario(source);
}

OpTrace trace_on_gpus(const Scenario& s, std::int64_t written_out) {
  const TraceKey key = trace_key_of(s);
  OpTrace trace = training_run(key.model, key.training, key.attention, 2, written_out);
  if (key.compiled_for_sms > 0) trace = compile::compile_trace(std::move(trace), key.compiled_for_sms);
  return trace;
}

void expect_near(double folded, double written, double scale, const char* what) {
  EXPECT_NEAR(folded, written, 1e-9 * scale) << what;
}

void expect_same_communication(const ParallelPrediction& a, const ParallelPrediction& b, double step) {
  expect_near(a.exposed.value(), b.exposed.value(), step, "exposed");
  expect_near(a.hidden.value(), b.hidden.value(), step, "hidden");
  expect_near(a.efficiency, b.efficiency, 1.0, "efficiency");
  EXPECT_EQ(a.limit, b.limit);
  ASSERT_EQ(a.communication.size(), b.communication.size());
  for (std::size_t i = 0; i < a.communication.size(); ++i) {
    const CommunicationUse &one = a.communication[i], &other = b.communication[i];
    EXPECT_EQ(one.kind, other.kind);
    EXPECT_EQ(one.group, other.group);
    EXPECT_EQ(one.count, other.count);
    EXPECT_EQ(one.bytes, other.bytes);
    expect_near(one.time.value(), other.time.value(), step, "time of a kind");
    expect_near(one.exposed.value(), other.exposed.value(), step, "exposed of a kind");
  }
}

void expect_same_memory_need(const MemoryPrediction& a, const MemoryPrediction& b) {
  EXPECT_EQ(a.peak_allocated, b.peak_allocated);
  EXPECT_EQ(a.peak_reserved, b.peak_reserved);
  EXPECT_EQ(a.cached_unused, b.cached_unused);
  EXPECT_EQ(a.needed_high, b.needed_high);
  EXPECT_EQ(a.at_peak, b.at_peak);
  EXPECT_EQ(a.peak_phase, b.peak_phase);
}

/// The trace is given in `folded`; written out it comes from `s` itself.
void expect_as_written_out(const Scenario& s, OpTrace folded, OpTrace written) {
  Session session;
  const StepRun few(session, s, "analytic", std::make_shared<SharedTrace>(std::move(folded))),
      all(session, s, "analytic", std::make_shared<SharedTrace>(std::move(written)));
  const Prediction &a = few.prediction(), &b = all.prediction();
  const double step = b.step.time.value();
  expect_near(a.step.time.value(), step, step, "step");
  expect_near(a.step.low.value(), b.step.low.value(), step, "low");
  expect_near(a.step.high.value(), b.step.high.value(), step, "high");
  expect_near(a.step.host_time.value(), b.step.host_time.value(), step, "host");
  expect_near(a.step.gpu_busy.value(), b.step.gpu_busy.value(), step, "busy");
  expect_near(a.step.host.exposed.value(), b.step.host.exposed.value(), step, "starved");
  expect_near(a.step.power.value(), b.step.power.value(), b.step.power.value(), "power");
  expect_near(a.step.clock.value(), b.step.clock.value(), b.step.clock.value(), "clock");
  expect_near(a.step.sm_utilization, b.step.sm_utilization, 1.0, "SM");
  expect_near(a.step.utilization.dram, b.step.utilization.dram, 1.0, "DRAM");
  expect_near(a.step.latency.total().value(), b.step.latency.total().value(), step, "latency");
  expect_near(a.idle.value(), b.idle.value(), step, "idle");
  EXPECT_EQ(a.step.kernel_count, b.step.kernel_count);
  for (std::size_t i = 0; i < kTimeClasses; ++i)
    expect_near(a.time_by_class[i].value(), b.time_by_class[i].value(), step, "class");
  for (std::size_t i = 0; i < kPhases; ++i)
    expect_near(a.time_by_phase[i].value(), b.time_by_phase[i].value(), step, "phase");
  EXPECT_EQ(a.kernels.size(), b.kernels.size());
  expect_same_memory_need(a.memory, b.memory);
  ASSERT_TRUE(a.parallel && b.parallel);
  expect_same_communication(*a.parallel, *b.parallel, step);
}

class EveryWayOnGpus : public ::testing::TestWithParam<WayOnGpus> {};

TEST_P(EveryWayOnGpus, is_as_if_every_micro_batch_were_written_out) {
  for (const std::int64_t n : {2, 3, 4, 5, 6, 9, 23}) {
    SCOPED_TRACE(n);
    const Scenario s = on_gpus(GetParam(), n);
    OpTrace folded = trace_on_gpus(s, 0), written = trace_on_gpus(s, n);
    EXPECT_TRUE(written.repeats.empty());
    if (n > 8 && !s.training.parallel.deepspeed()) {
      EXPECT_EQ(folded.repeats.size(), folded.steps.size());
    }
    EXPECT_TRUE(repeats_are_steady(folded));
    expect_as_written_out(s, std::move(folded), std::move(written));
  }
}

INSTANTIATE_TEST_SUITE_P(Repeated, EveryWayOnGpus, ::testing::ValuesIn(kWays),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(RepeatedOnGpus, random_ways_are_as_written_out) {
  std::mt19937_64 random(11);
  const auto one_of = [&](std::initializer_list<const char*> words) {
    return std::data(words)[std::uniform_int_distribution<std::size_t>(0, words.size() - 1)(random)];
  };
  int tried = 0, folded_ones = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::string training = std::string("precision: ") + one_of({"bf16", "amp-bf16", "fp32", "amp-fp16"});
    training += one_of({"", ", activation_checkpointing: block", ", gradient_clipping: 1.0", ", compile: true",
                        ", reads_loss: micro-batch", ", reads_loss: step"});
    training += one_of({"", ", optimizer: {name: adamw, implementation: fused}", ", optimizer: {name: sgd}"});
    training += std::string(", parallel: {") +
                one_of({"data: 8", "data: 4, strategy: zero1", "data: 8, strategy: zero2", "data: 4, strategy: fsdp",
                        "data: 8, strategy: fsdp", "data: 8, strategy: hsdp, replicate: 4",
                        "data: 2, tensor: 4, tensor_style: by-hand", "data: 4, tensor: 2, framework: megatron",
                        "data: 2, context: 2", "data: 8, bucket_mb: 1"}) +
                one_of({"", ", no_sync: true"}) + "}";
    const WayOnGpus way{"random", one_of({kSmallGpt2, kSmallLlama, kSmallBert}), training.c_str()};
    const auto n = std::uniform_int_distribution<std::int64_t>(2, 40)(random);
    const int micro_batch = std::uniform_int_distribution<int>(1, 64)(random);
    const char* cluster = one_of({"hgx-h200", "hgx-h100", "dgx-a100", "hgx-b200"});
    SCOPED_TRACE(training + ", " + std::to_string(n) + " x " + std::to_string(micro_batch) + " of " + way.model);
    try {
      const Scenario s = on_gpus(way, n, micro_batch, cluster);
      OpTrace folded = trace_on_gpus(s, 0), written = trace_on_gpus(s, n);
      if (!repeats_are_steady(folded)) continue;  // written out after all
      folded_ones += folded.repeats.empty() ? 0 : 1;
      ++tried;
      expect_as_written_out(s, std::move(folded), std::move(written));
    } catch (const UserError&) {  // is not trained like that
    }
  }
  EXPECT_GT(tried, 25);
  EXPECT_GT(folded_ones, 20);
}

}  // namespace
}  // namespace ridgeline
