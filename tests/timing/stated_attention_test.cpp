// The law of fused attention against its equations as docs/model/attention.md and docs/model/memory-floor.md state
// them, written down one after the other, over random kernels, chips and constants.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/attention/attention_law.h"
#include "sim/timing/block_schedule.h"
#include "sim/timing/laws.h"
#include "sim/workload/op.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;
using Part = AttentionWork::Part;

struct AttentionDraw {
  AttentionWork work;
  AttentionConstants constants;
  Gpu gpu;
  double cold = 0, written = 0;
};

double pieces_up(double length, double piece) { return std::ceil(length / piece - 1e-9); }

/// Members have the names of the pages.
class StatedAttention {
 public:
  explicit StatedAttention(const AttentionDraw& draw) : d(draw) {
    e = static_cast<double>(bytes_of(w.type)), D = static_cast<double>(w.head_dim), S = g.sm.count;
    heads = static_cast<double>(w.batch * w.heads);
    owned_tile = backward ? w.tile_k : w.tile_q, walked_tile = backward ? w.tile_q : w.tile_k;
    cost_of_a_tile();
    cost_of_a_block();
    const double O = w.blocks_per_sm;
    lists(O);
    floor();
    for (double J = O; J >= 1.0; --J) most_resident(J);
    law = T;
    T = std::max({T, panels.l2, panels.dram, panels.latency});
  }
  double T = 1e300, law = 0, clocked = 0, activity = 0, compute = 0, memory = 0, fixed = 0, fill = 0;
  PanelFloor panels;

 private:
  void cost_of_a_tile() {
    const auto seen = [&](int tile, std::int64_t length) {
      return efficient ? std::min(tile, static_cast<int>((length + 63) / 64 * 64)) : tile;
    };
    const double scores = static_cast<double>(seen(w.tile_q, w.seq_q)) * seen(w.tile_k, w.seq_k);
    const bool half = w.type != DType::fp32, padded_sides = efficient && !(backward && half);
    const double side = !padded_sides ? D : D <= 64.0 ? 64.0 : 128.0 * std::ceil(D / 128.0);
    const MathRates& r = g.sm.rates;
    double rate = w.type == DType::bf16 ? r.tensor_bf16 : w.type == DType::fp16 ? r.tensor_fp16 : r.tensor_tf32;
    const bool cuda = rate == 0.0;
    if (cuda) rate = r.fp32;
    else if (!wgmma) rate = std::min(rate, g.sm.schedulers * 4096.0 / e / 6.154);
    if (!cuda && w.type == DType::fp32) rate /= 3.0;
    tensor = !cuda, math = scores * (backward ? 2.0 * D + 3.0 * side : D + side) / rate;
    double operations = k.softmax_operations;
    if (w.dropout) operations += flash ? 6.0 : 27.0;
    const int heads_of_cudnn = flash || efficient || w.seq_q == 1 ? 0 : D <= 64.0 ? 1 : D <= 128.0 ? 2 : 3;
    if (w.bias) operations += (backward ? std::array{39, 50, 112, 225} : std::array{15, 15, 39, 117})[heads_of_cudnn];
    const double softmax = scores * (1.0 / r.special + operations / r.fp32);
    const double loads =
        width.operand_loads * (backward ? 5.0 : 2.0) * scores * D * e / rows / g.sm.shared_bandwidth.value();
    const double P = math / width.utilization, M = P + loads;
    uneven =
        w.lengths.any() || w.seq_q % w.tile_q != 0 || w.seq_k % w.tile_k != 0 || (flash && (w.padded_head || large));
    double edges = (uneven ? (w.causal ? width.uneven_causal : k.uneven) : 1.0) * (w.padded_head ? width.padded : 1.0);
    busy = edges * (P + std::max(0.0, softmax - M)) * w.tile_time;
    waits = edges * (M - P + k.exposed * std::min(M, softmax)) * w.tile_time;
    wait = width.tile_cycles * (large ? D / 192.0 : 1.0) * w.tiles_together * w.tile_time;
    math *= w.tile_time;
  }

