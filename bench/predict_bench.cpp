// How long a prediction takes once everything is loaded.
#include <benchmark/benchmark.h>

#include "sim/answer/step_run.h"

namespace ridgeline {
namespace {

Scenario scenario(const char* file) {
  ScenarioSource source;
  source.file = std::string(RIDGELINE_SOURCE_DIR "/scenarios/") + file;
  return load_scenario(source);
}

void BM_PredictBertLarge(benchmark::State& state) {
  const Scenario s = scenario("bert-large-fp32.yaml");
  for (auto _ : state) benchmark::DoNotOptimize(predict(s, "analytic"));
}
BENCHMARK(BM_PredictBertLarge)->Unit(benchmark::kMillisecond);

/// As a lab or a study asks it again: op trace, lowered operations and kernel times are known. Bar: 4 ms.
void BM_PredictBertLargeInAWarmSession(benchmark::State& state) {
  const Scenario s = scenario("bert-large-fp32.yaml");
  Session session;
  for (auto _ : state) benchmark::DoNotOptimize(StepRun(session, s, "analytic").prediction().step.time);
}
BENCHMARK(BM_PredictBertLargeInAWarmSession)->Unit(benchmark::kMillisecond);

void BM_PredictGpt2(benchmark::State& state) {
  const Scenario s = scenario("gpt2-ladder-h200/4-flash-attention.yaml");
  for (auto _ : state) benchmark::DoNotOptimize(predict(s, "analytic"));
}
BENCHMARK(BM_PredictGpt2)->Unit(benchmark::kMillisecond);

// BERT-Large under DistributedDataParallel on eight H200s of one server.
void BM_PredictBertLargeOnEightGpus(benchmark::State& state) {
  ScenarioSource source;
  source.text =
      "cluster: hgx-h200\nmodel: bert-large\ntraining: {micro_batch: 4, sequence_length: 512, precision: amp-bf16}\n";
  source.text_name = "eight GPUs";
  const Scenario scenario = load_scenario(source);
  for (auto _ : state) benchmark::DoNotOptimize(predict(scenario, "analytic").step.time);
}
BENCHMARK(BM_PredictBertLargeOnEightGpus)->Unit(benchmark::kMillisecond);

/// Bars: 2 s and 1.5 s on two cores.
void BM_SimulateBertLarge(benchmark::State& state) {
  const Scenario s = scenario("bert-large-fp32.yaml");
  for (auto _ : state) benchmark::DoNotOptimize(predict(s, "simulate"));
}
BENCHMARK(BM_SimulateBertLarge)->Unit(benchmark::kMillisecond);

void BM_SimulateGpt2(benchmark::State& state) {
  const Scenario s = scenario("gpt2-ladder-h200/4-flash-attention.yaml");
  for (auto _ : state) benchmark::DoNotOptimize(predict(s, "simulate"));
}
BENCHMARK(BM_SimulateGpt2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ridgeline
