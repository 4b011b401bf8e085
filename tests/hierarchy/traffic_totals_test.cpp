// What kernels of every kind ask of the L2 and the DRAM in all, against docs/model/simulated-hierarchy.md (section
// Traffic): the parts of a kernel add up to it, and each byte comes once where everything is cold and nothing returns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/traffic.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/memory_bound/rereads.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

const Gpu& h200() {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  return gpu;
}

struct TrafficDraw {
  KernelLaunch launch;
  Gpu gpu = h200();
  std::vector<PlacedAccess> places;

  void place() {
    std::vector<Operand> operands;
    for (std::uint32_t i = 0; i < launch.reads.size() + launch.writes.size(); ++i) operands.push_back({i, 0});
    AccessPlaces known;
    places = known.of(launch, operands);
  }
  [[nodiscard]] double asked(bool writes) const {
    double sum = 0.0;
    for (const Access& access : writes ? launch.writes : launch.reads) sum += std::max(access.bytes, access.requested);
    return sum;
  }
};

TrafficDraw drawn_launch(Draws& draws, double least, double most) {
  TrafficDraw d;
  d.gpu.sm.count = static_cast<int>(draws.between(2, 150));
  d.gpu.l2.partitions = static_cast<int>(1 + draws.index(2));
  d.launch.grid = {static_cast<std::int64_t>(draws.between(1, 20000)), 1, 1};
  d.launch.threads_per_block = 32 << draws.index(6);
  int operand = 0;
  const auto access = [&] {
    Access a{.operand = operand++, .bytes = std::floor(draws.between(least, most))};
    if (draws.index(2) == 0) a.requested = a.bytes * draws.between(1.0, 4.0);
    return a;
  };
  for (std::size_t i = 1 + draws.index(3); i > 0; --i) d.launch.reads.push_back(access());
  for (std::size_t i = 1 + draws.index(2); i > 0; --i) d.launch.writes.push_back(access());
  return d;
}

void expect_cold(const KernelTraffic& traffic, const TrafficDraw& d, double asked_reads) {
  const TrafficStep sum = traffic.total();
  const L2Cache cache(d.gpu.l2);
  EXPECT_NEAR(sum.work, 1.0, 1e-9);
  EXPECT_NEAR(sum.l2_read, asked_reads, 1e-9 * asked_reads);
  EXPECT_NEAR(sum.l2_write, d.asked(true), 1e-9 * sum.l2_write);
  EXPECT_NEAR(sum.dram_read, d.launch.read_bytes(), 4.0) << "each byte comes once";
  EXPECT_LE(sum.dram_write, d.launch.written_bytes() + 1.0);
  for (const double share : traffic.hit_shares) EXPECT_NEAR(share, 0.0, 1e-9);
  EXPECT_EQ(traffic.hit_shares.size(), d.launch.reads.size() + d.launch.writes.size());
  // As the L2's counters see it: copies are looked up too, writes hit.
  const double c = cache.stream_copies();
  const double lookups = sum.l2_read + (c - 1.0) * sum.dram_read + c * sum.l2_write;
  EXPECT_NEAR(sum.lookups, lookups, 1e-6 * lookups);
}

