// How long the prediction of one kernel takes that nobody asked for before: lowering it (for a product the choice of a
// tile among a whole menu) and timing its launches. Bar: 3 µs.
//
// Nothing remembers a shape here: predict_kernel keeps no results, and every iteration asks for another of 2048 random
// shapes. `median_ns` and `p90_ns` are over shapes, each at the least of its passes, so that what else runs on the
// machine does not count; the time that Google Benchmark prints is the mean over all passes, clock reads included.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/study/kernel_prediction.h"

namespace ridgeline {
namespace {

using Random = std::mt19937_64;

/// Evenly distributed in its logarithm, a multiple of `unit`.
std::int64_t size(Random& random, double low, double high, std::int64_t unit = 8) {
  const double value = std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  return std::max(unit, static_cast<std::int64_t>(value) / unit * unit);
}

template <DType type, bool bias>
Op product(Random& random) {
  return Matmul{.type = type,
                .batch = 1,
                .m = size(random, 64, 16384),
                .n = size(random, 64, 16384),
                .k = size(random, 64, 16384),
                .layout = bias ? Layout::nt : static_cast<Layout>(random() % 3),
                .bias = bias};
}
Op batched_product(Random& random) {
  return Matmul{.type = DType::fp16,
                .batch = size(random, 8, 512, 1),
                .m = size(random, 32, 2048),
                .n = size(random, 32, 2048),
                .k = size(random, 32, 2048),
                .layout = static_cast<Layout>(random() % 3)};
}
Op softmax(Random& random) {
  return Softmax{
      .input = DType::fp32, .output = DType::fp32, .rows = size(random, 64, 65536), .cols = size(random, 32, 8192)};
}
template <bool backward>
Op layer_norm(Random& random) {
  return Norm{.backward = backward, .rows = size(random, 64, 65536), .cols = size(random, 64, 8192)};
}
Op pointwise(Random& random) {
  return Pointwise{.function = PointwiseFunction::gelu,
                   .rows = size(random, 64, 65536),
                   .cols = size(random, 64, 8192),
                   .inputs = {DType::bf16},
                   .output = DType::bf16};
}
template <bool backward>
Op flash_attention(Random& random) {
  const std::int64_t heads = size(random, 4, 32, 1), sequence = size(random, 128, 8192);
  return Attention{.backward = backward,
                   .causal = random() % 2 == 0,
                   .batch = size(random, 1, 32, 1),
                   .heads = heads,
                   .kv_heads = heads,
                   .seq_q = sequence,
                   .seq_k = sequence,
                   .head_dim = random() % 2 == 0 ? 64 : 128};
}

/// Nanoseconds of each shape, one after another: the least of its passes.
class ShapesTimes {
 public:
  explicit ShapesTimes(std::size_t shapes) : least_(shapes, INFINITY) {}
  template <class Work>
  void next(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work(next_);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    least_[next_] = std::min(least_[next_], took.count());
    next_ = next_ + 1 < least_.size() ? next_ + 1 : 0;
  }
  void report(benchmark::State& state) {
    std::erase_if(least_, [](double time) { return std::isinf(time); });
    std::sort(least_.begin(), least_.end());
    if (least_.empty()) return;
    state.counters["median_ns"] = least_[least_.size() / 2];
    state.counters["p90_ns"] = least_[least_.size() * 9 / 10];
  }

 private:
  std::vector<double> least_;
  std::size_t next_ = 0;
};

void BM_PredictColdKernel(benchmark::State& state, Op (*draw)(Random&)) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  const auto engine = make_timing_engine("analytic", gpu);
  const Lowering lowering(gpu, software);
  Random random(1);
  std::vector<KernelCase> cases(2048);
  for (KernelCase& kernel : cases) kernel.op = draw(random);
  ShapesTimes times(cases.size());
  for (auto _ : state)
    times.next([&](std::size_t i) { benchmark::DoNotOptimize(predict_kernel(cases[i], lowering, *engine)); });
  times.report(state);
}
BENCHMARK_CAPTURE(BM_PredictColdKernel, mm_bf16, product<DType::bf16, false>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, mm_tf32, product<DType::tf32, false>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, mm_fp32, product<DType::fp32, false>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, addmm_bf16, product<DType::bf16, true>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, bmm_fp16, batched_product);
BENCHMARK_CAPTURE(BM_PredictColdKernel, softmax, softmax);
BENCHMARK_CAPTURE(BM_PredictColdKernel, layer_norm, layer_norm<false>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, layer_norm_backward, layer_norm<true>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, pointwise, pointwise);
BENCHMARK_CAPTURE(BM_PredictColdKernel, flash_forward, flash_attention<false>);
BENCHMARK_CAPTURE(BM_PredictColdKernel, flash_backward, flash_attention<true>);

/// The choice alone: which tile and split of both generations' menus, without launches and their times.
void BM_ChooseColdProduct(benchmark::State& state, Op (*draw)(Random&)) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const GpuMenus menus(gpu);
  Random random(1);
  std::vector<Op> ops(2048);
  for (Op& op : ops) op = draw(random);
  ShapesTimes times(ops.size());
  for (auto _ : state)
    times.next([&](std::size_t i) {
      benchmark::DoNotOptimize(select_gemm(gemm_problem(std::get<Matmul>(ops[i]), gpu), gpu, menus));
    });
  times.report(state);
}
BENCHMARK_CAPTURE(BM_ChooseColdProduct, mm_bf16, product<DType::bf16, false>);
BENCHMARK_CAPTURE(BM_ChooseColdProduct, mm_tf32, product<DType::tf32, false>);
BENCHMARK_CAPTURE(BM_ChooseColdProduct, mm_fp32, product<DType::fp32, false>);
BENCHMARK_CAPTURE(BM_ChooseColdProduct, addmm_bf16, product<DType::bf16, true>);
BENCHMARK_CAPTURE(BM_ChooseColdProduct, bmm_fp16, batched_product);

}  // namespace
}  // namespace ridgeline
