// Physics that every prediction of a matrix product has to respect, whatever its constants.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/timing/kernel_time.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {
namespace {

constexpr const char* kGpus[] = {"nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb", "nvidia-v100-sxm2-16gb", "nvidia-t4",
                                 "nvidia-rtx-3090"};
/// Rounding of sums.
constexpr double kRounding = 1.0 + 1e-9;

struct Timed {
  double seconds = 0.0;
  KernelTime longest;
  double flops = 0.0, compulsory_bytes = 0.0;
};

Timed time_of(const Matmul& op, const Gpu& gpu) {
  const LoweredOp lowered = lower(op, gpu, Software{});
  const auto engine = make_timing_engine("analytic", gpu);
  Timed result;
  for (const KernelLaunch& launch : lowered.launches) {
    const KernelTime time = engine->time(launch, {});
    result.seconds += time.time.value();
    if (time.time > result.longest.time) result.longest = time;
    result.flops += launch.flops;
  }
  const double element = static_cast<double>(bytes_of(op.type));
  result.compulsory_bytes = element * static_cast<double>(op.batch) * static_cast<double>(op.m * op.k + op.k * op.n);
  return result;
}

std::vector<Matmul> random_products(int count) {
  std::mt19937_64 random(20240611);
  const auto size = [&](int low, int high) {
    return static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(low, high)(random)));
  };
  std::vector<Matmul> result;
  for (int i = 0; i < count; ++i) {
    Matmul op;
    op.type = std::array{DType::bf16, DType::fp16, DType::tf32, DType::fp32}[random() % 4];
    op.layout = std::array{Layout::nn, Layout::nt, Layout::tn}[random() % 3];
    op.batch = random() % 4 == 0 ? size(1, 7) : 1;
    const std::int64_t unit = random() % 3 == 0 ? 1 : 8;
    op.m = std::max<std::int64_t>(1, size(4, 13) / unit) * unit;
    op.n = std::max<std::int64_t>(1, size(4, 13) / unit) * unit;
    op.k = std::max<std::int64_t>(1, size(4, 12) / unit) * unit;
    result.push_back(op);
  }
  return result;
}

double peak_rate(DType type, const MathRates& rates) {
  const double tensor = type == DType::bf16   ? rates.tensor_bf16
                        : type == DType::fp16 ? rates.tensor_fp16
                        : type == DType::tf32 ? rates.tensor_tf32
                                              : 0.0;
  return tensor > 0.0 ? tensor : rates.fp32;
}

TEST(GemmLaw, is_never_faster_than_the_datasheet_allows) {
  for (const char* name : kGpus) {
    const Gpu gpu = load_gpu(name);
    const double fastest_clock =
        std::max({gpu.clock.boost.value(), gpu.clock.sustained.value(), gpu.clock.tensor.value()});
    for (const Matmul& op : random_products(300)) {
      const Timed timed = time_of(op, gpu);
      const double compute_floor =
          timed.flops / (2.0 * peak_rate(op.type, gpu.sm.rates) * gpu.sm.count * fastest_clock);
      EXPECT_GE(timed.seconds, compute_floor) << name << " " << shape_of(op);
      EXPECT_GE(timed.seconds, timed.compulsory_bytes / gpu.dram.bandwidth.value()) << name << " " << shape_of(op);
      EXPECT_TRUE(std::isfinite(timed.seconds));
    }
  }
}

TEST(GemmLaw, more_of_anything_never_makes_a_product_slower) {
  for (const char* name : kGpus) {
    const Gpu gpu = load_gpu(name);
    Gpu wider = gpu, faster_memory = gpu, faster_math = gpu;
    // Twice the SMs share the same power budget: give them theirs, or a capped board would not gain.
    wider.sm.count *= 2;
    faster_memory.dram.bandwidth = gpu.dram.bandwidth * 2.0;
    faster_math.sm.rates.tensor_bf16 *= 2.0;
    faster_math.sm.rates.tensor_fp16 *= 2.0;
    faster_math.sm.rates.tensor_tf32 *= 2.0;
    for (const Matmul& op : random_products(150)) {
      const double now = time_of(op, gpu).seconds;
      EXPECT_LE(time_of(op, wider).seconds, now * kRounding) << name << " " << shape_of(op);
      EXPECT_LE(time_of(op, faster_memory).seconds, now * kRounding) << name << " " << shape_of(op);
      EXPECT_LE(time_of(op, faster_math).seconds, now * kRounding) << name << " " << shape_of(op);
    }
  }
}

TEST(GemmLaw, sparsity_and_other_rates_carry_through_to_compute_bound_products) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Matmul op{.type = DType::bf16, .batch = 1, .m = 8192, .n = 8192, .k = 8192, .layout = Layout::nt};
  const double dense = time_of(op, gpu).seconds;
  gpu.sm.rates.tensor_bf16 *= gpu.sm.rates.sparsity_factor;
  EXPECT_LT(time_of(op, gpu).seconds, dense / 1.2);
}

