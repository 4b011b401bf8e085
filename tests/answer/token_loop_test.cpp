// Generations of which most tokens are not written out, against the same written out token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/answer/full_prediction.h"
#include "sim/answer/memory_prediction.h"
#include "sim/answer/step_run.h"
#include "sim/memory/token_memory.h"
#include "sim/workload/inference_run.h"

namespace ridgeline::token_loop_test {
namespace {

using nlohmann::json;

std::shared_ptr<SharedTrace> written_out(const Scenario& s) {
  const TraceKey key = trace_key_of(s);
  return std::make_shared<SharedTrace>(inference_run(key.model, key.training, key.attention, 2, Tokens::written_out));
}

Scenario scenario_of(const json& text) {
  ScenarioSource source;
  source.text = text.dump();
  source.text_name = "test";
  return load_scenario(source);
}

json random_generation(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<int> values) { return values.begin()[random() % values.size()]; };
  const bool llama = random() % 2 == 0;
  const int heads = one_of({2, 4, 8}), hidden = heads * one_of({16, 64, 128});
  json model{{"family", llama ? "llama" : "gpt2"},
             {"layers", one_of({1, 2, 3, 6})},
             {"heads", heads},
             {"hidden", hidden},
             {"feed_forward", one_of({128, 1024, 8192})},
             {"vocabulary", one_of({100, 1001, 50257})}};
  if (llama) model["key_value_heads"] = one_of({1, 2});
  else model["max_positions"] = 8192;
  const int beams = random() % 4 == 0 ? one_of({2, 4}) : 1;
  json use{{"sequences", one_of({1, 2, 5, 64})},
           {"prompt_length", one_of({1, 7, 100, 700})},
           {"new_tokens", one_of({65, 80, 100, 150, 250})},
           {"precision", random() % 2 == 0 ? "bf16" : "fp32"},
           {"attention", random() % 2 == 0 ? "sdpa" : "eager"},
           {"beams", beams}};
  if (beams == 1 || random() % 2 == 0)
    use["cache"] = beams == 1 ? std::vector{"none", "dynamic"}[random() % 2] : "dynamic";
  const char* const gpus[] = {"nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-v100-sxm2-16gb"};
  json text{{"hardware", gpus[random() % 3]}, {"model", model}, {"inference", use}};
  if (text["hardware"] == "nvidia-v100-sxm2-16gb") text["inference"]["precision"] = "fp32";
  return text;
}

/// Sums over kernels, in another order: `step` is what a begin or an end is rounded to the last bit of.
void expect_near(double looped, double whole, const char* what, double step = 0.0) {
  EXPECT_NEAR(looped, whole, 1e-7 * std::abs(whole) + 1e-12 * step) << what;
}

void expect_same(const Scenario& s, std::string_view engine) {
  Session session;
  const StepRun looped(session, s, engine), whole(session, s, engine, written_out(s));
  ASSERT_NE(looped.trace().tokens, nullptr);
  ASSERT_EQ(whole.trace().tokens, nullptr);
  const Timeline &a = looped.timeline(), &b = whole.timeline();
  EXPECT_EQ(a.step.value(), b.step.value());
  EXPECT_EQ(a.starved.value(), b.starved.value());
  EXPECT_EQ(a.host_issue.value(), b.host_issue.value());
  EXPECT_EQ(a.kernel_count(), b.kernel_count());
  EXPECT_EQ(a.steps_run, b.steps_run);
  expect_near(a.gpu_busy.value(), b.gpu_busy.value(), "busy");
  expect_near(a.host.value(), b.host.value(), "host");
  expect_near(a.sm_utilization, b.sm_utilization, "SMs");
  expect_near(a.clock.value(), b.clock.value(), "clock");
  const Prediction &p = looped.prediction(), &q = whole.prediction();
  EXPECT_EQ(p.step.time.value(), q.step.time.value());
  expect_near(p.step.low.value(), q.step.low.value(), "low");
  expect_near(p.step.high.value(), q.step.high.value(), "high");
  expect_near(p.step.mfu, q.step.mfu, "mfu");
  expect_near(p.step.energy.energy.value(), q.step.energy.energy.value(), "energy");
  expect_near(p.step.utilization.dram, q.step.utilization.dram, "dram");
  expect_near(p.step.utilization.sm, q.step.utilization.sm, "sm");
  expect_near(p.idle.value(), q.idle.value(), "idle");
  for (std::size_t i = 0; i < kTimeClasses; ++i)
    expect_near(p.time_by_class[i].value(), q.time_by_class[i].value(), "class");
  for (std::size_t i = 0; i < kLimiters; ++i) expect_near(p.limited_by[i].value(), q.limited_by[i].value(), "limiter");
  ASSERT_EQ(p.modules.size(), q.modules.size());
  for (std::size_t i = 0; i < p.modules.size(); ++i) {
    expect_near(p.modules[i].time().value(), q.modules[i].time().value(), "module", b.step.value());
    EXPECT_EQ(p.modules[i].kernels, q.modules[i].kernels) << i;
  }
  EXPECT_EQ(p.generation->first_token.value(), q.generation->first_token.value());
  EXPECT_EQ(p.generation->per_token.value(), q.generation->per_token.value());
  const MemoryPrediction &m = p.memory, &n = q.memory;
  EXPECT_EQ(m.peak_allocated, n.peak_allocated);
  EXPECT_EQ(m.peak_reserved, n.peak_reserved);
  EXPECT_EQ(m.device_used, n.device_used);
  EXPECT_EQ(m.needed, n.needed);
  EXPECT_EQ(m.fits, n.fits);
  EXPECT_EQ(m.at_peak, n.at_peak);
  EXPECT_EQ(m.peak_op, n.peak_op);
  EXPECT_EQ(m.peak_layer, n.peak_layer);
  double flops = 0, bytes = 0, whole_flops = 0, whole_bytes = 0;
  for (const KernelGroup& group : p.kernels) flops += group.flops, bytes += group.dram_bytes;
  for (const KernelGroup& group : q.kernels) whole_flops += group.flops, whole_bytes += group.dram_bytes;
  expect_near(flops, whole_flops, "flops");
  expect_near(bytes, whole_bytes, "bytes");
}

TEST(TokenLoop, PredictsWhatEveryTokenWrittenOutDoes) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const json text = random_generation(seed);
    SCOPED_TRACE(std::to_string(seed) + ": " + text.dump());
    expect_same(scenario_of(text), seed % 3 == 0 ? "roofline" : "analytic");
    if (::testing::Test::HasFailure()) break;
  }
}

