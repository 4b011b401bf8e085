// How fast two training steps of a model become an operation trace.
#include <benchmark/benchmark.h>

#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

void two_steps(benchmark::State& state, const char* name, AttentionChoice attention) {
  const ModelDescription model = load_model(name);
  TrainingDescription training;
  training.micro_batch = 4;
  training.sequence_length = 512;
  training.gradient_clipping = 1.0;
  std::size_t records = 0;
  for (auto _ : state) {
    const OpTrace trace = training_run(model, training, attention);
    records = trace.records.size();
    benchmark::DoNotOptimize(trace.records.data());
  }
  state.counters["records"] = static_cast<double>(records);
}
BENCHMARK_CAPTURE(two_steps, bert_large_eager, "bert-large", AttentionChoice::eager)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(two_steps, gpt2_efficient, "gpt2", AttentionChoice::efficient)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ridgeline