TEST(TrafficTotals, a_stream_brings_every_operand_once_side_by_side) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    TrafficDraw d = drawn_launch(draws, 1e4, 1e8);
    d.launch.work = MemoryBoundWork{};
    d.place();
    L2Cache l2(d.gpu.l2);
    const KernelTraffic traffic = simulate_traffic(d.launch, d.places, d.gpu, l2);
    expect_cold(traffic, d, d.asked(false));
    const TrafficStep sum = traffic.total();
    const double c = l2.stream_copies();
    // What misses is not found in any of its copies; granules come as a whole, some earlier than they are asked for.
    EXPECT_LE(sum.lookups - sum.hits, c * sum.dram_read * (1.0 + 1e-9));
    EXPECT_GE(sum.lookups - sum.hits, sum.dram_read > 5e7 ? 0.8 * c * sum.dram_read : 0.0);
    // Steps of a megabyte, at most 256, each with its part of everything; cohorts as SMs hold blocks.
    const double all = d.launch.read_bytes() + d.launch.written_bytes(),
                 steps = std::clamp(std::floor(all / 1e6), 1.0, 256.0);
    ASSERT_EQ(static_cast<double>(traffic.steps.size()), steps);
    const double held = std::max(1, occupancy_of(d.gpu.sm, d.launch).blocks) * d.gpu.sm.count;
    const double cohorts = std::max(1.0, d.launch.blocks() / held);
    EXPECT_EQ(traffic.cohorts, static_cast<int>(std::ceil(cohorts - 1e-9)));
    for (std::size_t k = 0; k < traffic.steps.size(); ++k) {
      EXPECT_NEAR(traffic.steps[k].l2_read, sum.l2_read / steps, 1e-9 * sum.l2_read);
      EXPECT_NEAR(traffic.steps[k].work, 1.0 / steps, 1e-12);
      const double place = static_cast<double>(k) / steps * cohorts;
      EXPECT_GE(traffic.steps[k].cohort, std::floor(place - 1e-9));
      EXPECT_LE(traffic.steps[k].cohort, std::floor(place + 1e-9));
    }
    // What is small is there the second time; what it wrote is dirty where it may be.
    if (all < 0.2 * d.gpu.l2.capacity.value() && d.launch.written_bytes() < 0.1 * d.gpu.l2.capacity.value()) {
      const KernelTraffic again = simulate_traffic(d.launch, d.places, d.gpu, l2);
      EXPECT_EQ(again.total().dram_read, 0.0);
      for (const double share : again.hit_shares) EXPECT_NEAR(share, 1.0, 1e-9);
      EXPECT_NEAR(again.total().hits, again.total().lookups, 1e-9 * again.total().lookups);
    }
  }
}

TEST(TrafficTotals, rows_read_again_ask_for_what_the_l1_has_lost) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    TrafficDraw d = drawn_launch(draws, 1e6, 2e7);
    MemoryBoundWork work;
    double large = 0.0, rows = 0.0;  // of operands half as large as the largest
    for (const Access& read : d.launch.reads) large = std::max(large, read.bytes);
    for (const Access& read : d.launch.reads) rows += read.bytes >= 0.5 * large ? read.bytes : 0.0;
    work.reread_bytes = rows * draws.between(0.3, 3.4);
    work.reread_row_bytes = draws.between(1e3, 3e5);
    work.reread_through_l1 = draws.index(2) == 0;
    d.launch.work = work;
    d.gpu.l2.capacity = d.gpu.l2.capacity * 20.0;  // holds all of it
    d.place();
    L2Cache l2(d.gpu.l2);
    const KernelTraffic traffic = simulate_traffic(d.launch, d.places, d.gpu, l2);
    const double lost = l1_miss_again(d.launch, work, d.gpu.sm);
    expect_cold(traffic, d, d.asked(false) + work.reread_bytes * lost);
    EXPECT_DOUBLE_EQ(traffic.l1_read, work.reread_through_l1 ? work.reread_bytes : 0.0);
    EXPECT_NEAR(traffic.l1_hit, traffic.l1_read * (1.0 - lost), 1e-9 * traffic.l1_read);
    // In an L2 that holds nothing, what is read again comes from the DRAM again.
    TrafficDraw none = d;
    none.gpu.l2.replacement = L2Replacement::none;
    L2Cache absent(none.gpu.l2);
    const TrafficStep all = simulate_traffic(none.launch, none.places, none.gpu, absent).total();
    EXPECT_NEAR(all.dram_read, all.l2_read, 1e-6 * all.l2_read);
    EXPECT_NEAR(all.l2_read, d.asked(false) + work.reread_bytes * lost, 1e-6 * all.l2_read);
    EXPECT_EQ(all.hits, 0.0);
  }
}

