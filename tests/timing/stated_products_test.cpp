// The law of matrix products against its equations as docs/model/products.md states them, written down one after the
// other, over random kernels, chips and constants.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"
#include "sim/timing/products/gemm_law.h"
#include "tests/support/draws.h"
#include "tests/timing/stated_product.h"

namespace ridgeline {
namespace {

using stated::drawn_product;
using stated::StatedLaw;
using stated::StatedProduct;
using stated::up;
using testing_support::Draws;

class StatedProducts : public ::testing::TestWithParam<GemmWork::Family> {};

TEST_P(StatedProducts, the_law_is_what_its_equations_say) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 3000; ++i) {
    const StatedProduct p = drawn_product(draws, GetParam());
    const StatedLaw stated(p);
    const GemmTime time = GemmLaw(p.work, p.gpu, p.c, p.miss, p.result_miss).time(tile_of(p.work), p.splits);
    const auto near = [](double x) { return 1e-9 * std::abs(x) + 1e-18; };
    const std::string which = "seed " + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(time.fixed, stated.start, near(stated.start)) << which;
    ASSERT_NEAR(time.compute, stated.compute, near(stated.compute)) << which;
    ASSERT_NEAR(time.math, stated.math_part, near(stated.math_part)) << which;
    ASSERT_NEAR(time.shared, stated.shared_part, near(stated.shared_part)) << which;
    ASSERT_NEAR(time.latency, stated.latency_part, near(stated.latency_part)) << which;
    ASSERT_NEAR(time.port, stated.port_part, near(stated.port_part)) << which;
    ASSERT_NEAR(time.fill, stated.fill, near(stated.fill)) << which;
    ASSERT_NEAR(time.memory, stated.memory, 1e-7 * stated.memory) << which;
    ASSERT_NEAR(time.total, stated.total, 1e-8 * stated.total) << which;
    ASSERT_NEAR(time.dram_read, stated.Z, near(stated.Z)) << which;
    ASSERT_NEAR(time.activity, stated.activity, 1e-9) << which;
    ASSERT_NEAR(time.rounds, stated.rounds, 1e-9 * stated.rounds) << which;
    ASSERT_NEAR(time.dram_write, stated.written_out, near(stated.written_out)) << which;
    ASSERT_NEAR(time.l2_bytes, stated.asked, near(stated.asked)) << which;
  }
}

/// What goes with the clock is what is left where neither the L2's bandwidth nor the DRAM's latency costs anything. Of
/// a persistent kernel's k-step it is the longest part alone, which rounded edges make up to 4^(1/4) times as long.
TEST_P(StatedProducts, what_goes_with_the_clock_is_all_but_the_memory) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  const bool wgmma = GetParam() == GemmWork::Family::wgmma;
  for (int i = 0; i < 2000; ++i) {
    StatedProduct p = drawn_product(draws, GetParam());
    p.gpu.clock.tensor_droop = Hertz{};  // the clock would follow the time
    const bool one_part = wgmma && draws.index(2) == 0;
    if (one_part) p.c.utilization *= 1e-4;
    Gpu instant = p.gpu;
    instant.l2.read_bandwidth = p.gpu.l2.read_bandwidth * 1e12;
    instant.l2.shared_read_bandwidth = p.gpu.l2.shared_read_bandwidth * 1e12;
    instant.dram.latency = Seconds{};
    const GemmTile tile = tile_of(p.work);
    const GemmTime time = GemmLaw(p.work, p.gpu, p.c, p.miss, p.result_miss).time(tile, p.splits),
                   without = GemmLaw(p.work, instant, p.c, p.miss, p.result_miss).time(tile, p.splits);
    const double all = without.fixed + without.compute;
    const std::string which = "seed " + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_LE(time.clocked, all * (1.0 + 1e-9)) << which;
    ASSERT_GE(time.clocked, all * (wgmma && !one_part ? std::pow(0.25, 0.25) : 1.0 - 1e-9)) << which;
  }
}