  void cost_of_a_block() {
    f0 = tensor ? g.clock.tensor.value() : g.clock.sustained.value();
    const double l2 = g.l2.latency.value(), dram = std::max(l2, g.dram.latency.value() * f0);
    longest_q = static_cast<double>(w.seq_q), longest_k = static_cast<double>(w.seq_k);
    if (w.lengths.any())
      longest_q = longest_k = static_cast<double>(*std::max_element(w.lengths.list->begin(), w.lengths.list->end()));
    const bool is_short = std::max(longest_q, longest_k) <= 64.0;
    block = width.block_cycles * (is_short ? k.short_block : 1.0) + (dram - 332.9e-9 * 1.98e9) + (l2 - 281.6);
    unclocked = std::clamp(dram - l2, 0.0, std::max(0.0, block));
  }

  [[nodiscard]] double tile(double j) const {
    const double p = k.tile_overlap;
    return std::pow(std::pow(j * busy, p) + std::pow(wait + j * waits, p), 1.0 / p);
  }
  /// l' and units of each block of a head, with at most `O` blocks on an SM; blocks that leave have a length of -1.
  void lists(double O) {
    const double longest = backward ? longest_k : longest_q, own_blocks = pieces_up(longest, owned_tile);
    const bool packed = w.lengths.any();
    std::vector<double> lengths{0.0};
    if (packed) lengths.assign(w.lengths.list->begin(), w.lengths.list->end());
    n = own_blocks * static_cast<double>(lengths.size()) * heads * w.splits;
    const double resident = std::clamp(pieces_up(n, S), 1.0, O);
    working = products = 0.0;
    tiles.clear();
    units.clear();
    for (const double length : lengths) working += pieces_up(packed ? length : longest, owned_tile) * heads * w.splits;
    slots = std::min(working, S * resident);

    const bool checks_end = flash && !backward && uneven, spills = checks_end && w.causal && D != 96 && rows > 16;
    const double diagonal = w.causal     ? pieces_up(owned_tile, walked_tile) + (spills ? 1.0 : 0.0)
                            : checks_end ? 1.0
                                         : 0.0;
    const double in_step = spills ? k.spilled_masked : k.further_masked;
    const double apart = spills ? width.drift * (1.0 - std::min(1.0, S * O / working)) : 0.0;
    for (const double length : lengths) {
      const double queries = packed ? length : static_cast<double>(w.seq_q),
                   keys = packed ? length : static_cast<double>(w.seq_k);
      const double steps = pieces_up(backward ? queries : keys, walked_tile), part = pieces_up(steps, w.splits);
      for (double split = 0; split < w.splits; ++split)
        for (double i = 0; i < own_blocks; ++i) {
          if (i >= pieces_up(backward ? keys : queries, owned_tile)) {
            tiles.push_back(-1.0);
            units.push_back(0.1);
            continue;
          }
          double l = part;
          if (w.causal && backward)
            l = std::max(0.0, steps - std::max(0.0, std::floor((i * owned_tile - (keys - queries)) / walked_tile)));
          else if (w.causal)
            l = std::clamp(
                std::min(steps, pieces_up(std::max(0.0, (i + 1.0) * owned_tile + keys - queries), walked_tile)) -
                    split * part,
                0.0, part);
          const double m = w.causal || packed ? std::min(l, diagonal) : diagonal;
          const auto masked = [&](double further) {
            return l + std::min(m, 1.0) * k.first_masked + std::max(m - 1.0, 0.0) * further;
          };
          products += l * heads;
          double more = 0.0;
          if (packed && spills && l > m) more = k.unmasked_cycles / tile(O);
          tiles.push_back(masked(in_step * (1.0 + apart)) + more);
          units.push_back(masked(in_step) + 1.0);
        }
    }
  }

  [[nodiscard]] double cost(double length, double j) const {
    return length < 0.0 ? k.leaving_cycles : length * tile(j) + block;
  }

