#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/families.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {
namespace {

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}
FusedKernel kernel(FusedKernel::Shape shape, std::int64_t rows, std::int64_t cols, std::int64_t arithmetic = 1) {
  FusedKernel op;
  op.name = "add_native_layer_norm";
  op.shape = shape;
  op.rows = rows;
  op.cols = cols;
  op.type = DType::bf16;
  op.arithmetic = arithmetic;
  op.reads = {2 * rows * cols, 2 * cols};
  op.writes = {2 * rows * cols};
  return op;
}
double microseconds_of(const FusedKernel& op) {
  static const auto engine = make_timing_engine("analytic", h200());
  return in_microseconds(engine->time(lower_fused(op, h200(), Software{}).launches.front(), {}).time);
}

TEST(Fused, a_kernel_moves_the_bytes_of_its_operands_and_is_named_as_generated_code_is) {
  const LoweredOp lowered = lower_fused(kernel(FusedKernel::Shape::rows, 4096, 768), h200(), Software{});
  ASSERT_EQ(lowered.launches.size(), 1u);
  EXPECT_EQ(lowered.launches[0].name, "triton_per_fused_add_native_layer_norm");
  EXPECT_EQ(lowered.launches[0].read_bytes(), 2.0 * 4096 * 768 + 2 * 768);
  EXPECT_EQ(lowered.launches[0].written_bytes(), 2.0 * 4096 * 768);
}

TEST(Fused, large_kernels_of_little_arithmetic_run_at_the_memorys_speed) {
  for (const FusedKernel::Shape shape : {FusedKernel::Shape::pointwise, FusedKernel::Shape::rows}) {
    const FusedKernel op = kernel(shape, 1 << 17, 1024);
    const double bandwidth = 4.0 * (1 << 17) * 1024 / (microseconds_of(op) * 1e-6);
    EXPECT_GT(bandwidth, 0.75 * h200().dram.bandwidth.value());
    EXPECT_LT(bandwidth, h200().dram.bandwidth.value());
  }
}

TEST(Fused, arithmetic_shows_once_it_takes_longer_than_the_bytes) {
  const double few = microseconds_of(kernel(FusedKernel::Shape::pointwise, 1 << 15, 1024, 1));
  const double some = microseconds_of(kernel(FusedKernel::Shape::pointwise, 1 << 15, 1024, 10));
  const double many = microseconds_of(kernel(FusedKernel::Shape::pointwise, 1 << 15, 1024, 200));
  EXPECT_LT(some, 1.1 * few);
  EXPECT_GT(many, 2.0 * few);
}

TEST(Fused, an_empty_kernel_is_refused) {
  EXPECT_THROW(lower_fused(kernel(FusedKernel::Shape::rows, 0, 8), h200(), Software{}), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline
