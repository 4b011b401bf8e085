#include "sim/timing/roofline_engine.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

class Roofline : public ::testing::Test {
 protected:
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  RooflineEngine engine{gpu};

  static KernelLaunch launch(double flops, double bytes, Pipe pipe, DType type) {
    KernelLaunch k;
    k.flops = flops;
    k.pipe = pipe;
    k.type = type;
    k.reads = {{0, bytes}};
    return k;
  }
};

TEST_F(Roofline, bytes_over_the_datasheet_bandwidth_when_there_is_little_arithmetic) {
  const KernelTime t = engine.time(launch(1.0, 4.8e9, Pipe::fp32, DType::fp32), {});
  EXPECT_DOUBLE_EQ(t.time.value(), 1e-3);
  EXPECT_EQ(t.limiter, Limiter::dram);
}

TEST_F(Roofline, writes_take_as_long_as_reads) {
  KernelLaunch k = launch(1.0, 4.8e9, Pipe::fp32, DType::fp32);
  k.writes = {{1, 9.6e9}};
  const KernelTime t = engine.time(k, {});
  EXPECT_DOUBLE_EQ(t.time.value(), 3e-3);
  EXPECT_DOUBLE_EQ(t.dram_read_bytes, 4.8e9);
  EXPECT_DOUBLE_EQ(t.dram_write_bytes, 9.6e9);
}

TEST_F(Roofline, flops_over_the_peak_of_the_pipe_and_type) {
  const double fp32 = engine.time(launch(1e12, 1.0, Pipe::fp32, DType::fp32), {}).time.value();
  const double bf16 = engine.time(launch(1e12, 1.0, Pipe::tensor_wgmma, DType::bf16), {}).time.value();
  EXPECT_NEAR(1e12 / fp32, 66.9e12, 0.1e12);
  EXPECT_GT(fp32 / bf16, 14.0);
}

TEST_F(Roofline, tensor_cores_and_cuda_cores_have_the_clock_of_their_own_datasheet_peak) {
  const double bf16 = engine.time(launch(1e15, 1.0, Pipe::tensor_wgmma, DType::bf16), {}).time.value();
  EXPECT_NEAR(1e15 / bf16, 989.4e12, 0.5e12);  // NVIDIA H200 datasheet, dense
  const double tf32 = engine.time(launch(1e15, 1.0, Pipe::tensor_wgmma, DType::tf32), {}).time.value();
  EXPECT_NEAR(1e15 / tf32, 494.7e12, 0.5e12);
}

TEST_F(Roofline, the_limiter_changes_at_the_ridge_point) {
  const double bandwidth = gpu.dram.bandwidth.value(), peak = gpu.peak(gpu.sm.rates.fp32).value();
  const double ridge = peak / bandwidth;
  EXPECT_EQ(engine.time(launch(0.999 * ridge * 1e6, 1e6, Pipe::fp32, DType::fp32), {}).limiter, Limiter::dram);
  EXPECT_EQ(engine.time(launch(1.001 * ridge * 1e6, 1e6, Pipe::fp32, DType::fp32), {}).limiter, Limiter::compute);
}

TEST_F(Roofline, knows_no_efficiency_no_cache_and_no_launch) {
  const KernelLaunch k = launch(1e6, 1e6, Pipe::fp32, DType::fp32);
  const double before = engine.time(k, {}).time.value();
  gpu.dram.read_efficiency = 0.1;
  gpu.l2.capacity = Bytes{0.0};
  gpu.launch.kernel_fixed = microseconds(100);
  gpu.clock.sustained = Hertz{1e6};
  const double hit[] = {1.0};
  EXPECT_DOUBLE_EQ(engine.time(k, hit).time.value(), before);
}

TEST_F(Roofline, attention_in_fp32_makes_three_products_of_tf32) {
  KernelLaunch tf32 = launch(1e12, 1.0, Pipe::tensor_mma, DType::tf32), fp32 = tf32;
  tf32.work = AttentionWork{.type = DType::tf32};
  fp32.work = AttentionWork{.type = DType::fp32};
  EXPECT_DOUBLE_EQ(engine.time(fp32, {}).time.value(), 3.0 * engine.time(tf32, {}).time.value());
}

TEST_F(Roofline, a_gpu_without_a_tensor_type_computes_on_its_cuda_cores) {
  gpu.sm.rates.tensor_bf16 = 0;
  EXPECT_DOUBLE_EQ(engine.time(launch(1e12, 1.0, Pipe::tensor_mma, DType::bf16), {}).time.value(),
                   engine.time(launch(1e12, 1.0, Pipe::fp32, DType::fp32), {}).time.value());
}

}  // namespace
}  // namespace ridgeline