  void floor() {
    const double walked = static_cast<double>(backward ? w.seq_q : w.seq_k),
                 owned = static_cast<double>(backward ? w.seq_k : w.seq_q);
    const double of_keys = backward || w.kv_heads == 0 ? heads : static_cast<double>(w.batch * w.kv_heads);
    const double own = owned * D * e * heads * (backward ? 2.0 : 1.0), both = 2.0 * D * e;
    PanelTraffic p;
    p.first = own + both * walked * of_keys;
    p.asked = std::max(p.first, own + products * std::min(walked_tile, walked) * both);
    p.cold = std::min(d.cold, p.first);
    p.footprint = std::min(of_keys, 2.0) * both * (backward ? longest_q : longest_k);
    p.written = d.written + (backward ? products * std::min(walked_tile, walked) * 4.0 * D : 0.0);
    p.written_out = d.written;
    p.waits = products / slots + 2.0;
    panels = panel_floor(p, g, 0.845 * g.l2.read_bandwidth.value());
  }

  /// All ways with `J` blocks on an SM.
  void most_resident(double J) {
    if (J > 1.0 && n < J) return;
    lists(J);
    double all = 0.0, all_units = 0.0, at_work = 0.0;
    std::vector<double> alone, more;
    const double share = std::max(1.0 / J, std::round(1024.0 * tile(1.0) / tile(J)) / 1024.0);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      all += cost(tiles[i], J);
      all_units += units[i];
      at_work += tiles[i] >= 0.0 ? 1.0 : 0.0;
      alone.push_back(units[i] * share);
      more.push_back(J > 1.0 ? units[i] * (1.0 - share) / (J - 1.0) : 0.0);
    }
    const bool scheduled = w.causal || w.lengths.any();
    for (double b = std::max(pieces_up(n, S), J); b <= std::max(1.0, n); ++b) {
      double cycles = 0.0;
      if (scheduled) {
        const int sms = static_cast<int>(b > 1.0 ? std::clamp(pieces_up(n, b - 1.0) - 1.0, 1.0, S) : S);
        cycles = latest_schedule_end(alone, more, heads, sms, static_cast<int>(J)) * all / all_units;
      } else {
        const double sets = std::floor(b / J), rest = b - sets * J;
        cycles = sets * cost(tiles[0], J) + (rest > 0.0 ? cost(tiles[0], rest) : 0.0);
      }
      const double a = std::min(1.0, products * math / (S * cycles)),
                   f = tensor ? f0 - a * g.clock.tensor_droop.value() : f0;
      const double r_d = g.dram.bandwidth.value() * g.dram.read_efficiency * 0.9745 * k.read_share,
                   w_d = g.dram.bandwidth.value() * g.dram.write_efficiency;
      const double first = d.cold / r_d * std::min(1.0, J / b);
      const double moving = (d.cold + panels.refetched) / r_d - first + d.written / w_d;
      const double both = std::pow(std::pow(cycles / f, k.overlap) + std::pow(moving, k.overlap), 1.0 / k.overlap);
      const double time = k.fixed_cycles / f + first + both;
      if (cycles / f >= (scheduled ? 1.2 : 1.0) * T) break;  // more blocks on an SM take longer alone
      if (time >= T) continue;
      T = time, activity = a, compute = cycles / f, memory = moving, fixed = k.fixed_cycles / f, fill = first;
      clocked = fixed + compute * (1.0 - unclocked * at_work / all);
    }
  }

  const AttentionDraw& d;
  const AttentionWork& w = d.work;
  const AttentionConstants& k = d.constants;
  const Gpu& g = d.gpu;
  const AttentionBackend backend = static_cast<AttentionBackend>(w.backend);
  const bool flash = backend == AttentionBackend::flash, efficient = backend == AttentionBackend::efficient,
             wgmma = backend == AttentionBackend::cudnn && g.sm.warpgroup_mma, backward = w.part == Part::backward,
             large = w.head_dim > 128;
  const AttentionWidth& width = w.head_dim <= 64 ? k.narrow : large ? k.large : k.wide;
  const double rows = !flash || backward ? 32.0 : w.tile_q / (large && w.tile_q == 128 ? 8.0 : 4.0);
  bool uneven = false, tensor = true;
  double e, D, S, heads, owned_tile, walked_tile;
  double math = 0, busy = 0, waits = 0, wait = 0, block = 0, unclocked = 0, f0 = 0, longest_q = 0, longest_k = 0;
  double n = 0, working = 0, slots = 1, products = 0;
  std::vector<double> tiles, units;
};

