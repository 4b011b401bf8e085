// The memory hierarchy in matrix products: limits that can be worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {
namespace {

constexpr double kSide = 4096.0, kHalf = 2.0;

/// A square product in tiles of 128 x 128 x 32 without clusters.
GemmWork square() {
  return {.family = GemmWork::Family::mma_sync,
          .type = DType::fp16,
          .m = 4096,
          .n = 4096,
          .k = 4096,
          .layout = 1,
          .tile_m = 128,
          .tile_n = 128,
          .tile_k = 32,
          .stages = 4,
          .blocks_per_sm = 2};
}
GemmTime time_on(const Gpu& gpu, const GemmWork& work = square()) {
  return GemmLaw(work, gpu, gemm_constants(GemmClass::mma_half)).time(tile_of(work), 1);
}
double seconds_of(const Gpu& gpu, const char* engine = "analytic") {
  const Matmul op{.type = DType::bf16, .batch = 1, .m = 4096, .n = 4096, .k = 4096, .layout = Layout::nt};
  const LoweredOp lowered = lower(op, gpu, Software{});
  const auto made = make_engine(engine, gpu);
  const auto run = made->start_run();
  const std::vector<Operand> operands{{0, 1 << 25}, {1, 1 << 25}, {2, 1 << 25}};
  double seconds = 0.0;
  for (const KernelLaunch& launch : lowered.launches)
    seconds += (run ? run->next(launch, operands) : made->time(launch, {})).time.value();
  return seconds;
}

TEST(GemmHierarchy, without_an_l2_every_tile_loads_its_panels_from_the_dram) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.l2.replacement = L2Replacement::none;
  const double tiles = (kSide / 128.0) * (kSide / 128.0);
  EXPECT_NEAR(time_on(gpu).dram_read, tiles * kSide * (128.0 + 128.0) * kHalf, 1.0);
  gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.l2.capacity = Bytes{1.0};
  EXPECT_NEAR(time_on(gpu).dram_read, tiles * kSide * (128.0 + 128.0) * kHalf, 1.0);
}

TEST(GemmHierarchy, an_l2_that_holds_both_operands_loads_each_byte_once) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.l2.capacity = Bytes{1e12};
  EXPECT_DOUBLE_EQ(time_on(gpu).dram_read, 2.0 * kSide * kSide * kHalf);
}

TEST(GemmHierarchy, a_smaller_l2_never_loads_less_and_nothing_jumps) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  double before = seconds_of(gpu), most = before;
  for (double capacity = gpu.l2.capacity.value(); capacity > 1000.0; capacity /= 1.05) {
    gpu.l2.capacity = Bytes{capacity};
    const double now = seconds_of(gpu);
    EXPECT_GE(now, before * (1.0 - 1e-9)) << capacity;
    EXPECT_LE(now, before * 1.1) << capacity;
    before = now;
  }
  EXPECT_GT(before, 1.5 * most);
}

TEST(GemmHierarchy, one_sm_takes_the_cycles_of_all_tiles) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.sm.count = 1;
  const GemmTime one = time_on(gpu);
  EXPECT_DOUBLE_EQ(one.rounds, 1024.0);
  const double clock = gpu.clock.tensor.value(), multiply_adds = kSide * kSide * kSide;
  EXPECT_GE(one.compute, multiply_adds / gpu.sm.rates.tensor_fp16 / clock);
  EXPECT_LE(one.compute, 1.5 * multiply_adds / gpu.sm.rates.tensor_fp16 / (clock - gpu.clock.tensor_droop.value()));
}

TEST(GemmHierarchy, with_infinite_dram_and_l2_nothing_is_left_but_start_and_cycles) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.dram.bandwidth = gpu.l2.read_bandwidth = gpu.l2.write_bandwidth = gpu.l2.shared_read_bandwidth =
      BytesPerSecond{1e30};
  const GemmTime time = time_on(gpu);
  EXPECT_NEAR(time.total, time.fixed + time.fill + time.compute, 1e-9 * time.total);
}

TEST(GemmHierarchy, no_k_step_follows_faster_than_its_latency_over_the_stages_in_flight) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.dram.latency = Seconds{1e-4};
  const double cycles = gpu.l2.latency.value() + 0.5 * 1e-4 * gpu.clock.tensor.value();  // half a line of 128 bytes
  const double sets = std::ceil(1024.0 / (2.0 * gpu.sm.count)), steps = kSide / 32.0;
  const double least = sets * steps * cycles / 3.0 / gpu.clock.tensor.value();
  EXPECT_GE(time_on(gpu).compute, least);
  EXPECT_LE(time_on(gpu).compute, 1.01 * least);
}

TEST(GemmHierarchy, the_l2_hands_out_no_more_bytes_than_its_bandwidth) {
  Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  gpu.l2.read_bandwidth = gpu.l2.shared_read_bandwidth = BytesPerSecond{1e11};
  const double asked = 1024.0 * kSide * (128.0 + 128.0) * kHalf;
  EXPECT_NEAR(time_on(gpu).compute, gemm_constants(GemmClass::mma_half).requests * asked / 1e11,
              0.2 * time_on(gpu).compute);
}

class InBothEngines : public ::testing::TestWithParam<const char*> {};

TEST_P(InBothEngines, a_poorer_hierarchy_shows_in_a_large_product) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const double now = seconds_of(gpu, GetParam());
  const auto with = [&](auto change) {
    Gpu poorer = gpu;
    change(poorer);
    return seconds_of(poorer, GetParam()) / now;
  };
  EXPECT_GT(with([](Gpu& g) { g.l2.capacity = Bytes{65536.0}; }), 1.3);
  EXPECT_GT(with([](Gpu& g) { g.l2.read_bandwidth = g.l2.read_bandwidth * 0.25; }), 1.3);
  EXPECT_GT(with([](Gpu& g) { g.dram.latency = g.dram.latency * 8.0; }), 1.3);
  EXPECT_GT(with([](Gpu& g) { g.l2.latency = g.l2.latency * 8.0; }), 1.03);
}

INSTANTIATE_TEST_SUITE_P(Engines, InBothEngines, ::testing::Values("analytic", "simulate"));

}  // namespace
}  // namespace ridgeline
