// What 2:4 sparse weights would give: bounds that hold whatever they turn out to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/answer/ranges/busy_range.h"
#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/study/kernel_prediction.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {
namespace {

constexpr const char* kSparseGpus[] = {"nvidia-h200-sxm-141gb", "nvidia-h100-pcie-80gb", "nvidia-a100-sxm4-80gb",
                                       "nvidia-rtx-3090"};

Matmul product(std::int64_t m, std::int64_t n, std::int64_t k, SparseOperand sparse, DType type = DType::bf16) {
  return {.type = type, .batch = 1, .m = m, .n = n, .k = k, .layout = Layout::nt, .sparse = sparse};
}

double product_seconds(const Matmul& op, const Gpu& gpu) {
  const Software software = load_software("pytorch-2.11");
  return predict_kernel({op, 0}, gpu, software, *make_timing_engine("analytic", gpu)).time.value();
}

TEST(SparseProducts, no_tile_is_slower_than_with_dense_operands) {
  for (const char* name : kSparseGpus) {
    const Gpu gpu = load_gpu(name);
    const GpuMenus menus(gpu);
    for (const DType type : {DType::bf16, DType::fp16, DType::tf32})
      for (const Matmul& shape :
           {product(4096, 4096, 4096, SparseOperand::none, type), product(64, 12288, 4096, SparseOperand::none, type),
            product(16384, 320, 1280, SparseOperand::none, type), product(208, 48, 16384, SparseOperand::none, type)})
        for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn})
          for (const SparseOperand sparse : {SparseOperand::a, SparseOperand::b}) {
            Matmul op = shape;
            op.layout = layout;
            const GemmWork dense = gemm_problem(op, gpu);
            op.sparse = sparse;
            const GemmWork halved = gemm_problem(op, gpu);
            const GemmClass kernels = gemm_class_of(dense, gpu);
            const GemmLaw dense_law(dense, gpu, gemm_constants(kernels)), law(halved, gpu, gemm_constants(kernels));
            for (const TileChoice& choice : menus.of(kernels, false).entries)
              EXPECT_LE(law.time(choice.tile, 1).total, dense_law.time(choice.tile, 1).total)
                  << name << " " << shape_of(op) << " " << choice.tile.m << "x" << choice.tile.n;
          }
  }
}

TEST(SparseProducts, a_large_product_gains_much_but_never_more_than_the_factor) {
  for (const char* name : kSparseGpus) {
    Gpu gpu = load_gpu(name);
    const double dense = product_seconds(product(8192, 8192, 8192, SparseOperand::none), gpu);
    const double sparse = product_seconds(product(8192, 8192, 8192, SparseOperand::b), gpu);
    EXPECT_LT(sparse, dense / 1.2) << name;
    EXPECT_GT(sparse, dense / gpu.sm.rates.sparsity_factor) << name;
    gpu.sm.rates.sparsity_factor = 1.5;
    EXPECT_GT(product_seconds(product(8192, 8192, 8192, SparseOperand::b), gpu), sparse) << name;
  }
}

TEST(SparseProducts, read_nine_sixteenths_of_the_sparse_operand_and_execute_half_of_the_flops) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Software software = load_software("pytorch-2.11");
  for (const DType type : {DType::bf16, DType::tf32}) {
    const auto dense = lower(product(512, 1024, 2048, SparseOperand::none, type), gpu, software).launches.back();
    const auto a = lower(product(512, 1024, 2048, SparseOperand::a, type), gpu, software).launches;
    const auto b = lower(product(512, 1024, 2048, SparseOperand::b, type), gpu, software).launches;
    const auto& of_a = a.front().flops > 0.0 ? a.front() : a[1];
    const auto& of_b = b.front().flops > 0.0 ? b.front() : b[1];
    const double element = static_cast<double>(bytes_of(type));
    EXPECT_DOUBLE_EQ(of_a.reads[0].bytes, 512 * 2048 * element * 9 / 16);
    EXPECT_DOUBLE_EQ(of_a.reads[1].bytes, 1024 * 2048 * element);
    EXPECT_DOUBLE_EQ(of_b.reads[0].bytes, 512 * 2048 * element);
    EXPECT_DOUBLE_EQ(of_b.reads[1].bytes, 1024 * 2048 * element * 9 / 16);
    EXPECT_DOUBLE_EQ(of_a.flops, 0.5 * 2.0 * 512 * 1024 * 2048);
  }
}