// Lines that zeros of the cache leave in the L2 are written back by a token long after them.
TEST(TokenLoop, StaticCachesAreWrittenOut) {
  json text = random_generation(3);
  text["inference"]["cache"] = "static";
  text["inference"]["beams"] = 1;
  Session session;
  EXPECT_EQ(StepRun(session, scenario_of(text), "analytic").trace().tokens, nullptr);
}

TEST(TokenLoop, HostsOfOtherSpeedsSeeTheSame) {
  for (const double scale : {0.05, 0.6, 4.0}) {
    const Scenario s = [&] {
      Scenario made = scenario_of(random_generation(3));
      made.host.scale = scale;
      return made;
    }();
    expect_same(s, "analytic");
  }
}

// The host runs ahead until the queue is full, and the GPU waits for it elsewhere.
TEST(TokenLoop, QueuesAndGapsOfOtherSizesGiveTheSame) {
  for (const int depth : {1, 5, 40}) {
    Scenario s = scenario_of(random_generation(9));
    s.gpu.launch.queue_depth = depth;
    s.host.scale = depth == 5 ? 2.0 : 0.2;
    expect_same(s, "analytic");
    s.gpu.launch.gap = 40.0 * s.gpu.launch.start_latency;  // the first launch behind a wait starts by its gap
    s.host.scale = 0.01;
    expect_same(s, "roofline");
  }
}

// A block's input lives until the next block has added to it, so that blocks name storages of the second before them.
TEST(TokenLoop, BlocksOfANetworkAreSeenToAllocateAlike) {
  for (const char* const family : {"llama", "gpt2"}) {
    const Scenario s = scenario_of({{"hardware", "nvidia-h200-sxm-141gb"},
                                    {"model",
                                     {{"family", family},
                                      {"layers", 12},
                                      {"heads", 8},
                                      {"hidden", 1024},
                                      {"feed_forward", 1024},
                                      {"vocabulary", 1000}}},
                                    {"inference", {{"prompt_length", 600}, {"new_tokens", 100}}}});
    const ScenarioProgram made = make_scenario_program(s, "analytic");
    const TokenMemory tokens(made.program);
    ASSERT_EQ(tokens.blocks(1).size(), 12u) << family;
    EXPECT_GE(std::ranges::count_if(tokens.blocks(1), &TokenMemory::Block::as_before), 6) << family;
  }
}

// A device on which the generation runs out of memory gives cached blocks back, those of small requests too.
TEST(TokenLoop, RunsOutOfMemoryWhereEveryTokenWrittenOutDoes) {
  Scenario s = scenario_of(
      {{"hardware", "nvidia-h200-sxm-141gb"},
       {"model",
        {{"family", "llama"},
         {"layers", 12},
         {"heads", 8},
         {"hidden", 1024},
         {"feed_forward", 1024},
         {"vocabulary", 1000}}},
       {"inference", {{"sequences", 16}, {"prompt_length", 600}, {"new_tokens", 400}, {"precision", "bf16"}}}});
  Session session;
  const StepRun roomy(session, s, "roofline");
  const std::int64_t used = roomy.memory().device_used;
  int failed = 0;
  for (const double share : {0.999, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5}) {
    s.gpu.dram.capacity = Bytes(share * static_cast<double>(used));
    const StepRun looped(session, s, "roofline"), whole(session, s, "roofline", written_out(s));
    const MemoryPrediction &m = looped.memory(), &n = whole.memory();
    EXPECT_EQ(m.runs, n.runs) << share;
    EXPECT_EQ(m.fits, n.fits) << share;
    EXPECT_EQ(m.peak_allocated, n.peak_allocated) << share;
    EXPECT_EQ(m.peak_reserved, n.peak_reserved) << share;
    EXPECT_EQ(m.peak_op, n.peak_op) << share;
    EXPECT_EQ(m.peak_layer, n.peak_layer) << share;
    EXPECT_EQ(m.at_peak, n.at_peak) << share;
    EXPECT_EQ(m.needed, n.needed) << share;
    ASSERT_EQ(m.out_of_memory.has_value(), n.out_of_memory.has_value());
    if (!m.out_of_memory) continue;
    ++failed;
    EXPECT_EQ(m.out_of_memory->requested_bytes, n.out_of_memory->requested_bytes);
    EXPECT_EQ(m.out_of_memory->missing_bytes, n.out_of_memory->missing_bytes);
    EXPECT_EQ(m.out_of_memory->op, n.out_of_memory->op);
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace ridgeline::token_loop_test
