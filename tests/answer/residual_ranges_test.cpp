// Ranges: which count as validated, how wide a step's is for its kernels'.
#include "sim/answer/ranges/residual_ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer/ranges/busy_range.h"
#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

const Op kProduct = Matmul{.type = DType::bf16, .batch = 1, .m = 4096, .n = 4096, .k = 4096, .layout = Layout::nt};
const Op kSoftmax = Softmax{.input = DType::fp32, .output = DType::fp32, .rows = 4096, .cols = 4096};

/// Products of an H200, small ones measured by themselves.
ResidualRanges products_of_an_h200() {
  return ResidualRanges::from({{"ranges",
                                {{"analytic/nvidia-h200-sxm-141gb/gemm/small", {{"low", 0.9}, {"high", 1.1}}},
                                 {"analytic/nvidia-h200-sxm-141gb/gemm/any", {{"low", 0.8}, {"high", 1.3}}}}}});
}

TEST(ResidualRanges, OnlyAMeasuredFamilyAndSizeOfAMeasuredChipIsValidated) {
  const ResidualRanges ranges = products_of_an_h200();
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Range own = ranges.of_kernel(kProduct, microseconds(5), gpu, "analytic");
  EXPECT_TRUE(own.validated);
  EXPECT_DOUBLE_EQ(own.low, 0.9);
  EXPECT_DOUBLE_EQ(own.high, 1.1);
  const Range other_size = ranges.of_kernel(kProduct, microseconds(500), gpu, "analytic");
  EXPECT_FALSE(other_size.validated);
  EXPECT_DOUBLE_EQ(other_size.high, 1.3);
  EXPECT_FALSE(ranges.of_kernel(kSoftmax, microseconds(5), gpu, "analytic").validated);
  EXPECT_FALSE(ranges.of_kernel(kProduct, microseconds(5), gpu, "simulate").validated);
  gpu.dram.bandwidth = 1.5 * gpu.dram.bandwidth;
  const Range changed = ranges.of_kernel(kProduct, microseconds(5), gpu, "analytic");
  EXPECT_FALSE(changed.validated);
  EXPECT_LT(changed.low, own.low);
  EXPECT_GT(changed.high, own.high);
}

TEST(ResidualRanges, SparseProductsAreNotValidated) {
  Matmul sparse = std::get<Matmul>(kProduct);
  sparse.sparse = SparseOperand::a;
  EXPECT_FALSE(products_of_an_h200()
                   .of_kernel(sparse, microseconds(5), load_gpu("nvidia-h200-sxm-141gb"), "analytic")
                   .validated);
}

/// Of ops that take 200 us each.
BusyRange range_of(const std::vector<Op>& ops, const Gpu& gpu) {
  const KernelLaunch launch;
  KernelTime time;
  time.time = microseconds(200);
  std::vector<LaunchedKernel> kernels;
  for (const Op& op : ops)
    kernels.push_back({&launch, &op, static_cast<std::uint32_t>(kernels.size()), Phase::forward, 1.0, 0});
  return busy_range(kernels, std::vector(ops.size(), time), gpu, "analytic");
}

TEST(BusyRange, OneKernelHasItsOwnRangeAndSeveralShareHalfTheirErrorsOrMore) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Range product = residual_ranges().of_kernel(kProduct, microseconds(200), gpu, "analytic"),
              softmax = residual_ranges().of_kernel(kSoftmax, microseconds(200), gpu, "analytic");
  ASSERT_LT(product.low, 1.0);
  ASSERT_GT(product.high, 1.0);
  const BusyRange one = range_of({kProduct}, gpu);
  EXPECT_TRUE(one.validated);
  EXPECT_NEAR(one.low, product.low, 1e-12);
  EXPECT_NEAR(one.high, product.high, 1e-12);
  // Of independent errors the sum has the root of the sum of squares; of one family's some are shared.
  const double independent = (product.high - 1.0) / std::sqrt(2.0), equal = product.high - 1.0;
  const double alike = range_of({kProduct, kProduct}, gpu).high - 1.0;
  EXPECT_GT(alike, 1.1 * independent);
  EXPECT_LT(alike, 0.99 * equal);
  EXPECT_NEAR(range_of({kProduct, kSoftmax}, gpu).high - 1.0, std::hypot(product.high - 1.0, softmax.high - 1.0) / 2.0,
              1e-12);
}

TEST(BusyRange, AStepOfAChipThatNobodyMeasuredSaysSo) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.sm.count *= 2;
  const BusyRange range = range_of({kProduct}, gpu);
  EXPECT_FALSE(range.validated);
  EXPECT_NE(range.why_not.find("nearest is"), std::string::npos) << range.why_not;
  EXPECT_GT(range.high, range_of({kProduct}, load_gpu("nvidia-h200-sxm-141gb")).high);
}

}  // namespace
}  // namespace ridgeline
