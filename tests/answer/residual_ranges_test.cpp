// Ranges: which predictions count as validated, and how wide a step's range is for its kernels'.
#include "sim/answer/ranges/residual_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/answer/ranges/beyond_measured.h"
#include "sim/answer/ranges/busy_range.h"
#include "sim/config/data_folder.h"
#include "sim/hardware/chip_distance.h"
#include "sim/hardware/load_gpu.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

const Op kProduct = Matmul{.type = DType::bf16, .batch = 1, .m = 4096, .n = 4096, .k = 4096, .layout = Layout::nt};
const Op kSoftmax = Softmax{.input = DType::fp32, .output = DType::fp32, .rows = 4096, .cols = 4096};

KernelLaunch launch_of(const Op& op) {
  KernelLaunch launch;
  if (std::holds_alternative<Matmul>(op)) launch.work = GemmWork{.family = GemmWork::Family::wgmma};
  else launch.work = FixedWork{};
  return launch;
}

OperationKind kind(const Op& op) { return kind_of(op, launch_of(op)); }

/// Products of an H200 in two sizes, their family, and the family on strangers.
ResidualRanges products_of_an_h200() {
  const nlohmann::json kinds{
      {"mm/16-bit/wgmma",
       {{"small", {0.9, 1.1, 30, 9.0}}, {"large", {0.95, 1.05, 9, 400.0}}, {"any", {0.8, 1.3, 39, 400.0}}}}};
  const nlohmann::json families{{"gemm", {{"any", {0.7, 1.4}}}}};
  return ResidualRanges::from({{"gpus",
                                {{"nvidia-h200-sxm-141gb",
                                  {{"software", nlohmann::json::array({"pytorch-2.11"})},
                                   {"engines", {{"analytic", {{"kinds", kinds}, {"families", families}}}}}}}}},
                               {"elsewhere", {{"analytic", {{"gemm", {{"any", {0.5, 1.9}}}}}}}},
                               {"steps", {{"nvidia-rtx-3090", {13, 7.2}}}}});
}

Range range_of(const ResidualRanges& ranges, const OperationKind& kind, double us, const Gpu& gpu,
               std::string_view engine = "analytic", std::string_view software = "pytorch-2.11") {
  return ChipRanges(ranges, gpu, software).of(kind, microseconds(us), engine);
}

TEST(OperationKind, IsTheOperationItsTypeAndTheLawOfItsLongestKernel) {
  EXPECT_EQ(kind(kProduct).key(), "mm/16-bit/wgmma");
  EXPECT_EQ(kind(kProduct).family, "gemm");
  KernelLaunch rows, columns;
  rows.work = MemoryBoundWork{.kernel_class = static_cast<int>(MemoryBoundKernel::reduce_rows)};
  columns.work = MemoryBoundWork{.kernel_class = static_cast<int>(MemoryBoundKernel::reduce_columns)};
  const Op sum = Reduction{ReductionKind::sum_cols, DType::fp16, 64, 64};
  EXPECT_EQ(kind_of(sum, rows).key(), "sum/16-bit/reduce_rows");
  EXPECT_EQ(kind_of(sum, columns).key(), "sum/16-bit/reduce_columns");
  FusedKernel generated;
  generated.shape = FusedKernel::Shape::long_rows;
  EXPECT_EQ(kind_of(generated, rows).key(), "triton long rows//reduce_rows");
  EXPECT_EQ(kind_of(UnknownOp{"my_op", 8, 8}, rows).family, "other");
  EXPECT_EQ(kind_of(Memset{8}, KernelLaunch{}).words(), "memset");
}

TEST(ResidualRanges, ValidatedIsARowOfTheGpuTheKindTheSizeAndTheSoftware) {
  const ResidualRanges ranges = products_of_an_h200();
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Range own = range_of(ranges, kind(kProduct), 5, gpu);
  EXPECT_TRUE(own.validated);
  EXPECT_EQ(own.evidence, Evidence::measured);
  EXPECT_DOUBLE_EQ(own.low, 0.9);
  EXPECT_DOUBLE_EQ(own.high, 1.1);
  EXPECT_EQ(reason_of(own, kind(kProduct)), "");

  const Range other_size = range_of(ranges, kind(kProduct), 50, gpu);
  EXPECT_FALSE(other_size.validated);
  EXPECT_EQ(other_size.evidence, Evidence::size);
  EXPECT_DOUBLE_EQ(other_size.high, 1.3);

  const Range older = range_of(ranges, kind(kProduct), 5, gpu, "analytic", "pytorch-2.1");
  EXPECT_FALSE(older.validated);
  EXPECT_EQ(older.evidence, Evidence::software);
  EXPECT_DOUBLE_EQ(older.high, 1.1);

  EXPECT_EQ(range_of(ranges, kind(kSoftmax), 5, gpu).evidence, Evidence::none);
  EXPECT_EQ(range_of(ranges, kind(kProduct), 5, gpu, "simulate").evidence, Evidence::none);
}