TEST(GemmLaw, one_tile_more_than_the_sms_costs_another_round) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const GemmConstants& constants = gemm_constants(GemmClass::wgmma_half);
  const auto at = [&](std::int64_t m) {  // twelve tiles wide
    GemmWork work{.family = GemmWork::Family::wgmma,
                  .type = DType::bf16,
                  .batch = 1,
                  .m = m,
                  .n = 12 * 128,
                  .k = 4096,
                  .layout = 1,
                  .tile_m = 128,
                  .tile_n = 128,
                  .tile_k = 64,
                  .stages = 6};
    return GemmLaw(work, gpu, constants).time(tile_of(work), 1);
  };
  const GemmTime full = at(11 * 128), more = at(11 * 128 + 1);
  EXPECT_DOUBLE_EQ(full.rounds, 1.0);
  EXPECT_DOUBLE_EQ(more.rounds, 2.0);
  EXPECT_GT(more.total, 1.6 * full.total);
}

TEST(GemmLaw, odd_leading_dimensions_cost_several_times_as_much) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto seconds = [&](std::int64_t n) {
    return time_of({.type = DType::bf16, .batch = 1, .m = 16384, .n = n, .k = 768, .layout = Layout::nt}, gpu).seconds;
  };
  EXPECT_GT(seconds(50257), 4.0 * seconds(50304));  // the vocabulary of GPT-2, and padded to a multiple of 64
  EXPECT_GT(seconds(50258), 1.8 * seconds(50304));  // pairs of elements can still be copied asynchronously
}

TEST(GemmLaw, names_what_limits_a_product) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto limiter = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return time_of({.type = DType::bf16, .batch = 1, .m = m, .n = n, .k = k, .layout = Layout::nt}, gpu)
        .longest.limiter;
  };
  EXPECT_EQ(limiter(8192, 8192, 8192), Limiter::compute);
  EXPECT_EQ(limiter(16, 32768, 8192), Limiter::dram);
  EXPECT_EQ(limiter(64, 64, 64), Limiter::latency);
}

TEST(GemmLaw, resident_operands_do_not_cost_dram_time) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const LoweredOp lowered = lower(
      Matmul{.type = DType::bf16, .batch = 1, .m = 64, .n = 4096, .k = 4096, .layout = Layout::nt}, gpu, Software{});
  const auto engine = make_timing_engine("analytic", gpu);
  const KernelLaunch& product = lowered.launches.front();
  const std::vector<double> hits(product.reads.size() + product.writes.size(), 1.0);
  const KernelTime cold = engine->time(product, {}), warm = engine->time(product, hits);
  EXPECT_LT(warm.time, cold.time);
  EXPECT_DOUBLE_EQ(warm.dram_read_bytes, 0.0);
}

TEST(GemmLaw, a_pair_of_sms_reads_half_of_the_shared_panel) {
  GemmWork work{.family = GemmWork::Family::wgmma, .tile_m = 128, .tile_n = 256, .tile_k = 64, .stages = 4};
  EXPECT_EQ(tile_of(work).mma_rows, 64);
  EXPECT_EQ(reads_of_n(tile_of(work)), 2.0) << "128 rows in pieces of 64, each with the panel of 256";
  work.tensor_memory = true;
  const GemmTile alone = tile_of(work);
  EXPECT_EQ(alone.mma_rows, 128);
  EXPECT_EQ(alone.wgmma_m, 128);
  EXPECT_EQ(reads_of_n(alone), 1.0);
  work.paired = true;
  EXPECT_EQ(reads_of_n(tile_of(work)), 0.5);
  work.tile_m = 64, work.tile_n = 8;
  EXPECT_EQ(tile_of(work).mma_rows, 64) << "at half the rate of the instruction";
}

TEST(GemmLaw, large_products_of_blackwell_are_not_bound_by_shared_memory) {
  const Gpu gpu = load_gpu("nvidia-b200");
  const GemmConstants& constants = gemm_constants(GemmClass::tcgen05_half);
  GemmWork work{.family = GemmWork::Family::wgmma,
                .type = DType::bf16,
                .m = 8192,
                .n = 8192,
                .k = 8192,
                .layout = static_cast<int>(Layout::nt),
                .tile_m = 128,
                .tile_n = 256,
                .tile_k = 64,
                .stages = 6,
                .tensor_memory = true,
                .paired = true};
  const GemmTime pair = GemmLaw(work, gpu, constants).time(tile_of(work), 1);
  EXPECT_LT(pair.shared, 0.6 * pair.math);
  work.paired = false;
  EXPECT_GT(GemmLaw(work, gpu, constants).time(tile_of(work), 1).shared, 1.3 * pair.shared);
}

}  // namespace
}  // namespace ridgeline
