// Layer norms of PyTorch's versions: which kernels, what they move, how long they take against each other.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"

namespace ridgeline {
namespace {

const Gpu& v100() {
  static const Gpu gpu = load_gpu("nvidia-v100-sxm2-16gb");
  return gpu;
}

std::vector<KernelLaunch> launches(const Norm& op, const char* software) {
  return lower(op, v100(), load_software(software)).launches;
}

double microseconds(const Norm& op, const char* software) {
  const AnalyticEngine engine(v100());
  double sum = 0.0;
  for (const KernelLaunch& launch : launches(op, software)) sum += engine.time(launch, {}).time.value() * 1e6;
  return sum;
}

TEST(LayerNorm, before_1_11_has_two_kernels_forward_and_four_backward) {
  EXPECT_EQ(launches({.type = DType::fp16, .rows = 8192, .cols = 1024}, "pytorch-1.7").size(), 2U);
  EXPECT_EQ(launches({.type = DType::fp16, .rows = 8192, .cols = 1024}, "pytorch-1.13").size(), 1U);
  const auto older = launches({.backward = true, .type = DType::fp16, .rows = 8192, .cols = 1024}, "pytorch-1.7");
  ASSERT_EQ(older.size(), 4U);
  const double tensor = 2.0 * 8192 * 1024;
  EXPECT_NEAR(older[0].read_bytes(), 2.0 * tensor, 0.01 * tensor) << "sums of dy and of dy·x";
  EXPECT_NEAR(older[2].read_bytes(), 2.0 * tensor, 0.01 * tensor) << "both again";
  EXPECT_NEAR(older[2].written_bytes(), tensor, 0.01 * tensor) << "dx";
  EXPECT_EQ(older[3].blocks(), 1024 / 32) << "weight gradients";
  EXPECT_EQ(older[3].threads_per_block, 512);
  EXPECT_EQ(launches({.backward = true, .type = DType::fp16, .rows = 8192, .cols = 1024}, "pytorch-1.13").size(), 2U);
}

TEST(LayerNorm, before_1_11_takes_longer) {
  for (const DType type : {DType::fp16, DType::fp32})
    for (const bool backward : {false, true}) {
      const Norm op{.backward = backward, .type = type, .rows = 8192, .cols = 1024};
      EXPECT_GT(microseconds(op, "pytorch-1.7"), 1.1 * microseconds(op, "pytorch-1.13"));
    }
}

// facebookresearch/fairseq issue 2012: apex's norms, from which the vectorised kernels came, took 97.5 and 58.0 us on a
// V100 for 8192 rows of 1024 numbers in 32 and 16 bits, from one call to the next.
TEST(LayerNorm, forward_by_vectors_takes_what_was_published_of_a_v100) {
  EXPECT_NEAR(microseconds({.type = DType::fp32, .rows = 8192, .cols = 1024}, "pytorch-1.13"), 97.5, 0.10 * 97.5);
  EXPECT_NEAR(microseconds({.type = DType::fp16, .rows = 8192, .cols = 1024}, "pytorch-1.13"), 58.0, 0.12 * 58.0);
}

}  // namespace
}  // namespace ridgeline
