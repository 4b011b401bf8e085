// A step whose steady micro-batch is held once is the step with all of them written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "sim/answer/step_run.h"
#include "sim/timeline/recurrence.h"
#include "sim/timeline/step_times.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/repeated_range.h"
#include "sim/workload/training_step.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kAll = std::int64_t{1} << 40;

struct Case {
  const char* name;
  const char* model;     ///< YAML
  const char* training;  ///< YAML without the number of micro-batches
  AttentionChoice attention = AttentionChoice::eager;
  const char* hardware = "nvidia-h200-sxm-141gb";
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

constexpr const char* kGpt2 = "{family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: 1000, max_positions: 128}";
constexpr const char* kBert =
    "{family: bert, layers: 2, heads: 4, hidden: 256, feed_forward: 1024, vocabulary: 1000, max_positions: 128, "
    "dropout: 0.1, head: masked-lm}";
constexpr const char* kLlama =
    "{family: llama, layers: 2, heads: 4, key_value_heads: 2, hidden: 256, feed_forward: 512, vocabulary: 1000}";

const Case kCases[] = {
    {"gpt2_fp32", kGpt2, "precision: fp32, gradient_clipping: 1.0"},
    {"gpt2_amp", kGpt2, "precision: amp-fp16, optimizer: {name: adamw, implementation: fused}", AttentionChoice::flash},
    {"gpt2_loss_read", kGpt2, "precision: tf32, reads_loss: micro-batch, optimizer: {name: sgd}"},
    {"gpt2_host_bound", kGpt2, "precision: bf16, optimizer: {name: adam, implementation: for-loop}",
     AttentionChoice::flash, "nvidia-b200"},
    {"gpt2_slow_gpu", kGpt2, "precision: fp32, micro_batch: 64", AttentionChoice::efficient, "nvidia-t4"},
    {"gpt2_checkpointed", kGpt2, "precision: amp-bf16, activation_checkpointing: block", AttentionChoice::flash},
    {"gpt2_graph", kGpt2, "precision: amp-bf16, cuda_graphs: true", AttentionChoice::flash},
    {"gpt2_graph_read", kGpt2, "precision: amp-bf16, cuda_graphs: true, reads_loss: micro-batch",
     AttentionChoice::flash},
    {"gpt2_compiled", kGpt2, "precision: amp-bf16, compile: true", AttentionChoice::flash},
    {"bert_loaded", kBert, "precision: amp-fp16, data_loader: tensor-dataset, gradient_clipping: 1.0"},
    {"bert_apex", kBert, "precision: apex-o2, data_parallel: apex"},
    {"bert_compiled", kBert, "precision: fp32, compile: true", AttentionChoice::math},
    {"llama_8bit", kLlama, "precision: bf16, optimizer: {name: adamw-8bit}", AttentionChoice::flash},
    {"llama_adafactor", kLlama, "precision: amp-bf16, optimizer: {name: adafactor}", AttentionChoice::math},
};

Scenario scenario_of(const Case& c, std::int64_t micro_batches) {
  ScenarioSource source;
  const std::string training = c.training;
  source.text = std::string("{hardware: ") + c.hardware + ", model: " + c.model + ", training: {" + training +
                (training.find("micro_batch:") == std::string::npos ? ", micro_batch: 2" : "") +
                ", sequence_length: 64, gradient_accumulation: " + std::to_string(micro_batches) + "}}";
  source.text_name = "test";
  return load_scenario(source);
}

OpTrace run_of(const Case& c, const Scenario& s, std::int64_t written_out) {
  OpTrace trace = training_run(s.model, s.training, c.attention, 2, written_out);
  return s.compile ? compile::compile_trace(std::move(trace), s.gpu.sm.count) : trace;
}

void expect_close(double folded, double written, const char* what, double tolerance = 1e-9) {
  EXPECT_NEAR(folded, written, tolerance * std::max(std::abs(written), 1e-30)) << what;
}

void expect_same_steps(const StepPrediction& a, const StepPrediction& b) {
  expect_close(a.time.value(), b.time.value(), "step");
  expect_close(a.low.value(), b.low.value(), "low");
  expect_close(a.high.value(), b.high.value(), "high");
  expect_close(a.host_time.value(), b.host_time.value(), "host");
  expect_close(a.gpu_busy.value(), b.gpu_busy.value(), "busy");
  EXPECT_NEAR(a.host.exposed.value(), b.host.exposed.value(), 1e-9 * b.time.value()) << "starved";
  EXPECT_EQ(a.kernel_count, b.kernel_count);
  expect_close(a.power.value(), b.power.value(), "power");
  expect_close(a.clock.value(), b.clock.value(), "clock");
  expect_close(a.sm_utilization, b.sm_utilization, "SM");
  expect_close(a.utilization.dram, b.utilization.dram, "DRAM");
  expect_close(a.utilization.kernel_active, b.utilization.kernel_active, "active");
  expect_close(a.latency.total().value(), b.latency.total().value(), "latency");
}

void expect_same_memory(const MemoryResult& a, const MemoryResult& b) {
  EXPECT_EQ(a.peak_allocated, b.peak_allocated);
  EXPECT_EQ(a.peak_reserved, b.peak_reserved);
  EXPECT_EQ(a.first_step_peak_allocated, b.first_step_peak_allocated);
  EXPECT_EQ(a.first_step_peak_reserved, b.first_step_peak_reserved);
  EXPECT_EQ(a.breakdown, b.breakdown);
  EXPECT_EQ(a.fits, b.fits);
  EXPECT_EQ(a.steps_run, b.steps_run);
  EXPECT_EQ(a.peak.phase, b.peak.phase);
  EXPECT_EQ(a.peak.layer, b.peak.layer);
  EXPECT_EQ(a.at_peak.size(), b.at_peak.size());
  EXPECT_EQ(a.segments.size(), b.segments.size());
  EXPECT_EQ(a.statistics.device_allocations, b.statistics.device_allocations);
  EXPECT_EQ(a.statistics.retries, b.statistics.retries);
}

class EveryWayToTrain : public ::testing::TestWithParam<Case> {};

TEST_P(EveryWayToTrain, is_as_if_every_micro_batch_were_written_out) {
  const Case& c = GetParam();
  for (const std::int64_t n : {2, 3, 4, 5, 7, 12}) {
    SCOPED_TRACE(n);
    const Scenario s = scenario_of(c, n);
    const OpTrace folded = run_of(c, s, 0), written = run_of(c, s, kAll);
    EXPECT_EQ(folded.repeats.size(), n > 4 ? 2u : 0u);
    EXPECT_TRUE(repeats_are_steady(folded));
    EXPECT_TRUE(written.repeats.empty());
    EXPECT_EQ(folded.model_flops, written.model_flops);
    const StepProgram few = make_program(folded, s.gpu, s.software), all = make_program(written, s.gpu, s.software);
    Session session;
    const StepRun run_of_few(session, s, "analytic", std::make_shared<SharedTrace>(folded)),
        run_of_all(session, s, "analytic", std::make_shared<SharedTrace>(written));
    const Prediction &a = run_of_few.prediction(), &b = run_of_all.prediction();
    expect_same_steps(a.step, b.step);
    for (std::size_t i = 0; i < kTimeClasses; ++i)
      EXPECT_NEAR(a.time_by_class[i].value(), b.time_by_class[i].value(), 1e-9 * b.step.time.value());
    ASSERT_EQ(a.kernels.size(), b.kernels.size());
    // Kernels of equal times may change places.
    double bytes = 0.0;
    std::int64_t launches = 0;
    for (const KernelGroup& group : a.kernels) bytes += group.dram_bytes, launches += group.count;
    for (const KernelGroup& group : b.kernels) bytes -= group.dram_bytes, launches -= group.count;
    EXPECT_NEAR(bytes, 0.0, 1.0);
    EXPECT_EQ(launches, 0);
    MemoryOptions memory = memory_options(s);
    memory.record_samples = true;
    expect_same_memory(run_memory(few, memory), run_memory(all, memory));
    memory.settings.expandable_segments = true;
    expect_same_memory(run_memory(few, memory), run_memory(all, memory));
  }
}

INSTANTIATE_TEST_SUITE_P(Repeated, EveryWayToTrain, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(RepeatedMicroBatches, run_out_of_memory_where_written_out_ones_do) {
  const Case& c = kCases[0];
  const Scenario s = scenario_of(c, 12);
  const OpTrace folded = run_of(c, s, 0), written = run_of(c, s, kAll);
  const StepProgram few = make_program(folded, s.gpu, s.software), all = make_program(written, s.gpu, s.software);
  MemoryOptions options = memory_options(s);
  const std::int64_t most = run_memory(all, options).device_used;
  for (int part = 1; part <= 40; ++part) {
    options.capacity = options.context + (most - options.context) * part / 40;
    const MemoryResult a = run_memory(few, options), b = run_memory(all, options);
    ASSERT_EQ(a.fits, b.fits) << part;
    EXPECT_EQ(a.peak_reserved, b.peak_reserved);
    EXPECT_EQ(a.statistics.retries, b.statistics.retries) << part;
    if (!a.failure) continue;
    EXPECT_EQ(a.failure->details.requested, b.failure->details.requested);
    EXPECT_EQ(a.failure->held, b.failure->held);
    EXPECT_EQ(a.failure->moment.phase, b.failure->moment.phase);
  }
}

TEST(RepeatedMicroBatches, a_simulated_step_is_as_written_out) {
  // The simulated L2 is as before a micro-batch once it has moved more than fits; what is smaller takes some to settle.
  const std::pair<const char*, double> sizes[] = {{"256", 1e-9}, {"2", 1e-4}};
  for (const auto& [micro_batch, tolerance] : sizes) {
    SCOPED_TRACE(micro_batch);
    Case c = kCases[1];
    const std::string training = std::string(c.training) + ", micro_batch: " + micro_batch;
    c.training = training.c_str();
    const Scenario s = scenario_of(c, 9);
    const OpTrace folded = run_of(c, s, 0), written = run_of(c, s, kAll);
    Session session;
    const StepRun a(session, s, "simulate", std::make_shared<SharedTrace>(folded)),
        b(session, s, "simulate", std::make_shared<SharedTrace>(written));
    expect_close(a.step().time.value(), b.step().time.value(), "step", tolerance);
    expect_close(a.step().gpu_busy.value(), b.step().gpu_busy.value(), "busy", tolerance);
  }
}

TEST(RepeatedMicroBatches, come_back_from_an_op_trace) {
  const Case& c = kCases[0];
  const Scenario s = scenario_of(c, 100);
  const OpTrace trace = run_of(c, s, 8);
  ASSERT_EQ(trace.repeats.size(), 2u);
  EXPECT_EQ(trace.repeats.back().times, 97);
  const std::string path = temporary_path("repeated.jsonl");
  std::ofstream(path) << trace::op_trace_lines({}, trace);
  const OpTrace read = trace::read_op_trace(path).trace;
  ASSERT_EQ(read.repeats.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.repeats[i].times, trace.repeats[i].times);
    EXPECT_EQ(read.repeats[i].records.begin, trace.repeats[i].records.begin);
    EXPECT_EQ(read.repeats[i].records.end, trace.repeats[i].records.end);
  }
}

TEST(RepeatedMicroBatches, take_a_stretch_that_does_not_run_again_for_none) {
  const Case& c = kCases[0];
  OpTrace trace = run_of(c, scenario_of(c, 100), 8);
  ASSERT_TRUE(repeats_are_steady(trace));
  OpTrace longer = trace;
  ++longer.repeats.back().records.begin;
  EXPECT_FALSE(repeats_are_steady(longer));
  for (std::uint32_t i = trace.repeats.back().records.begin; i < trace.repeats.back().records.end; ++i) {
    if (trace.records[i].kind != Record::Kind::allocate) continue;
    ++trace.storages[trace.records[i].index].bytes;
    break;
  }
  EXPECT_FALSE(repeats_are_steady(trace));
}

/// A plan with launches before, in and after what repeats, of random host work, kernels, waits and places in the queue.
struct RandomPlan {
  IssuePlan few, all;
  std::vector<double> durations, all_durations;
};
RandomPlan random_plan(std::mt19937_64& random, std::int64_t times) {
  std::uniform_real_distribution<double> share(0.0, 1.0);
  const double host = std::pow(10.0, -6.0 + 2.0 * share(random)), gpu = host * std::pow(10.0, share(random) - 0.5);
  const double waits = share(random) < 0.3 ? 0.1 : 0.0, unqueued = share(random) < 0.2 ? 0.9 : 0.0;
  const auto part = [&](int count) {
    std::vector<std::pair<Issue, double>> launches;
    for (int i = 0; i < count; ++i) {
      Issue issue;
      issue.host = host * share(random);
      issue.gap = 1e-6 * share(random);
      issue.queued = share(random) >= unqueued;
      issue.wait_before = share(random) < waits;
      issue.host_before_wait = issue.wait_before ? host * share(random) : 0.0;
      launches.emplace_back(issue, gpu * share(random));
    }
    return launches;
  };
  std::uniform_int_distribution<int> count(1, 30);
  const auto before = part(count(random)), repeated = part(count(random)), after = part(count(random));
  RandomPlan plan;
  const auto add = [](IssuePlan& to, std::vector<double>& durations, const auto& launches) {
    for (const auto& [issue, duration] : launches) {
      to.launches.push_back(issue);
      durations.push_back(duration);
    }
  };
  add(plan.few, plan.durations, before);
  add(plan.few, plan.durations, repeated);
  add(plan.few, plan.durations, after);
  plan.few.repeat = {before.size(), before.size() + repeated.size(), times};
  add(plan.all, plan.all_durations, before);
  for (std::int64_t i = 0; i < times; ++i) add(plan.all, plan.all_durations, repeated);
  add(plan.all, plan.all_durations, after);
  plan.few.tail.host = plan.all.tail.host = host * share(random);
  return plan;
}

TEST(RepeatedLaunches, leave_host_and_gpu_where_written_out_ones_do) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t times = std::uniform_int_distribution<std::int64_t>(2, trial % 10 == 0 ? 20000 : 300)(random);
    const RandomPlan plan = random_plan(random, times);
    const int depth = std::uniform_int_distribution<int>(1, trial % 2 == 0 ? 1024 : 40)(random);
    Recurrence few(depth, 2e-6), all(depth, 2e-6);
    std::vector<Recurrence::Span> spans(plan.durations.size()), all_spans(plan.all_durations.size());
    for (int step = 0; step < 4; ++step) {
      const Recurrence::Step a = few.step(plan.few, plan.durations, spans);
      const Recurrence::Step b = all.step(plan.all, plan.all_durations, all_spans);
      const double tolerance = 1e-9 * all.gpu();
      ASSERT_NEAR(few.gpu(), all.gpu(), tolerance);
      ASSERT_NEAR(few.host(), all.host(), tolerance);
      ASSERT_NEAR(a.starved, b.starved, tolerance);
      for (std::size_t i = 0; i < plan.few.repeat.end; ++i) ASSERT_NEAR(spans[i].end, all_spans[i].end, tolerance);
      const std::size_t skipped = all_spans.size() - spans.size();
      for (std::size_t i = plan.few.repeat.end; i < spans.size(); ++i) {
        ASSERT_NEAR(spans[i].issued, all_spans[i + skipped].issued, tolerance);
        ASSERT_NEAR(spans[i].start, all_spans[i + skipped].start, tolerance);
        ASSERT_NEAR(spans[i].end, all_spans[i + skipped].end, tolerance);
      }
    }
  }
}

TEST(RepeatedMicroBatches, a_hundred_thousand_take_the_time_of_a_few) {
  const Case& c = kCases[0];
  const Prediction few = predict(scenario_of(c, 100), "analytic"), many = predict(scenario_of(c, 100000), "analytic");
  EXPECT_NEAR(ratio(many.step.time, few.step.time), 1000.0, 10.0);
  EXPECT_EQ(many.memory.peak_reserved, few.memory.peak_reserved);
}

}  // namespace
}  // namespace ridgeline
