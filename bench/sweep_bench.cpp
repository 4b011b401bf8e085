// Points of a sweep a second, on one and on two threads: a thousand of BERT-Large and GPT-2 on six GPUs, variants
// of one GPU by several numbers and by one, and batches. Bar: 1,000 points a second and core.
#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/study/sweep/run_sweep.h"

namespace ridgeline {
namespace {

void BM_SweepOfAThousandPoints(benchmark::State& state) {
  Sweep sweep = load_sweep(RIDGELINE_SOURCE_DIR "/scenarios/sweeps/six-gpus.yaml");
  std::vector<std::uint64_t> points = sweep.points();
  // Whole rows of GPUs from all over the grid, as neighbours in the full sweep share their work.
  std::vector<std::uint64_t> some;
  for (std::size_t i = 0; i + 6 <= points.size(); i += 60) some.insert(some.end(), &points[i], &points[i] + 6);
  const SweepRunOptions options{static_cast<int>(state.range(0)), nullptr, {}};
  for (auto _ : state) benchmark::DoNotOptimize(run_sweep(sweep, some, options).size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(some.size()));
}
BENCHMARK(BM_SweepOfAThousandPoints)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Variants of one chip: every point has the same op trace.
void BM_SweepOfChips(benchmark::State& state) {
  const Sweep sweep = load_sweep(RIDGELINE_SOURCE_DIR "/scenarios/sweeps/sampled-chips.yaml");
  const std::vector<std::uint64_t> points = sweep.points();
  const SweepRunOptions options{static_cast<int>(state.range(0)), nullptr, {}};
  for (auto _ : state) benchmark::DoNotOptimize(run_sweep(sweep, points, options).size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(points.size()));
}
BENCHMARK(BM_SweepOfChips)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The sampled chips' network and GPU, by one axis alone.
Sweep by_one_axis(const std::string& key, int points, const std::function<std::string(int)>& value_of) {
  Sweep sweep = load_sweep(RIDGELINE_SOURCE_DIR "/scenarios/sweeps/sampled-chips.yaml");
  sweep.sample_points.reset();
  SweepAxis axis{key, {}};
  for (int i = 0; i < points; ++i) {
    const std::string value = value_of(i);
    axis.values.push_back({value, {{key, value, "one axis"}}});
  }
  sweep.axes = {axis};
  return sweep;
}

void run(benchmark::State& state, const Sweep& sweep) {
  const std::vector<std::uint64_t> points = sweep.points();
  const SweepRunOptions options{static_cast<int>(state.range(0)), nullptr, {}};
  for (auto _ : state)
    for (const SweepPoint& point : run_sweep(sweep, points, options))
      if (!point.ran()) return state.SkipWithError(point.error.c_str());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(points.size()));
}

/// One number of the chip: op trace, memory and what the L2 keeps are the same for all points.
void BM_SweepOfBandwidths(benchmark::State& state) {
  run(state,
      by_one_axis("hardware.dram.bandwidth", 200, [](int i) { return std::to_string(1500 + 20 * i) + " GB/s"; }));
}
BENCHMARK(BM_SweepOfBandwidths)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The same of the clock, by which every kernel but the memory-bound ones takes another time.
void BM_SweepOfClocks(benchmark::State& state) {
  run(state, by_one_axis("hardware.clock.tensor", 200, [](int i) { return std::to_string(1500 + 2 * i) + " MHz"; }));
}
BENCHMARK(BM_SweepOfClocks)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Batches: every point has an op trace, kernels and memory of its own.
void BM_SweepOfBatches(benchmark::State& state) {
  run(state, by_one_axis("training.micro_batch", 64, [](int i) { return std::to_string(1 + i); }));
}
BENCHMARK(BM_SweepOfBatches)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace ridgeline