TEST(TrafficTotals, attention_asks_for_the_walked_side_once_a_block) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    TrafficDraw d;
    d.gpu.sm.count = static_cast<int>(draws.between(2, 150));
    AttentionWork work;
    const bool backward = draws.index(2) == 0;
    work.part = backward ? AttentionWork::Part::backward : AttentionWork::Part::forward;
    work.batch = static_cast<std::int64_t>(draws.between(1, 5)),
    work.heads = static_cast<std::int64_t>(draws.between(1, 9));
    work.tile_q = 64 << draws.index(2), work.tile_k = 64 << draws.index(2);
    work.seq_q = work.seq_k = 32 * static_cast<std::int64_t>(1 + draws.index(40));
    work.causal = draws.index(2) == 0;
    work.blocks_per_sm = static_cast<int>(1 + draws.index(3));
    if (!backward && draws.index(3) == 0) work.splits = 3;
    const double heads = static_cast<double>(work.batch * work.heads),
                 each = 128.0 * static_cast<double>(work.seq_q) * heads;
    double blocks_of_head = std::ceil(static_cast<double>(work.seq_q) / (backward ? work.tile_k : work.tile_q)),
           readers = blocks_of_head, count = blocks_of_head * work.splits * heads;
    if (draws.index(3) == 0) {  // packed sequences: each key is read by the blocks of its own
      std::vector<std::int64_t> lengths{work.seq_q / 2, work.seq_q - work.seq_q / 2};
      const double tile = backward ? work.tile_k : work.tile_q;
      double met = 0.0;
      for (const std::int64_t length : lengths)
        met += static_cast<double>(length) * std::ceil(static_cast<double>(length) / tile);
      readers = met / static_cast<double>(work.seq_q) / work.splits;
      blocks_of_head = std::ceil(static_cast<double>(lengths[1]) / tile);
      count = blocks_of_head * work.splits * heads * 2.0;
      work.lengths.list = std::make_shared<const std::vector<std::int64_t>>(lengths);
    }
    for (int operand = 0; operand < (backward ? 4 : 3); ++operand)
      d.launch.reads.push_back({.operand = operand, .bytes = each});
    d.launch.writes.push_back({.operand = 4, .bytes = each, .requested = 1.5 * each});
    d.launch.work = work;
    d.gpu.l2.capacity = d.gpu.l2.capacity * 50.0;
    d.place();
    L2Cache l2(d.gpu.l2);
    const KernelTraffic traffic = simulate_traffic(d.launch, d.places, d.gpu, l2);
    // Forward blocks own queries and walk keys and values; backward ones own keys and values and walk the rest.
    const double owned = backward ? 2.0 : 1.0, walked = static_cast<double>(d.launch.reads.size()) - owned;
    const double half =
        work.causal
            ? 0.5 * (1.0 + 1.0 / std::max(1.0, work.lengths.any() ? readers * work.splits : readers * work.splits))
            : 1.0;
    const double asked = each * (owned + walked * readers * half);
    const TrafficStep sum = traffic.total();
    EXPECT_NEAR(sum.l2_read, asked, 1e-6 * asked);
    EXPECT_NEAR(sum.l2_write, 1.5 * each, 1e-6 * each);
    EXPECT_NEAR(sum.dram_read, d.launch.read_bytes(), 8.0);
    EXPECT_NEAR(sum.work, 1.0, 1e-9);
    EXPECT_EQ(traffic.cohorts, static_cast<int>(std::ceil(count / (d.gpu.sm.count * work.blocks_per_sm))));
    EXPECT_EQ(traffic.steps.size(), 4u * static_cast<std::size_t>(traffic.cohorts));
  }
}