// 400 us are the longest measured; twice as much is still of that size.
TEST(ResidualRanges, TimesFarBeyondTheLongestMeasuredAreEstimated) {
  const ResidualRanges ranges = products_of_an_h200();
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_TRUE(range_of(ranges, kind(kProduct), 790, gpu).validated);
  const Range beyond = range_of(ranges, kind(kProduct), 810, gpu);
  EXPECT_FALSE(beyond.validated);
  EXPECT_EQ(beyond.evidence, Evidence::size);
  EXPECT_THAT(reason_of(beyond, kind(kProduct)), HasSubstr("up to 0.4 ms"));
}

TEST(ResidualRanges, OtherTypesLawsAndOperationsHaveTheRangeOfTheFamily) {
  const ResidualRanges ranges = products_of_an_h200();
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Matmul fp32 = std::get<Matmul>(kProduct), batched = fp32, sparse = fp32;
  fp32.type = DType::fp32;
  batched.batch = 2;
  sparse.sparse = SparseOperand::a;
  EXPECT_EQ(range_of(ranges, kind(fp32), 5, gpu).evidence, Evidence::type);
  for (const Op& op : {Op(batched), Op(sparse)}) {
    const Range range = range_of(ranges, kind(op), 5, gpu);
    EXPECT_FALSE(range.validated);
    EXPECT_EQ(range.evidence, Evidence::operation);
    EXPECT_DOUBLE_EQ(range.high, 1.4);
  }
  EXPECT_EQ(reason_of(range_of(ranges, kind(batched), 5, gpu), kind(batched)),
            "no bmm in 16-bit was measured on this GPU; operations left out are met within 40 %");
  Matmul half = std::get<Matmul>(kProduct);
  half.type = DType::fp16, half.bias = true;
  EXPECT_TRUE(range_of(ranges, kind(half), 5, gpu).validated) << "the same kernels";
}

TEST(ResidualRanges, AChangedGpuBeginsWithItsFilesRangeAndAStrangerHasThatOfAllGpus) {
  const ResidualRanges ranges = products_of_an_h200();
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.dram.bandwidth = 1.01 * gpu.dram.bandwidth;
  const Range near = range_of(ranges, kind(kProduct), 5, gpu);
  EXPECT_EQ(near.evidence, Evidence::gpu);
  EXPECT_LT(near.low, 0.9);
  EXPECT_GT(near.low, 0.89);
  EXPECT_GT(near.high, 1.1);
  EXPECT_LT(near.high, 1.12);
  const Range stranger = range_of(ranges, kind(kProduct), 5, load_gpu("nvidia-t4"));
  EXPECT_LT(stranger.low, 0.5);
  EXPECT_GT(stranger.high, 1.9);
  EXPECT_LT(stranger.high, 2.2);
}

// Steps of up to 100 samples of up to 1,024 tokens were measured: 200 samples are of that size, 201 are not.
TEST(BeyondMeasured, AStepOfMoreThanTwiceTheLargestMeasuredIsExtrapolated) {
  const ResidualRanges ranges =
      ResidualRanges::from({{"gpus", nlohmann::json::object()},
                            {"elsewhere", nlohmann::json::object()},
                            {"most", {{"gpus", 8.0}, {"micro_batch", 100.0}, {"sequence_length", 1024.0}}}});
  const auto sentences = [&](int samples, int tokens) {
    ScenarioSource source;
    source.text =
        "{hardware: nvidia-h200-sxm-141gb, model: bert-base, training: {micro_batch: " + std::to_string(samples) +
        ", sequence_length: " + std::to_string(tokens) + "}}";
    source.text_name = "test";
    source.overrides = {{"model.max_positions", "4096", ""}};
    return beyond_measured(load_scenario(source), ranges);
  };
  EXPECT_THAT(sentences(200, 2048), ::testing::IsEmpty());
  EXPECT_THAT(sentences(201, 2048),
              ::testing::ElementsAre(
                  "A micro-batch of 201 is beyond measured steps, which reach 100: the time is extrapolated."));
  EXPECT_EQ(sentences(100000, 2049).size(), 2u);
  EXPECT_THAT(sentences(100000, 2049).back(), HasSubstr("100,000"));
  EXPECT_THAT(sentences(100000, 2049).front(), HasSubstr("A sequence length of 2,049"));
}