/// The seconds that a library minimises: under the power limit, with a memset and the kernel that adds up splits.
TEST_P(StatedProducts, a_product_takes_its_helpers_with_it) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 2000; ++i) {
    StatedProduct p = drawn_product(draws, GetParam());
    p.gpu.power.limit = p.gpu.power.idle * draws.between(1.2, 8.0);
    p.gpu.power.averaging = Seconds{};
    p.work.always_summed = draws.index(4) == 0;
    const GemmLaw law(p.work, p.gpu, p.c);
    const GemmTile tile = tile_of(p.work);
    const GemmTime time = law.time(tile, p.splits);
    const GemmWork& w = p.work;
    const bool wgmma = w.family == GemmWork::Family::wgmma, cuda = w.family == GemmWork::Family::simt;
    const double m = static_cast<double>(w.m), n = static_cast<double>(w.n), batch = static_cast<double>(w.batch),
                 e = static_cast<double>(bytes_of(w.type));
    double flops = 2.0 * m * n * static_cast<double>(w.k) * batch;
    if (w.sparse != SparseOperand::none) flops *= 0.5;
    const Pipe pipe = cuda ? Pipe::fp32 : Pipe::tensor_mma;
    const double limited = power_limited(p.gpu, pipe, w.type, flops, time.dram_read + time.dram_write,
                                         Seconds{time.total}, Seconds{time.clocked})
                               .time.value();
    double seconds = limited;
    // A persistent kernel counts tiles that it fetches, one that adds up splits in place counts those.
    const double tiles = up(m, w.tile_m) * up(n, w.tile_n) * batch;
    const bool counts = wgmma ? p.splits == 1 && (w.stream_k || tiles > 2.0 * p.gpu.sm.count) : w.stream_k;
    if (counts) seconds += p.gpu.launch.memset.value();
    if ((p.splits > 1 || w.always_summed) && !w.stream_k) {
      const bool cutlass = !cuda || (p.c.grouped != 0.0 && std::max(w.stages, w.first_stages) >= 4);
      const SplitReduction& r = split_reduction_of(!cutlass);
      const double w_d = std::min(p.gpu.dram.bandwidth.value() * p.gpu.dram.write_efficiency * p.c.write_share,
                                  1.112 * p.gpu.l2.write_bandwidth.value());
      seconds +=
          std::max((r.start_cycles + p.splits * r.split_cycles + r.element_cycles * m * n * batch / p.gpu.sm.count) /
                           p.gpu.clock.sustained.value() +
                       4.0 * p.splits * m * n * batch / (r.l2_share * p.gpu.l2.read_bandwidth.value()),
                   e * m * n * batch / w_d);
    }
    const std::string which = "seed " + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(law.seconds(tile, p.splits), seconds, 1e-9 * seconds) << which;
    ASSERT_NEAR(law.seconds(tile, p.splits, 1.001 * seconds), seconds, 1e-9 * seconds) << which;
    // What cannot be less than what is asked for is given up.
    ASSERT_EQ(law.seconds(tile, p.splits, 0.5 * (time.total + seconds - limited)), INFINITY) << which;
  }
}

