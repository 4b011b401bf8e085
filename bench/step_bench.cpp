// How long each part of a prediction takes: one training step of BERT-Large (2,000 kernels, 12,000 allocations).
#include <benchmark/benchmark.h>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/attention/attention_choice.h"
#include "sim/memory/memory_run.h"
#include "sim/program/step_program.h"
#include "sim/timeline/step_times.h"
#include "sim/timeline/timeline.h"
#include "sim/workload/host_class.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

struct BertLarge {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Host host = load_host("default", host_class_names());
  Software software = load_software("pytorch-2.11");
  ModelDescription model = load_model("bert-large");
  TrainingDescription training = [] {
    TrainingDescription t;
    t.micro_batch = 4;
    t.attention = AttentionRequest::eager;
    t.gradient_clipping = 1.0;
    return t;
  }();
  AttentionChoice attention = choose_attention(training, model, gpu, software);
  OpTrace trace = training_run(model, training, attention);
  StepProgram program = make_program(trace, gpu, software);
  std::unique_ptr<TimingEngine> engine = make_timing_engine("analytic", gpu);
  std::vector<KernelTime> times = time_kernels(program, *engine, gpu);
};
const BertLarge& bert() {
  static const BertLarge bert;
  return bert;
}

void op_trace(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(training_run(bert().model, bert().training, bert().attention).records.size());
}
void step_program(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(make_program(bert().trace, bert().gpu, bert().software).actions.size());
}
void kernel_times(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(time_kernels(bert().program, *bert().engine, bert().gpu).size());
}
void timeline(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(run_timeline(bert().program, bert().times, bert().gpu, bert().host, {}).step);
}
void memory(benchmark::State& state) {
  MemoryOptions options;
  options.capacity = std::int64_t{1} << 37;
  for (auto _ : state) benchmark::DoNotOptimize(run_memory(bert().program, options).peak_reserved);
}
BENCHMARK(op_trace)->Unit(benchmark::kMicrosecond);
BENCHMARK(step_program)->Unit(benchmark::kMicrosecond);
BENCHMARK(kernel_times)->Unit(benchmark::kMicrosecond);
BENCHMARK(timeline)->Unit(benchmark::kMicrosecond);
BENCHMARK(memory)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ridgeline