AttentionWidth drawn_width(Draws& draws) {
  const auto some = [&](double low, double high) { return draws.index(3) == 0 ? 0.0 : draws.between(low, high); };
  return {.utilization = draws.between(0.4, 1.0),
          .operand_loads = some(0.1, 1.0),
          .tile_cycles = draws.between(100, 3000),
          .block_cycles = draws.between(1000, 9000),
          .uneven_causal = draws.between(1.0, 1.5),
          .padded = draws.between(1.0, 1.5),
          .drift = some(0.1, 2.0)};
}

Gpu chip_for_attention(Draws& draws) {
  static const std::array<Gpu, 3> kChips{load_gpu("nvidia-h200-sxm-141gb"), load_gpu("nvidia-a100-sxm4-80gb"),
                                         load_gpu("nvidia-t4")};
  Gpu g = kChips[draws.index(3)];
  g.sm.count = static_cast<int>(draws.between(2, 120));
  g.sm.shared_bandwidth = g.sm.shared_bandwidth * draws.between(0.2, 3.0);
  g.sm.rates.special = draws.between(4, 64);
  g.clock.tensor_droop = g.clock.tensor * draws.between(0.05, 0.4);
  g.l2.capacity = g.l2.capacity * draws.between(1e-3, 3.0);
  g.l2.read_bandwidth = g.l2.read_bandwidth * draws.between(0.05, 3.0);
  g.l2.write_bandwidth = g.l2.write_bandwidth * draws.between(0.05, 3.0);
  g.l2.latency = g.l2.latency * draws.between(0.5, 3.0);
  g.dram.bandwidth = g.dram.bandwidth * draws.between(0.05, 3.0);
  g.dram.latency = g.dram.latency * draws.between(0.3, 3.0);
  g.power.limit = g.power.limit * 1e6;
  return g;
}

