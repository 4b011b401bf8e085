// What every kernel's answer says besides its time, worked out by hand: bytes, hits, waves, occupancy; and which row of
// constants a product or a convolution has.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/convolution/convolution_law.h"
#include "sim/timing/laws.h"
#include "sim/timing/products/gemm_constants.h"
#include "sim/timing/products/gemm_law.h"
#include "sim/workload/op.h"

namespace ridgeline::worked_fields {
namespace {

/// Ten SMs of 64 warps; a limit that holds nobody.
Gpu ten_sms() {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.sm.count = 10;
  gpu.power.limit = Watts{1e9};
  return gpu;
}

// Reads of 1 and 3 MB of which a quarter and a half hit, writes of 2 and 6 MB of which a tenth and three tenths do.
TEST(WorkedFields, attention_moves_what_misses) {
  const Gpu gpu = ten_sms();
  KernelLaunch launch;
  launch.grid = {7, 5, 3};
  launch.threads_per_block = 96;
  launch.reads = {{0, 1e6}, {1, 3e6}};
  launch.writes = {{2, 2e6}, {3, 6e6}};
  launch.pipe = Pipe::tensor_mma, launch.type = DType::bf16;
  AttentionWork work{.part = AttentionWork::Part::layout_copy, .blocks_per_sm = 4};
  const std::vector<double> hits{0.25, 0.5, 0.1, 0.3};
  const auto expect_fields = [&](const KernelTime& time) {
    EXPECT_DOUBLE_EQ(time.dram_write_bytes, 0.9 * 2e6 + 0.7 * 6e6);
    EXPECT_DOUBLE_EQ(time.l2_bytes, 12e6);
    EXPECT_DOUBLE_EQ(time.l2_hit_rate, 1.0 - 2.25 / 4.0);
    EXPECT_DOUBLE_EQ(time.occupancy, 4.0 * 3.0 / 64.0);
    EXPECT_DOUBLE_EQ(time.waves, 105.0 / 40.0);
  };
  const KernelTime copy = attention_time(launch, work, gpu, hits);
  expect_fields(copy);
  EXPECT_DOUBLE_EQ(copy.dram_read_bytes, 0.75e6 + 1.5e6);
  work = {.part = AttentionWork::Part::forward,
          .batch = 1,
          .heads = 2,
          .seq_q = 700,
          .seq_k = 300,
          .head_dim = 64,
          .tile_q = 128,
          .tile_k = 64,
          .blocks_per_sm = 4};
  const KernelTime forward = attention_time(launch, work, gpu, hits);
  expect_fields(forward);
  EXPECT_GE(forward.dram_read_bytes, 2.25e6);
  // Without hits all of it moves; more blocks than an SM holds warps are full.
  work.blocks_per_sm = 30;
  const KernelTime cold = attention_time(launch, work, gpu, {});
  EXPECT_DOUBLE_EQ(cold.dram_write_bytes, 8e6);
  EXPECT_DOUBLE_EQ(cold.l2_hit_rate, 0.0);
  EXPECT_DOUBLE_EQ(cold.occupancy, 1.0);
}

// A copy takes a fixed number of cycles and a share of the DRAM's bandwidth: of twice the bytes twice the rest.
TEST(WorkedFields, layout_copies_are_limited_by_their_start_or_by_the_dram) {
  const Gpu gpu = ten_sms();
  const auto timed = [&](double bytes) {
    KernelLaunch launch;
    launch.reads = {{0, bytes}};
    launch.writes = {{1, bytes}};
    return attention_time(launch, AttentionWork{.part = AttentionWork::Part::layout_copy}, gpu, {});
  };
  const double none = timed(0.0).time.value(), one = timed(1e9).time.value(), two = timed(2e9).time.value();
  EXPECT_NEAR(two - one, one - none, 1e-12);
  EXPECT_EQ(timed(0.0).limiter, Limiter::latency);
  EXPECT_EQ(timed(1e9).limiter, Limiter::dram);
  const double even = none / (one - none) * 1e9;  // as long as the start
  EXPECT_EQ(timed(0.999 * even).limiter, Limiter::latency);
  EXPECT_EQ(timed(1.001 * even).limiter, Limiter::dram);
}

// The parts of splits are in the L2, what they come to goes to the DRAM.
TEST(WorkedFields, reductions_of_splits_find_their_parts_in_the_l2) {
  const Gpu gpu = ten_sms();
  KernelLaunch launch;
  GemmWork work{.type = DType::bf16, .m = 300, .n = 200, .k = 5000, .stages = 4, .split_k = 6};
  work.reduces_splits = true;
  launch.reads = {{Access::kTemporary, 4.0 * 6 * 60000}};
  launch.writes = {{3, 120000.0}};
  const GemmConstants& constants = gemm_constants(GemmClass::mma_half);
  const KernelTime time = gemm_time(launch, work, gpu, {}, constants);
  EXPECT_DOUBLE_EQ(time.time.value(), GemmLaw(work, gpu, constants).split_reduction(tile_of(work), 6));
  EXPECT_DOUBLE_EQ(time.l2_bytes, 1.56e6);
  EXPECT_DOUBLE_EQ(time.l2_hit_rate, 1.0);
  EXPECT_DOUBLE_EQ(time.dram_write_bytes, 120000.0);
  EXPECT_DOUBLE_EQ(time.dram_read_bytes, 0.0);
  EXPECT_EQ(time.limiter, Limiter::latency);
  // Results that take the DRAM longer than all that.
  launch.writes[0].bytes = 2.0 * time.time.value() * gpu.dram.bandwidth.value();
  EXPECT_DOUBLE_EQ(gemm_time(launch, work, gpu, {}, constants).time.value(), 2.0 * time.time.value());
  launch.writes[0].bytes = 120000.0;
  launch.reads[0].bytes = 0.51 * time.time.value() * gpu.dram.bandwidth.value();
  EXPECT_EQ(gemm_time(launch, work, gpu, {}, constants).limiter, Limiter::l2);
  launch.reads[0].bytes = 0.49 * time.time.value() * gpu.dram.bandwidth.value();
  EXPECT_EQ(gemm_time(launch, work, gpu, {}, constants).limiter, Limiter::latency);
}

// Shares of reads and of writes by their bytes.
TEST(WorkedFields, misses_of_a_product_are_weighed_by_bytes) {
  KernelLaunch launch;
  launch.reads = {{0, 100.0}, {1, 300.0}};
  launch.writes = {{2, 50.0}, {3, 150.0}};
  const std::vector<double> hits{0.5, 0.1, 1.0, 0.2};
  const GemmMisses some = gemm_misses(launch, hits);
  EXPECT_DOUBLE_EQ(some.read, (50.0 + 270.0) / 400.0);
  EXPECT_DOUBLE_EQ(some.write, (0.0 + 120.0) / 200.0);
  const GemmMisses few = gemm_misses(launch, std::vector<double>{0.5});
  EXPECT_DOUBLE_EQ(few.read, 350.0 / 400.0);
  EXPECT_DOUBLE_EQ(few.write, 1.0);
  const GemmMisses none = gemm_misses({}, {});
  EXPECT_EQ(none.read, 1.0);
  EXPECT_EQ(none.write, 1.0);
}

TEST(WorkedFields, a_product_says_how_it_fills_the_chip) {
  const Gpu gpu = ten_sms();
  KernelLaunch launch;
  launch.grid = {6, 5, 2};
  launch.threads_per_block = 160;
  launch.pipe = Pipe::tensor_mma, launch.type = DType::bf16;
  launch.reads = {{0, 1e6}, {1, 1e6}};
  launch.writes = {{2, 1e6}};
  GemmWork work{.family = GemmWork::Family::mma_sync,
                .type = DType::bf16,
                .batch = 2,
                .m = 700,
                .n = 300,
                .k = 512,
                .tile_m = 128,
                .tile_n = 64,
                .tile_k = 32,
                .stages = 3,
                .blocks_per_sm = 3};
  const KernelTime time = gemm_time(launch, work, gpu, {}, gemm_constants(GemmClass::mma_half));
  EXPECT_DOUBLE_EQ(time.waves, 60.0 / 30.0);
  EXPECT_DOUBLE_EQ(time.occupancy, 3.0 * 5.0 / 64.0);
  EXPECT_GT(time.math_utilization, 0.0);
  work.blocks_per_sm = 0;
  EXPECT_DOUBLE_EQ(gemm_time(launch, work, gpu, {}, gemm_constants(GemmClass::mma_half)).waves, 6.0);
  work.blocks_per_sm = 20;
  EXPECT_DOUBLE_EQ(gemm_time(launch, work, gpu, {}, gemm_constants(GemmClass::mma_half)).occupancy, 1.0);
}

TEST(WorkedFields, every_product_has_the_row_of_its_class) {
  Gpu gpu = ten_sms(), older = gpu;
  gpu.sm.async_copy = true, older.sm.async_copy = false;
  const auto row = [](GemmWork::Family family, DType type, int alignment, const Gpu& chip,
                      Scaling scaling = Scaling::none) {
    return gemm_class_of({.family = family, .type = type, .alignment = alignment, .scaling = scaling}, chip);
  };
  using Family = GemmWork::Family;
  EXPECT_EQ(row(Family::simt, DType::fp32, 16, gpu), GemmClass::simt);
  EXPECT_EQ(row(Family::simt, DType::bf16, 2, gpu), GemmClass::simt);
  EXPECT_EQ(row(Family::wgmma, DType::bf16, 16, gpu), GemmClass::wgmma_half);
  EXPECT_EQ(row(Family::wgmma, DType::tf32, 16, gpu), GemmClass::wgmma_tf32);
  EXPECT_EQ(row(Family::wgmma, DType::bf16, 16, gpu, Scaling::tensor), GemmClass::wgmma_promoted);
  EXPECT_EQ(row(Family::wgmma, DType::bf16, 16, gpu, Scaling::rows_fast), GemmClass::wgmma_row_scaled);
  EXPECT_EQ(row(Family::wgmma, DType::bf16, 16, gpu, Scaling::tensor_fast), GemmClass::wgmma_half);
  EXPECT_EQ(row(Family::mma_sync, DType::fp16, 16, gpu), GemmClass::mma_half);
  EXPECT_EQ(row(Family::mma_sync, DType::fp16, 16, older), GemmClass::mma_half_staged);
  EXPECT_EQ(row(Family::mma_sync, DType::fp16, 8, older), GemmClass::mma_half_align4);
  EXPECT_EQ(row(Family::mma_sync, DType::fp16, 4, gpu), GemmClass::mma_half_align4);
  EXPECT_EQ(row(Family::mma_sync, DType::fp16, 2, gpu), GemmClass::mma_half_align2);
  EXPECT_EQ(row(Family::mma_sync, DType::tf32, 16, older), GemmClass::mma_tf32);
  EXPECT_EQ(row(Family::mma_sync, DType::tf32, 8, gpu), GemmClass::mma_tf32_align4);
  Gpu narrow = gpu;
  narrow.compute_major = 8;
  for (const int minor : {6, 9}) {
    narrow.compute_minor = minor;
    EXPECT_EQ(row(Family::mma_sync, DType::fp16, 16, narrow), GemmClass::mma_half_narrow);
    EXPECT_EQ(row(Family::mma_sync, DType::fp16, 8, narrow), GemmClass::mma_half_align4);
  }
  EXPECT_EQ(gemm_class_of({.family = Family::wgmma, .type = DType::fp16, .tensor_memory = true}, gpu),
            GemmClass::tcgen05_half);
  EXPECT_EQ(gemm_class_of({.family = Family::wgmma, .type = DType::tf32, .tensor_memory = true}, gpu),
            GemmClass::wgmma_tf32);
  using Role = Gathering::Role;
  const auto convolution = [](Family family, DType type, Role role) {
    GemmWork work{.family = family, .type = type};
    work.gathering.role = role;
    return convolution_class_of(work);
  };
  EXPECT_EQ(convolution(Family::wgmma, DType::bf16, Role::forward), ConvolutionClass::wgmma_half);
  EXPECT_EQ(convolution(Family::wgmma, DType::tf32, Role::forward), ConvolutionClass::wgmma_tf32_forward);
  EXPECT_EQ(convolution(Family::wgmma, DType::tf32, Role::input_gradient), ConvolutionClass::wgmma_tf32);
  EXPECT_EQ(convolution(Family::mma_sync, DType::fp16, Role::forward), ConvolutionClass::mma_half);
  EXPECT_EQ(convolution(Family::mma_sync, DType::tf32, Role::forward), ConvolutionClass::mma_tf32);
  EXPECT_EQ(convolution(Family::simt, DType::fp32, Role::forward), ConvolutionClass::simt);
}

}  // namespace
}  // namespace ridgeline::worked_fields
