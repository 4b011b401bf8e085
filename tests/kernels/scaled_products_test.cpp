// Products of fp8: rows measured beside an H100 that no constant was fitted on, and what must hold whatever they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/study/validation/scaled_products.h"
#include "tests/support/measurement_index.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

/// Median and mean: 16-bit products of these shapes on this machine have 4 and 7 %.
constexpr double kFastMedian = 0.075, kFastMean = 0.085, kFp32Median = 0.09, kFp32Mean = 0.115, kRowsMedian = 0.075,
                 kRowsMean = 0.08;

Matmul scaled_op(std::int64_t m, std::int64_t n, std::int64_t k, Scaling scaling = Scaling::tensor_fast) {
  Matmul op{.type = DType::bf16, .m = m, .n = n, .k = k, .layout = Layout::nt};
  op.scaling = scaling;
  return op;
}
double seconds_of_product(const Matmul& op, const char* engine = "analytic") {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  return testing::predict_op(op, 0, gpu, *make_engine(engine, gpu)).time.value();
}
std::string why_no_product(const Matmul& op, const char* gpu) {
  try {
    static_cast<void>(lower(op, load_gpu(gpu), Software{}));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(ScaledProducts, shapes_held_out_on_the_h100) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const auto engine = make_engine("analytic", gpu);
  std::map<Scaling, testing::PredictionErrors> errors;
  for (const MeasuredOp& row : load_scaled_products(testing::measurements().file("h100/fp8_products.jsonl.gz"))) {
    if (!row.held_out) continue;
    errors[std::get<Matmul>(row.kernel.op).scaling].add(
        testing::predict_op(row.kernel.op, 0, gpu, *engine).time.value(), row.time.value());
  }
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[Scaling::tensor].count(), 19u);
  errors[Scaling::tensor_fast].expect_within("fp8, sums in the tensor cores", kFastMedian, kFastMean);
  errors[Scaling::tensor].expect_within("fp8, sums in fp32", kFp32Median, kFp32Mean);
  errors[Scaling::rows_fast].expect_within("fp8, scales of rows", kRowsMedian, kRowsMean);
}

TEST(ScaledProducts, take_half_of_the_time_of_16_bits_where_arithmetic_counts) {
  Matmul half = scaled_op(8192, 8192, 8192);
  half.scaling = Scaling::none;
  for (const char* engine : {"roofline", "analytic", "simulate"}) {
    const double fp8 = seconds_of_product(scaled_op(8192, 8192, 8192), engine);
    EXPECT_NEAR(fp8 / seconds_of_product(half, engine), 0.51, 0.03) << engine;
  }
  // Sums in fp32 are never for nothing.
  EXPECT_GT(seconds_of_product(scaled_op(8192, 8192, 8192, Scaling::tensor)),
            seconds_of_product(scaled_op(8192, 8192, 8192)));
}

TEST(ScaledProducts, count_all_operations_and_bytes_of_one) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const LoweredOp lowered = lower(scaled_op(4096, 2048, 1024), gpu, Software{});
  const KernelLaunch& product = lowered.launches.back();
  EXPECT_DOUBLE_EQ(product.flops, 2.0 * 4096 * 2048 * 1024);
  EXPECT_DOUBLE_EQ(product.flops_in_type(), 4096.0 * 2048 * 1024);
  EXPECT_DOUBLE_EQ(product.reads[0].bytes, 4096.0 * 1024);
  EXPECT_DOUBLE_EQ(product.reads[1].bytes, 2048.0 * 1024);
  EXPECT_DOUBLE_EQ(product.written_bytes(), 2.0 * 4096 * 2048);
  EXPECT_THAT(product.name, HasSubstr("fp8"));
}

TEST(ScaledProducts, exist_on_hopper_in_whole_sixteens) {
  EXPECT_EQ(why_no_product(scaled_op(100, 64, 64), "nvidia-h200-sxm-141gb"), "");
  EXPECT_THAT(why_no_product(scaled_op(128, 64, 64), "nvidia-a100-sxm4-80gb"),
              HasSubstr("modelled on Hopper (compute capability 9.0); nvidia-a100"));
  EXPECT_THAT(why_no_product(scaled_op(128, 64, 72), "nvidia-h200-sxm-141gb"),
              HasSubstr("multiples of 16, not 64 and 72"));
  Matmul biased = scaled_op(128, 64, 64);
  biased.bias = true;
  EXPECT_THAT(why_no_product(biased, "nvidia-h200-sxm-141gb"), HasSubstr("without a bias"));
}

TEST(ScaledProducts, a_better_chip_is_never_slower) {
  const Gpu gpu = load_gpu("nvidia-h100-sxm5-80gb");
  const auto time_on = [](const Matmul& op, const Gpu& chip) {
    return testing::predict_op(op, 0, chip, *make_engine("analytic", chip)).time.value();
  };
  for (const Scaling scaling : {Scaling::tensor_fast, Scaling::tensor, Scaling::rows_fast})
    for (const Matmul& op : {scaled_op(300, 10736, 4848, scaling), scaled_op(8192, 768, 3072, scaling),
                             scaled_op(17, 64, 11888, scaling), scaled_op(4096, 4096, 8192, scaling)}) {
      Gpu more = gpu;
      more.sm.count += 12;
      EXPECT_LE(time_on(op, more), time_on(op, gpu)) << shape_of(Op{op});
      Gpu wider = gpu;
      wider.dram.bandwidth = wider.dram.bandwidth * 1.2;
      EXPECT_LE(time_on(op, wider), time_on(op, gpu)) << shape_of(Op{op});
      Gpu faster = gpu;
      faster.sm.rates.tensor_bf16 *= 1.2;
      EXPECT_LE(time_on(op, faster), time_on(op, gpu)) << shape_of(Op{op});
    }
}

TEST(ScaledProducts, are_kernel_cases) {
  const auto read = [](const char* params) {
    return std::get<Matmul>(
        kernel_case_from({{"op", "scaled_mm"}, {"dtype", "bf16"}, {"params", nlohmann::json::parse(params)}}).op);
  };
  EXPECT_EQ(read(R"({"m":10,"n":32,"k":64})"), scaled_op(10, 32, 64));
  EXPECT_EQ(read(R"({"m":10,"n":32,"k":64,"fast_accum":false})").scaling, Scaling::tensor);
  EXPECT_EQ(read(R"({"m":10,"n":32,"k":64,"scales":"rows"})").scaling, Scaling::rows_fast);
  EXPECT_THROW(read(R"({"m":10,"n":32,"k":64,"scales":"rows","fast_accum":false})"), KernelCaseError);
  EXPECT_THROW(read(R"({"m":10,"n":32,"k":64,"scales":"blocks"})"), KernelCaseError);
  EXPECT_THROW(read(R"({"m":10,"n":36,"k":64})"), KernelCaseError);
}

}  // namespace
}  // namespace ridgeline