AttentionDraw drawn_attention(Draws& draws, bool scheduled) {
  AttentionDraw d;
  d.gpu = chip_for_attention(draws);
  AttentionConstants& k = d.constants;
  k.narrow = drawn_width(draws), k.wide = drawn_width(draws), k.large = drawn_width(draws);
  k.exposed = draws.share(), k.softmax_operations = draws.between(1, 6), k.fixed_cycles = draws.between(500, 6000);
  k.first_masked = draws.share(), k.further_masked = draws.share(), k.spilled_masked = draws.share();
  k.unmasked_cycles = draws.between(100, 5000), k.leaving_cycles = draws.between(100, 2000);
  k.uneven = draws.between(1.0, 1.5), k.overlap = draws.between(1.5, 6.0), k.short_block = draws.between(0.3, 1.0);
  k.read_share = draws.between(0.6, 1.0), k.tile_overlap = draws.index(2) == 0 ? 1.0 : draws.between(1.0, 4.0);
  AttentionWork& w = d.work;
  w.part = draws.index(2) == 0 ? Part::forward : Part::backward;
  w.backend = static_cast<int>(
      std::array{AttentionBackend::flash, AttentionBackend::cudnn, AttentionBackend::efficient}[draws.index(3)]);
  const bool efficient = w.backend == static_cast<int>(AttentionBackend::efficient);
  w.type = efficient && draws.index(2) == 0 ? DType::fp32 : std::array{DType::bf16, DType::fp16}[draws.index(2)];
  w.batch = static_cast<std::int64_t>(draws.between(1, 5)), w.heads = 1 << draws.index(4);
  if (draws.index(3) == 0 && w.heads > 1) w.kv_heads = w.heads / 2;
  const auto length = [&] {
    const std::int64_t unit = draws.index(2) == 0 ? 128 : 1;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(draws.between(8, scheduled ? 1500 : 4000)) / unit) *
           unit;
  };
  w.seq_q = length(), w.seq_k = draws.index(3) == 0 ? length() : w.seq_q;
  w.head_dim = std::array<std::int64_t, 8>{32, 64, 72, 80, 96, 128, 192, 256}[draws.index(8)];
  w.padded_head = draws.index(3) == 0, w.dropout = draws.index(3) == 0, w.bias = draws.index(3) == 0;
  w.tile_q = 64 << draws.index(2), w.tile_k = 32 << draws.index(3);
  w.blocks_per_sm = static_cast<int>(1 + draws.index(3));
  w.tiles_together = static_cast<int>(1 + draws.index(2));
  w.tile_time = draws.index(2) == 0 ? 1.0 : draws.between(0.5, 2.0);
  w.causal = scheduled && draws.index(4) != 0;
  if (scheduled && (!w.causal || draws.index(3) == 0)) {
    std::vector<std::int64_t> list;
    for (std::size_t i = 2 + draws.index(3); i > 0; --i)
      list.push_back(1 + static_cast<std::int64_t>(draws.between(8, 600)));
    w.lengths.list = std::make_shared<const std::vector<std::int64_t>>(list);
    w.seq_q = w.seq_k = std::accumulate(list.begin(), list.end(), std::int64_t{0});
  } else if (w.part == Part::forward && draws.index(3) == 0) {
    w.splits = static_cast<int>(2 + draws.index(4));
  }
  d.cold = draws.between(1e3, 1e9), d.written = draws.between(1e3, 1e8);
  return d;
}

void expect_as_stated(bool scheduled, int draws_in_all) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  int compared = 0;
  for (int i = 0; i < draws_in_all; ++i) {
    const AttentionDraw d = drawn_attention(draws, scheduled);
    const StatedAttention s(d);
    const AttentionTime time = fused_attention_time(d.work, d.gpu, d.constants, d.cold, d.written);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    // A way that the search leaves out is no faster than the one it has, but for what its clock makes of the start.
    ASSERT_GE(time.total, s.T * (1.0 - 1e-9)) << which;
    ASSERT_LE(time.total, s.T * (1.0 + (scheduled ? 1e-4 : 1e-9))) << which;
    // Behind a memory that takes much longer many ways take the same.
    if (std::abs(time.total - s.T) > 1e-13 * s.T || s.compute < 0.5 * s.memory) continue;
    ++compared;
    ASSERT_NEAR(time.fixed, s.fixed, 1e-9 * s.fixed) << which;
    ASSERT_NEAR(time.compute, s.compute, 1e-9 * s.compute) << which;
    ASSERT_NEAR(time.memory, s.memory, 1e-9 * s.memory) << which;
    ASSERT_NEAR(time.fill, s.fill, 1e-9 * s.fill) << which;
    ASSERT_NEAR(time.clocked, s.clocked, 1e-9 * s.clocked) << which;
    ASSERT_NEAR(time.activity, s.activity, 1e-9) << which;
    ASSERT_NEAR(time.floor.most(), s.panels.most(), 1e-9 * time.floor.most()) << which;
  }
  EXPECT_GT(compared, 0.3 * draws_in_all) << "RIDGELINE_TEST_SEED=" << seed;
}

TEST(StatedAttention, kernels_of_equal_blocks_take_what_the_equations_say) { expect_as_stated(false, 3000); }
TEST(StatedAttention, kernels_of_unequal_blocks_take_what_the_equations_say) { expect_as_stated(true, 300); }

