// Points of a sweep a second, on one and on two threads: a thousand of BERT-Large and GPT-2 on six GPUs, and variants
// of one GPU. Bar: 1,000 points a second and core.
#include <benchmark/benchmark.h>

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

/// One number of the chip: op trace, memory and what the L2 keeps are the same for all points.
void BM_SweepOfBandwidths(benchmark::State& state) {
  Sweep sweep = load_sweep(RIDGELINE_SOURCE_DIR "/scenarios/sweeps/sampled-chips.yaml");
  std::erase_if(sweep.axes, [](const SweepAxis& axis) { return axis.name != "hardware.dram.bandwidth"; });
  sweep.sample_points.reset();
  SweepAxis& bandwidth = sweep.axes.front();
  bandwidth.values.clear();
  for (int i = 0; i < 200; ++i) {
    const std::string value = std::to_string(1500 + 20 * i) + " GB/s";
    bandwidth.values.push_back({value, {{bandwidth.name, value, "bandwidths"}}});
  }
  const std::vector<std::uint64_t> points = sweep.points();
  const SweepRunOptions options{static_cast<int>(state.range(0)), nullptr, {}};
  for (auto _ : state) benchmark::DoNotOptimize(run_sweep(sweep, points, options).size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(points.size()));
}
BENCHMARK(BM_SweepOfBandwidths)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace ridgeline