/// One launch: misses by what its accesses ask for, figures beside the time by what they are called.
TEST_P(StatedProducts, a_launch_is_the_law_at_its_misses) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000; ++i) {
    const StatedProduct p = drawn_product(draws, GetParam());
    const GemmWork& w = p.work;
    KernelLaunch launch;
    launch.pipe = w.family == GemmWork::Family::simt ? Pipe::fp32 : Pipe::tensor_mma;
    launch.type = w.type;
    launch.grid = {static_cast<std::int64_t>(draws.between(1, 3000)), 1 + static_cast<std::int64_t>(draws.index(5)), 1};
    launch.threads_per_block = 32 * static_cast<int>(1 + draws.index(12));
    const double a = draws.between(1e3, 1e8), b = draws.between(1e3, 1e8), c = draws.between(1e3, 1e8);
    launch.reads = {Access{.operand = 0, .bytes = a}, Access{.operand = 1, .bytes = b}};
    launch.writes = {Access{.operand = 2, .bytes = c}};
    launch.flops = 1.0;  // no power to speak of
    launch.work = w;
    Gpu gpu = p.gpu;
    gpu.power.limit = gpu.power.limit * 1e6;
    const std::vector<double> hits{draws.share(), draws.share(), draws.share()};
    const KernelTime time = gemm_time(launch, w, gpu, hits, p.c);
    const double read_miss = (a * (1.0 - hits[0]) + b * (1.0 - hits[1])) / (a + b);
    const GemmTime law = GemmLaw(w, gpu, p.c, read_miss, 1.0 - hits[2]).time(tile_of(w), w.split_k);
    const std::string which = "seed " + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(time.time.value(), law.total, 1e-12 * law.total + 1e-9 * law.total) << which;
    ASSERT_NEAR(time.clocked.value(), law.clocked, 1e-9 * law.clocked) << which;
    ASSERT_NEAR(time.dram_read_bytes, law.dram_read, 1e-9 * law.dram_read) << which;
    ASSERT_NEAR(time.dram_write_bytes, law.dram_write, 1e-9 * law.dram_write + 1e-9) << which;
    ASSERT_NEAR(time.l2_bytes, law.l2_bytes, 1e-9 * law.l2_bytes) << which;
    ASSERT_NEAR(time.l2_hit_rate, std::max(0.0, 1.0 - law.dram_read / law.l2_bytes), 1e-9) << which;
    ASSERT_NEAR(time.math_utilization, law.activity, 1e-12) << which;
    // What takes longest: the start, the memory, or in the k-steps latency, shared memory or the pipe.
    const double begin = law.fixed + law.fill;
    Limiter limits = Limiter::compute;
    if (begin > std::max(law.compute, law.memory)) limits = Limiter::latency;
    else if (law.memory > law.compute) limits = Limiter::dram;
    else if (law.latency > std::max(law.math, law.shared)) limits = Limiter::latency;
    else if (law.shared > law.math) limits = Limiter::shared_memory;
    else if (law.math < 0.5 * law.compute) limits = Limiter::latency;
    ASSERT_EQ(time.limiter, limits) << which;
    const double grid = static_cast<double>(launch.grid[0] * launch.grid[1]);
    ASSERT_NEAR(time.waves, grid / (gpu.sm.count * w.blocks_per_sm), 1e-9 * time.waves) << which;
    ASSERT_NEAR(time.occupancy, std::min(1.0, w.blocks_per_sm * launch.threads_per_block / 32.0 / gpu.sm.max_warps),
                1e-12)
        << which;
    // Without residency everything is cold.
    const KernelTime cold = gemm_time(launch, w, gpu, {}, p.c);
    ASSERT_NEAR(cold.time.value(), GemmLaw(w, gpu, p.c).time(tile_of(w), w.split_k).total, 1e-9 * cold.time.value());
  }
}

TEST(StatedReduction, a_kernel_that_adds_up_splits_reads_the_l2_and_writes_the_dram) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 500; ++i) {
    StatedProduct p = drawn_product(draws, GemmWork::Family::mma_sync);
    p.work.reduces_splits = true;
    p.work.split_k = static_cast<int>(2 + draws.index(20));
    const double m = static_cast<double>(p.work.m), n = static_cast<double>(p.work.n),
                 batch = static_cast<double>(p.work.batch), e = static_cast<double>(bytes_of(p.work.type));
    KernelLaunch launch;
    launch.work = p.work;
    const double partial = 4.0 * p.work.split_k * m * n * batch, result = e * m * n * batch;
    launch.reads = {Access{.bytes = partial}};
    launch.writes = {Access{.bytes = result}};
    const KernelTime time = gemm_time(launch, p.work, p.gpu, {}, p.c);
    const SplitReduction& r = split_reduction_of(false);
    const double adding =
        (r.start_cycles + p.work.split_k * r.split_cycles + r.element_cycles * m * n * batch / p.gpu.sm.count) /
            p.gpu.clock.sustained.value() +
        partial / (r.l2_share * p.gpu.l2.read_bandwidth.value());
    const double w_d = std::min(p.gpu.dram.bandwidth.value() * p.gpu.dram.write_efficiency * p.c.write_share,
                                1.112 * p.gpu.l2.write_bandwidth.value());
    const double stated = std::max({adding, result / w_d, result / p.gpu.dram.bandwidth.value()});
    ASSERT_NEAR(time.time.value(), stated, 1e-9 * stated) << "seed " << seed << ", draw " << i;
    EXPECT_EQ(time.dram_read_bytes, 0.0);
    EXPECT_EQ(time.dram_write_bytes, result);
    EXPECT_EQ(time.l2_bytes, partial + result);
    EXPECT_EQ(time.l2_hit_rate, 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(of, StatedProducts,
                         ::testing::Values(GemmWork::Family::wgmma, GemmWork::Family::mma_sync,
                                           GemmWork::Family::simt));

}  // namespace
}  // namespace ridgeline