/// One launch: the law at what its accesses miss, figures beside the time by what they are called.
TEST(StatedAttention, a_launch_is_the_law_at_its_misses) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 1000; ++i) {
    AttentionDraw d = drawn_attention(draws, false);
    KernelLaunch launch;
    launch.work = d.work;
    launch.grid = {static_cast<std::int64_t>(draws.between(1, 3000)), 2, 1};
    launch.threads_per_block = 32 * static_cast<int>(1 + draws.index(12));
    launch.pipe = Pipe::tensor_mma;
    const double a = draws.between(1e3, 1e9), b = draws.between(1e3, 1e8), c = draws.between(1e3, 1e8);
    launch.reads = {Access{.operand = 0, .bytes = a}, Access{.operand = 1, .bytes = b}};
    launch.writes = {Access{.operand = 2, .bytes = c}};
    const std::vector<double> hits{draws.share(), draws.share(), draws.share()};
    d.cold = a * (1.0 - hits[0]) + b * (1.0 - hits[1]);
    d.written = c * (1.0 - hits[2]);
    const StatedAttention s(d);
    const KernelTime time = attention_time(launch, d.work, d.gpu, hits, d.constants);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(time.time.value(), s.T, 1e-8 * s.T) << which;
    ASSERT_NEAR(time.dram_read_bytes, d.cold + s.panels.refetched, 1e-8 * time.dram_read_bytes) << which;
    ASSERT_NEAR(time.dram_write_bytes, d.written, 1e-9 * d.written) << which;
    ASSERT_NEAR(time.l2_bytes, a + b + c, 1e-3) << which;
    ASSERT_NEAR(time.l2_hit_rate, 1.0 - d.cold / (a + b), 1e-9) << which;
    if (s.compute > 0.5 * s.memory) {
      ASSERT_NEAR(time.clocked.value(), s.clocked, 1e-8 * s.clocked) << which;
      ASSERT_NEAR(time.math_utilization, s.activity, 1e-9) << which;
    }
    const double resident = d.work.blocks_per_sm;
    ASSERT_NEAR(time.waves, launch.blocks() / (d.gpu.sm.count * resident), 1e-9 * time.waves) << which;
    ASSERT_NEAR(time.occupancy, std::min(1.0, resident * launch.threads_per_block / 32.0 / d.gpu.sm.max_warps), 1e-9)
        << which;
    // A floor that is the time limits; else the longest of start, memory and compute.
    const double floor = s.panels.most();
    if (floor > s.law * (1.0 + 1e-9)) {
      ASSERT_EQ(time.limiter, floor == s.panels.l2     ? Limiter::l2
                              : floor == s.panels.dram ? Limiter::dram
                                                       : Limiter::latency)
          << which;
    } else if (floor < s.law * (1.0 - 1e-9)) {
      if (s.compute < 0.5 * s.memory) continue;
      if (s.fixed + s.fill > std::max(s.compute, s.memory)) ASSERT_EQ(time.limiter, Limiter::latency) << which;
      else if (s.memory > s.compute) ASSERT_EQ(time.limiter, Limiter::dram) << which;
      else ASSERT_EQ(time.limiter, s.activity < 0.25 ? Limiter::latency : Limiter::compute) << which;
    }
  }
}

TEST(StatedAttention, a_copy_to_another_layout_is_a_stream_of_its_own) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 200; ++i) {
    AttentionDraw d = drawn_attention(draws, false);
    d.work.part = Part::layout_copy;
    const double read = draws.between(1e3, 1e9), written = draws.between(1e3, 1e8);
    KernelLaunch launch;
    launch.work = d.work;
    launch.reads = {Access{.operand = 0, .bytes = read}};
    launch.writes = {Access{.operand = 1, .bytes = written}};
    const KernelTime time = attention_time(launch, d.work, d.gpu, {}, d.constants);
    const double start = 3290.0 / d.gpu.clock.sustained.value(),
                 moving = (read + written) / (0.30 * d.gpu.dram.bandwidth.value());
    ASSERT_NEAR(time.time.value(), start + moving, 1e-9 * time.time.value()) << seed << ' ' << i;
    ASSERT_EQ(time.limiter, moving > start ? Limiter::dram : Limiter::latency) << seed << ' ' << i;
  }
}

}  // namespace
}  // namespace ridgeline
