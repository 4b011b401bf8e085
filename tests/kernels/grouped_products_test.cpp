// Products of groups of rows: rows measured on an H200 that no constant was fitted on, and what must hold for any.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/workload/kernel_case.h"
#include "tests/support/measurement_index.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

/// Groups of at most 64 rows wait for the DRAM longer than the law says, which makes the mean.
constexpr double kMedian = 0.045, kMean = 0.065;

Matmul grouped(DType type, std::int64_t groups, std::int64_t m, std::int64_t n, std::int64_t k) {
  Matmul op{.type = type, .batch = groups, .m = m, .n = n, .k = k, .layout = Layout::nt};
  op.grouped = true;
  return op;
}

const GemmWork& product_of(const LoweredOp& lowered) { return std::get<GemmWork>(lowered.launches.back().work); }

TEST(GroupedProducts, measured_on_an_h200) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto engine = make_engine("analytic", gpu);
  testing::PredictionErrors errors;
  for_each_row(testing::measurements().file("h200/grouped_products.jsonl.gz"), [&](const nlohmann::json& row) {
    const KernelCase kernel = kernel_case_from(row);
    errors.add(testing::predict_op(kernel.op, kernel.input_sets, gpu, *engine).time.value(),
               1e-6 * row["us"].get<double>());
  });
  EXPECT_EQ(errors.count(), 84u);
  errors.expect_within("grouped products", kMedian, kMean);
}

TEST(GroupedProducts, take_the_small_tile_where_a_side_is_at_most_128) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto tile = [&](std::int64_t m, std::int64_t n) {
    const LoweredOp lowered = lower(grouped(DType::bf16, 4, m, n, 512), gpu, Software{});
    EXPECT_EQ(lowered.launches.size(), 2u);
    EXPECT_EQ(lowered.launches.front().name, "prepare_grouped_gemm_data");
    const GemmWork& work = product_of(lowered);
    EXPECT_TRUE(work.grouped);
    return std::array{work.tile_m, work.tile_n, work.tile_k};
  };
  EXPECT_EQ(tile(128, 512), (std::array{64, 128, 128}));
  EXPECT_EQ(tile(512, 128), (std::array{64, 128, 128}));
  EXPECT_EQ(tile(129, 136), (std::array{128, 256, 64}));
}

TEST(GroupedProducts, hold_pointers_of_groups_and_descriptors_of_blocks_while_they_run) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  // Sixteen groups of pointers, sizes and strides, four descriptors of 128 bytes for each of 132 SMs.
  EXPECT_THAT(lower(grouped(DType::bf16, 16, 512, 512, 512), gpu, Software{}).temporaries,
              ::testing::ElementsAre(16 * 60, 132 * 512));
}

TEST(GroupedProducts, run_one_after_another_where_pytorch_has_no_kernel) {
  Matmul single = grouped(DType::bf16, 1, 256, 512, 128);
  single.grouped = false;
  for (const auto& [gpu_name, type] :
       {std::pair{"nvidia-a100-sxm4-80gb", DType::bf16}, std::pair{"nvidia-h200-sxm-141gb", DType::fp32},
        std::pair{"nvidia-h200-sxm-141gb", DType::fp16}}) {
    const Gpu gpu = load_gpu(gpu_name);
    single.type = type;
    const std::size_t each = lower(single, gpu, Software{}).launches.size();
    EXPECT_EQ(lower(grouped(type, 5, 256, 512, 128), gpu, Software{}).launches.size(), 5 * each) << gpu_name;
  }
}

}  // namespace
}  // namespace ridgeline
