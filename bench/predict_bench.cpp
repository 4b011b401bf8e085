// How long a prediction takes once everything is loaded.
#include <benchmark/benchmark.h>

#include "sim/scenario/prediction.h"
#include "sim/study/kernel_prediction.h"

#include <nlohmann/json.hpp>

#include "sim/hardware/load_host.h"

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

void BM_PredictGpt2(benchmark::State& state) {
  const Scenario s = scenario("gpt2-ladder-h200/4-flash-attention.yaml");
  for (auto _ : state) benchmark::DoNotOptimize(predict(s, "analytic"));
}
BENCHMARK(BM_PredictGpt2)->Unit(benchmark::kMillisecond);

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

void BM_PredictOneKernel(benchmark::State& state, const char* text) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  const auto engine = make_timing_engine("analytic", gpu);
  const Lowering lowering(gpu, software);
  const KernelCase kernel = kernel_case_from(nlohmann::json::parse(text));
  for (auto _ : state) benchmark::DoNotOptimize(predict_kernel(kernel, lowering, *engine));
}
BENCHMARK_CAPTURE(BM_PredictOneKernel, mm_bf16,
                  R"({"op":"mm","dtype":"bf16","params":{"m":4096,"n":4096,"k":1024,"layout":"nt"}})");
BENCHMARK_CAPTURE(BM_PredictOneKernel, mm_fp32,
                  R"({"op":"mm","dtype":"fp32","params":{"m":4096,"n":4096,"k":1024,"layout":"nt"}})");
BENCHMARK_CAPTURE(BM_PredictOneKernel, bmm_fp16,
                  R"({"op":"bmm","dtype":"fp16","params":{"b":64,"m":512,"n":512,"k":64,"layout":"nt"}})");
BENCHMARK_CAPTURE(BM_PredictOneKernel, softmax,
                  R"({"op":"softmax","dtype":"fp32","params":{"rows":32768,"cols":512}})");
BENCHMARK_CAPTURE(
    BM_PredictOneKernel, flash,
    R"({"op":"flash_attention","dtype":"bf16","params":{"batch":16,"heads":12,"seq":1024,"head_dim":64,"causal":true}})");

}  // namespace
}  // namespace ridgeline