TEST(TrafficTotals, tiles_of_a_product_ask_for_their_panels_once_merged) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    SCOPED_TRACE("RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i));
    TrafficDraw d;
    d.gpu.sm.count = static_cast<int>(draws.between(2, 150));
    GemmWork work;
    const bool persistent = draws.index(2) == 0;
    work.family = persistent ? GemmWork::Family::wgmma : GemmWork::Family::mma_sync;
    work.type = DType::bf16;
    work.tile_m = 64 << draws.index(2), work.tile_n = 64 << draws.index(2), work.tile_k = 32 << draws.index(2);
    work.m = work.tile_m * static_cast<std::int64_t>(1 + draws.index(12));
    work.n = work.tile_n * static_cast<std::int64_t>(1 + draws.index(12));
    work.k = static_cast<std::int64_t>(draws.between(16, 4000));
    work.batch = draws.index(3) == 0 ? 3 : 1;
    work.split_k = draws.index(3) == 0 ? 2 : 1;
    work.blocks_per_sm = static_cast<int>(1 + draws.index(3));
    work.distinct_reads = draws.index(3) == 0 ? 0.7 : 1.0;
    const double m = static_cast<double>(work.m), n = static_cast<double>(work.n), k = static_cast<double>(work.k),
                 batch = static_cast<double>(work.batch);
    Access a{.operand = 0, .bytes = 2.0 * batch * m * k}, b{.operand = 1, .bytes = 2.0 * batch * n * k};
    d.launch.reads = {a, b};
    if (work.m != work.n && draws.index(2) == 0) std::swap(d.launch.reads[0].bytes, d.launch.reads[1].bytes);
    d.launch.writes = {{.operand = 2, .bytes = 2.0 * batch * m * n}};
    d.launch.work = work;
    d.gpu.l2.capacity = d.gpu.l2.capacity * 50.0;
    d.place();
    L2Cache l2(d.gpu.l2);
    const KernelTraffic traffic = simulate_traffic(d.launch, d.places, d.gpu, l2);
    const double tiles = m / work.tile_m * n / work.tile_n * batch * work.split_k;
    const double asked =
        (persistent ? 0.58 : 0.9) * tiles * 2.0 * k / work.split_k * (work.tile_m + work.tile_n) * work.distinct_reads;
    const TrafficStep sum = traffic.total();
    EXPECT_NEAR(sum.l2_read, asked, 1e-6 * asked);
    EXPECT_NEAR(sum.l2_write, d.launch.written_bytes(), 1e-6 * sum.l2_write);
    EXPECT_NEAR(sum.dram_read, d.launch.read_bytes(), 64.0);
    EXPECT_NEAR(sum.work, 1.0, 1e-9);
    const double at_once = d.gpu.sm.count * (persistent ? 1 : work.blocks_per_sm);
    EXPECT_EQ(traffic.cohorts, static_cast<int>(std::ceil(tiles / at_once)));
    const double steps = std::min(8.0, std::ceil(k / work.split_k / work.tile_k));
    EXPECT_EQ(static_cast<double>(traffic.steps.size()), steps * traffic.cohorts);
    // A cohort's steps are its tiles' share of the arithmetic, its last one writes them.
    for (std::size_t s = 0; s < traffic.steps.size(); ++s) {
      const double cohort = std::floor(static_cast<double>(s) / steps),
                   of_cohort = std::min(at_once, tiles - cohort * at_once);
      EXPECT_EQ(traffic.steps[s].cohort, static_cast<int>(cohort));
      EXPECT_NEAR(traffic.steps[s].work, of_cohort / tiles / steps, 1e-9);
      const bool writes = std::fmod(static_cast<double>(s) + 1.0, steps) == 0.0;
      EXPECT_NEAR(traffic.steps[s].l2_write, writes ? d.launch.written_bytes() * of_cohort / tiles : 0.0,
                  1e-6 * sum.l2_write);
    }
  }
}

}  // namespace
}  // namespace ridgeline