TEST(SparseProducts, say_what_they_need) {
  const auto complaint = [](const char* gpu, const Matmul& op) -> std::string {
    try {
      static_cast<void>(lower(op, load_gpu(gpu), Software{}));
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  const auto b = SparseOperand::b;
  EXPECT_THAT(complaint("nvidia-v100-sxm2-16gb", product(64, 64, 64, b, DType::fp16)),
              HasSubstr("no sparse tensor cores"));
  EXPECT_THAT(complaint("nvidia-h200-sxm-141gb", product(64, 64, 64, b, DType::fp32)),
              HasSubstr("needs bf16, fp16 or tf32"));
  EXPECT_THAT(complaint("nvidia-h200-sxm-141gb", product(64, 72, 64, b)), HasSubstr("multiples of 16"));
  EXPECT_THAT(complaint("nvidia-h200-sxm-141gb", product(64, 64, 24, b)), HasSubstr("multiples of 16"));
  EXPECT_THAT(complaint("nvidia-h200-sxm-141gb", product(64, 68, 64, b, DType::tf32)), HasSubstr("multiples of 8"));
  EXPECT_EQ(complaint("nvidia-h200-sxm-141gb", product(64, 72, 64, b, DType::tf32)), "no error");
  EXPECT_EQ(complaint("nvidia-h200-sxm-141gb", product(63, 80, 64, b)), "no error");  // the dense side may be odd
}

TEST(SparseProducts, are_never_called_validated) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const ChipRanges ranges(residual_ranges(), gpu);
  const auto validated = [&](SparseOperand sparse) {
    KernelLaunch launch;
    launch.work = GemmWork{.family = GemmWork::Family::wgmma};
    return ranges.of(kind_of(product(64, 64, 64, sparse), launch), Seconds{1e-4}, "analytic").validated;
  };
  EXPECT_TRUE(validated(SparseOperand::none));
  EXPECT_FALSE(validated(SparseOperand::b));
}

TEST(SparseProducts, are_written_in_a_kernel_case) {
  const auto read = [](const char* params) {
    const auto line = nlohmann::json{{"op", "mm"}, {"dtype", "bf16"}, {"params", nlohmann::json::parse(params)}};
    return std::get<Matmul>(kernel_case_from(line).op).sparse;
  };
  EXPECT_EQ(read(R"({"m":64,"n":64,"k":64,"layout":"nt","sparsity":"2:4"})"), SparseOperand::b);
  EXPECT_EQ(read(R"({"m":64,"n":64,"k":64,"sparsity":"2:4","sparse_operand":"a"})"), SparseOperand::a);
  EXPECT_EQ(read(R"({"m":64,"n":64,"k":64,"sparsity":"none"})"), SparseOperand::none);
  for (const char* bad : {R"({"m":64,"n":64,"k":64,"sparsity":"1:4"})", R"({"m":64,"n":64,"k":64,"sparsity":0.5})",
                          R"({"m":64,"n":64,"k":64,"sparse_operand":"a"})",
                          R"({"m":64,"n":64,"k":64,"sparsity":"2:4","sparse_operand":"c"})"})
    EXPECT_THROW(static_cast<void>(read(bad)), KernelCaseError) << bad;
}

TEST(SparseWeights, of_a_model_make_its_step_faster_and_are_marked_as_never_measured) {
  const auto predicted = [](const char* sparsity) {
    ScenarioSource source;
    source.file = std::string(RIDGELINE_SOURCE_DIR "/scenarios/gpt2-ladder-h200/4-flash-attention.yaml");
    source.overrides = {config::parse_override(std::string("model.weight_sparsity=") + sparsity)};
    return predict(load_scenario(source), "analytic");
  };
  const Prediction dense = predicted("none"), sparse = predicted("2:4");
  EXPECT_LT(sparse.step.gpu_busy.value(), dense.step.gpu_busy.value());
  EXPECT_EQ(sparse.memory.peak_allocated, dense.memory.peak_allocated);
  EXPECT_THAT(sparse.notes, ::testing::Contains(::testing::HasSubstr("2:4 sparse weights: a what-if")));
  EXPECT_THAT(dense.notes, ::testing::Not(::testing::Contains(::testing::HasSubstr("2:4"))));
}

}  // namespace
}  // namespace ridgeline
