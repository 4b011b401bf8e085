// How long each output of `ridgeline predict` takes once the step is predicted.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>

#include "sim/answer/full_prediction.h"
#include "sim/memory/memory_run.h"
#include "sim/report/answer_report.h"
#include "sim/report/page/page.h"

namespace ridgeline {
namespace {

struct Answered {
  Session session;
  StepRun run;
  Prediction prediction;
  Answered() : run(session, bert_large(), "analytic"), prediction(full_prediction(run, {.advice = false})) {
    (void)run.memory_run();
  }
  static Scenario bert_large() {
    ScenarioSource source;
    source.file = RIDGELINE_SOURCE_DIR "/scenarios/bert-large-fp32.yaml";
    return load_scenario(source);
  }
};
Answered& bert() {
  static Answered bert;
  return bert;
}

void output_allocations(benchmark::State& state) {
  MemoryOptions options = memory_options(bert().run.scenario());
  options.record_samples = options.record_history = true;
  for (auto _ : state) benchmark::DoNotOptimize(run_memory(bert().run.program(), options).history.size());
}
void output_timeline(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(answer_timeline(bert().run).size());
}
void output_op_trace(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(answer_op_trace(bert().run).size());
}
void output_memory_snapshot(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(answer_memory_snapshot(bert().run).size());
}
void output_page(benchmark::State& state) {
  for (auto _ : state) {
    nlohmann::ordered_json data{{"title", "page"},
                                {"parts", {answer_page_part(bert().run, bert().prediction, "page")}}};
    benchmark::DoNotOptimize(page(data).size());
  }
}
void output_json(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(answer_json(bert().run, bert().prediction, {.memory_report = true}, "").dump(2).size());
}
void output_text(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(answer_text(bert().run, bert().prediction, Notes::folded, {.memory_report = true}).size());
}
BENCHMARK(output_allocations)->Unit(benchmark::kMillisecond);
BENCHMARK(output_timeline)->Unit(benchmark::kMillisecond);
BENCHMARK(output_op_trace)->Unit(benchmark::kMillisecond);
BENCHMARK(output_memory_snapshot)->Unit(benchmark::kMillisecond);
BENCHMARK(output_page)->Unit(benchmark::kMillisecond);
BENCHMARK(output_json)->Unit(benchmark::kMillisecond);
BENCHMARK(output_text)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ridgeline
