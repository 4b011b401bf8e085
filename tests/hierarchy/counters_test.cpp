// The simulated hierarchy against hardware counters of an H200: DRAM bytes, L2 hit rate and occupancy of single ops
// with flushed caches, DRAM bytes of consecutive kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/validation/error_statistics.h"
#include "tests/support/measured_counters.h"
#include "tests/support/simulated_chains.h"

namespace ridgeline {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

class Counters : public ::testing::Test {
 protected:
  Gpu gpu_ = load_gpu("nvidia-h200-sxm-141gb");
  Software software_ = load_software("pytorch-2.11");
  std::unique_ptr<TimingEngine> engine_ = make_engine("simulate", gpu_);
};

TEST_F(Counters, ColdOpsReadFromTheDramWhatTheyDidOnTheChip) {
  std::vector<double> errors;
  for (const testing::CountedCase& c : testing::cold_counters())
    errors.push_back(std::abs(predict_kernel(c.kernel, gpu_, software_, *engine_).dram_read_bytes / c.dram_read - 1.0));
  ASSERT_EQ(errors.size(), 60u);
  EXPECT_LE(quantile(errors, 0.5), 0.08);
  EXPECT_LE(mean(errors), 0.15);
}

TEST_F(Counters, ColdOpsHitTheL2AsOftenAsOnTheChip) {
  std::vector<double> errors;
  for (const testing::CountedCase& c : testing::cold_counters())
    errors.push_back(std::abs(predict_kernel(c.kernel, gpu_, software_, *engine_).l2_hit_rate - c.l2_hit_rate));
  EXPECT_LE(quantile(errors, 0.5), 0.05);
}

TEST_F(Counters, TheSmsHoldAsManyWarpsAsOnTheChip) {
  std::vector<double> errors;
  for (const testing::CountedCase& c : testing::cold_counters()) {
    const KernelPrediction p = predict_kernel(c.kernel, gpu_, software_, *engine_);
    errors.push_back(std::abs(p.times[p.longest].occupancy - c.occupancy));
  }
  EXPECT_LE(quantile(errors, 0.5), 0.02);
  EXPECT_LE(quantile(errors, 0.9), 0.12);
}

TEST_F(Counters, ConsecutiveKernelsMoveAsManyBytesAsOnTheChip) {
  const std::vector<double> errors = testing::chain_traffic_errors(testing::chain_counters(), *engine_, gpu_);
  EXPECT_LE(quantile(errors, 0.5), 0.12);
}

TEST_F(Counters, ATensorReadAgainLeavesTheL2AtTheSizeItDoesOnTheChip) {
  // 16 MiB is found again, 48 MiB is read anew (counters); in between, at 40 MiB, timings over rotating buffers.
  const auto second_read = [&](int mib) {
    const nlohmann::json row{{"op", "reread"}, {"params", {{"mib", mib}}}};
    const auto times = testing::simulated_chain(row, *engine_, gpu_);
    return times[1].dram_read_bytes / (mib * kMiB);
  };
  for (const int mib : {4, 8, 12, 16, 20, 24}) EXPECT_LT(second_read(mib), 0.05) << mib;
  EXPECT_GT(second_read(40), 0.1);
  for (const int mib : {48, 64, 128}) EXPECT_GT(second_read(mib), 0.85) << mib;
}

}  // namespace
}  // namespace ridgeline