/// Of ops that take 200 us each.
BusyRange range_of(const std::vector<Op>& ops, const Gpu& gpu, const ResidualRanges& ranges = residual_ranges()) {
  KernelTime time;
  time.time = microseconds(200);
  std::vector<KernelLaunch> launches;
  for (const Op& op : ops) launches.push_back(launch_of(op));
  std::vector<LaunchedKernel> kernels;
  for (std::size_t i = 0; i < ops.size(); ++i)
    kernels.push_back({&launches[i], &ops[i], static_cast<std::uint32_t>(i), Phase::forward, 1.0, 0});
  const std::vector<KernelTime> times(ops.size(), time);
  return busy_range(kernels, times, ChipRanges(ranges, gpu), "analytic");
}

// A GPU as it was measured has its own rows alone: no other one may be the same to any law.
TEST(ChipRanges, NoTwoMeasuredGpusAreTheSameToTheLawsThatEveryFamilyReads) {
  std::ifstream file(config::data_folder("hw") / "residuals.json");
  std::vector<Gpu> gpus;
  const nlohmann::json table = nlohmann::json::parse(file);
  for (const auto& [name, board] : table.at("gpus").items()) {
    gpus.push_back(load_gpu(name));
    const ChipRanges ranges(residual_ranges(), gpus.back());
    EXPECT_EQ(ranges.distance(), 0.0) << name;
    EXPECT_EQ(ranges.nearest()->name, name);
  }
  ASSERT_GT(gpus.size(), 10u);
  constexpr Laws kEvery = Law::occupancy | Law::power | static_cast<Laws>(Law::hierarchy);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      EXPECT_GT(chip_distance(gpus[i], gpus[k], kEvery), 0.0) << gpus[i].name << ' ' << gpus[k].name;
}

TEST(BusyRange, OneKernelHasItsOwnRangeAndSeveralShareHalfTheirErrorsOrMore) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const ChipRanges of_gpu(residual_ranges(), gpu);
  const Range product = of_gpu.of(kind(kProduct), microseconds(200), "analytic"),
              softmax = of_gpu.of(kind(kSoftmax), microseconds(200), "analytic");
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

// A step of one measured product and estimated ones: a fifth of the time decides.
TEST(BusyRange, AStepIsValidatedByTheShareOfItsKernelsThatAre) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  Matmul batched = std::get<Matmul>(kProduct);
  batched.batch = 2;
  std::vector<Op> ops(9, kProduct);
  ops.emplace_back(batched);
  const ResidualRanges ranges = products_of_an_h200();
  EXPECT_TRUE(range_of(ops, gpu, ranges).validated);
  ops.resize(3);
  ops.emplace_back(batched);
  const BusyRange estimated = range_of(ops, gpu, ranges);
  EXPECT_FALSE(estimated.validated);
  EXPECT_EQ(estimated.why_not,
            "25 % of the kernels' time is estimated, most of it because no bmm in 16-bit was measured on this GPU; "
            "operations left out are met within 40 %");
}

TEST(BusyRange, AStepOnAGpuThatNobodyMeasuredSaysHowPublishedStepsOnItAreMet) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.sm.count *= 2;
  const BusyRange range = range_of({kProduct}, gpu);
  EXPECT_FALSE(range.validated);
  EXPECT_EQ(range.why_not.find("No GPU with these numbers was measured; "), 0u) << range.why_not;
  EXPECT_GT(range.high, range_of({kProduct}, load_gpu("nvidia-h200-sxm-141gb")).high);
  const ResidualRanges ranges = products_of_an_h200();
  EXPECT_EQ(range_of({kProduct}, load_gpu("nvidia-rtx-3090"), ranges).why_not,
            "We did not measure RTX 3090; published steps on it are predicted within 7 % (median of 13). The range is "
            "wider.");
  EXPECT_EQ(range_of({kProduct}, load_gpu("nvidia-l4"), ranges).why_not,
            "We did not measure L4. The range is that of GPUs left out.");
}

}  // namespace
}  // namespace ridgeline
