// The equations of docs/model/products.md, written down one after the other, and random products to try them on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/products/gemm_law.h"
#include "tests/support/draws.h"

namespace ridgeline::stated {

using testing_support::Draws;

/// Everything that an equation names: a kernel on a product, a chip, constants, shares of operands that miss.
struct StatedProduct {
  GemmWork work;
  Gpu gpu;
  GemmConstants c;
  double miss = 1.0, result_miss = 1.0;
  int splits = 1;
};

inline double norm4(double a, double b, double c = 0.0, double d = 0.0) {
  return std::pow(std::pow(a, 4.0) + std::pow(b, 4.0) + std::pow(c, 4.0) + std::pow(d, 4.0), 0.25);
}

inline double up(double x, double piece) { return std::ceil(x / piece - 1e-9); }

/// (1 - min(u, l)/l)³, u the largest power of two that divides the pitch in bytes.
inline double mis(double line, std::int64_t pitch, double element) {
  auto bytes = static_cast<std::int64_t>(static_cast<double>(pitch) * element);
  double power = 1.0;
  while (bytes % 2 == 0) {
    bytes /= 2;
    power *= 2.0;
  }
  return std::pow(1.0 - std::min(power, line) / line, 3.0);
}

/// The equations. Members have the names of the page.
class StatedLaw {
 public:
  explicit StatedLaw(const StatedProduct& p) : w(p.work), g(p.gpu), c(p.c), miss(p.miss), s(p.splits) {
    e = static_cast<double>(bytes_of(w.type));
    m = static_cast<double>(w.m), n = static_cast<double>(w.n), k = static_cast<double>(w.k);
    batch = static_cast<double>(w.batch);
    tm = w.tile_m, tn = w.tile_n, tk = w.tile_k;
    first = w.first_stages > 0 ? w.first_stages : w.stages;
    S = g.sm.count;
    tiles = up(m, tm) * up(n, tn) * batch;
    N = tiles * s;
    K = up(k, s * tk);
    const bool cuda = w.family == GemmWork::Family::simt;
    const MathRates& r = g.sm.rates;
    rate = cuda                    ? r.fp32
           : w.type == DType::bf16 ? r.tensor_bf16
           : w.type == DType::fp16 ? r.tensor_fp16
                                   : r.tensor_tf32;
    if (w.family == GemmWork::Family::mma_sync) rate = std::min(rate, g.sm.schedulers * 4096.0 / e / 6.154);
    if (w.sparse != SparseOperand::none) rate *= r.sparsity_factor;
    math = tm * tn * tk / rate;
    f0 = cuda ? g.clock.sustained.value() : g.clock.tensor.value();
    droop = cuda ? 0.0 : g.clock.tensor_droop.value();
    a_share = w.sparse == SparseOperand::a ? 9.0 / 16.0 : 1.0;
    b_share = w.sparse == SparseOperand::b ? 9.0 / 16.0 : 1.0;
    const bool a_turned = w.layout >= 2, b_turned = w.layout % 2 == 1;
    M_A = a_share * (1.0 + c.misaligned_load * mis(128.0, a_turned ? w.m : w.k, e));
    M_B = b_share * (1.0 + c.misaligned_load * mis(128.0, b_turned ? w.k : w.n, e));
    Lr = 0.845 * g.l2.read_bandwidth.value(), Lw = 1.112 * g.l2.write_bandwidth.value();
    Ls = std::min(g.l2.shared_read_bandwidth.value(), 1.45 * g.l2.read_bandwidth.value());
    L = g.l2.latency.value() + g.dram.latency.value() * f0 * miss * std::min(1.0, tk * e / 128.0);
    const double first_blocks = w.stream_k && w.family == GemmWork::Family::wgmma ? S : N;
    few = 1.0 - c.few_blocks * (1.0 - std::log2(std::min(first_blocks, S)) / std::log2(S));
    start = few * (c.fixed_cycles + c.cold_cycles * miss + (w.bias ? c.bias_cycles : 0.0)) / f0;
    if (w.family == GemmWork::Family::wgmma) persistent(a_turned, b_turned);
    else tiled(a_turned, b_turned, cuda);
    const double busy = std::min(1.0, N * K * math / (S * cycles));
    activity = busy;
    compute = few * cycles / (f0 - droop * busy * cycles / (cycles + c.droop_cycles));
    // Parts of a k-step over all k-steps of all rounds.
    const double of_steps = rounds * K * compute / cycles;
    for (double* part : {&math_part, &shared_part, &latency_part, &port_part}) *part *= of_steps;
    traffic(p.result_miss);
    total = start + fill + norm4(compute, memory);
  }
  double math_part = 0, shared_part = 0, latency_part = 0, port_part = 0;  ///< of compute
  double start = 0, fill = 0, compute = 0, memory = 0, total = 0, activity = 0, rounds = 0, Z = 0, asked = 0,
         written_out = 0;

 private:
  void persistent(bool a_turned, bool b_turned) {
    const auto reads = [](double along_m, double along_n) { return along_m + std::ceil(along_m / 64.0) * along_n; };
    const bool can_m = w.tile_m % 64 == 0, can_n = w.tile_n % 64 == 0;
    const bool n_first = can_n && (!can_m || reads(tn, tm) < reads(tm, tn));
    const double wm = n_first ? tn : tm, wn = n_first ? tm : tn;
    const double own = n_first ? b_share : a_share, other = n_first ? a_share : b_share;
    const double shared = tk * e * (own * wm + other * std::ceil(wm / 64.0) * wn) / g.sm.shared_bandwidth.value();
    const double latency = (c.latency_cycles + L) / std::max(1, w.stages - 1);
    const double A = tm * M_A, B = tn * M_B, port = tk * e * (A + B) / c.port_bytes;
    const double turned = a_turned ? tk * c.transpose_both * (tm + tn) : b_turned ? 0.0 : tk * c.transpose_b / tn;
    const double stored = s > 1 ? 4.0 : e;
    const double store =
        wm * wn * stored / c.epilogue_bytes * (1.0 + c.misaligned_store * mis(64.0, w.n, e)) + c.epilogue_cycles;
    const auto step = [&](double l2) {
      return std::max(math / c.utilization + turned, norm4(shared, latency, port, l2));
    };
    rounds = up(N, S);
    double all_steps = rounds * K;  // of the fullest SM
    cycles = 1e300;
    double drawn_alone = 1e300;
    struct Cluster {
      double along_m, along_n;
    };
    for (const Cluster& cluster : {Cluster{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}}) {
      const double blocks = up(up(m, tm), cluster.along_m) * cluster.along_m * up(up(n, tn), cluster.along_n) *
                            cluster.along_n * batch * s;
      const bool placed_at_once = cluster.along_m * cluster.along_n > 2.0;
      if (placed_at_once && blocks > std::floor(0.91 * S)) continue;
      const double turns = placed_at_once ? 1.0 : up(blocks, S);
      const double drawn = A / cluster.along_n + B / cluster.along_m;
      if (turns == rounds) drawn_alone = std::min(drawn_alone, drawn);
      const double l2_each = tk * e * drawn * N * c.requests * f0 / Ls;
      if (w.stream_k) continue;
      cycles = std::min(cycles,
                        turns * K * step(l2_each / turns) + store * (1.0 + (turns - 1.0) * (1.0 - c.epilogue_overlap)));
    }
    if (w.stream_k) {
      const double fix_up = c.fix_up * 8.0 * wm * wn / c.epilogue_bytes;
      const bool at_once = tiles <= S;
      const double steps = at_once ? std::ceil(K / std::floor(S / tiles)) : tiles / S * K;
      const double l2 = tk * e * drawn_alone * N * K / steps * c.requests * f0 / Ls;
      cycles = steps * step(l2) + (at_once ? 1.0 : tiles / S) * store + fix_up;
      rounds = tiles / S;
      all_steps = steps;
    }
    math_part = math / c.utilization + turned;
    shared_part = shared, latency_part = latency;
    port_part = std::max(port, tk * e * drawn_alone * N * K / all_steps * c.requests * f0 / Ls);
    sets = std::max(1.0, rounds);
    B0 = N * k / s * e * drawn_alone;
    resident = 1.0;
  }

  void tiled(bool a_turned, bool b_turned, bool cuda) {
    const double o = w.blocks_per_sm;
    rounds = up(N, S);
    const double rows = m / up(m, tm), columns = n / up(n, tn), panels = (rows * M_A + columns * M_B) * tk;
    const bool cutlass = c.grouped != 0.0 && (!cuda || first >= 4);
    const double loads = c.load_slots *
                         (b_turned   ? c.load_slots_nt
                          : a_turned ? c.load_slots_tn
                                     : 1.0) *
                         (cutlass ? 1.0 : c.own_load_slots) * panels / g.sm.issue_rate;
    const double copies = c.copy_bytes > 0.0 ? panels * e / c.copy_bytes : 0.0;
    const double bound = math / c.utilization;
    const double step =
        loads + (cuda ? tm * tn * tk / (32.0 * g.sm.schedulers * g.sm.issue_rate * c.issue_share) : bound);
    const bool in_place = w.stream_k;
    const double stored = s > 1 && !in_place ? 4.0 : e;
    const double store =
        c.epilogue_cycles + tm * tn * stored / c.epilogue_bytes * (1.0 + c.misaligned_store * mis(64.0, w.n, e));
    sets = up(rounds, o);
    const double j = rounds / sets;
    const double pace = std::max({j * bound, L / std::max(1, w.stages - 1),
                                  norm4(j * step, j * copies, c.latency_cycles) + c.exposed_cycles * tk});
    cycles = sets * (K * pace + store * (1.0 + (j - 1.0) * (1.0 - c.epilogue_overlap)));
    if (in_place)
      cycles += (s - 1) * (c.handoff_cycles + (c.handoff_bytes > 0.0 ? tm * tn * e / c.handoff_bytes : 0.0));
    B0 = N * K * panels * e;
    const double l2 = B0 * c.requests * f0 / Ls;
    cycles = std::max(cycles, l2);
    math_part = std::max(step, bound), shared_part = loads;
    latency_part = (c.latency_cycles + c.exposed_cycles * tk) / j, port_part = l2 / (rounds * K);
    resident = o;
  }

  void traffic(double result_miss) {
    const double C = g.l2.replacement == L2Replacement::none ? 0.0 : g.l2.capacity.value(), both = a_share + b_share;
    const double Q = e * batch * (a_share * m * k + b_share * n * k) * w.distinct_reads;
    const double A = std::min({tiles / batch, N, S * resident});
    const double h = g.l2.resident_full * C / (both * std::sqrt(tm * tn) * e * tk * first * 2.0);
    const double together = std::min(std::sqrt(A), h);
    const double B = together > 0.0 ? std::min(B0, both * std::sqrt(tm * tn) * k * e * tiles / together) : B0;
    const double beyond = Q / batch - C / 3.0;
    const double outgrown = C > 0.0 ? std::clamp(beyond / C, 0.0, 1.0) : 1.0;
    Z = Q * miss + std::max(0.0, B - Q) * outgrown;
    const double r_d = std::min(g.dram.bandwidth.value() * g.dram.read_efficiency * 0.9745 * c.read_share, Lr);
    const double w_d = std::min(g.dram.bandwidth.value() * g.dram.write_efficiency * c.write_share, Lw);
    const double stages = std::min(static_cast<double>(first), K);
    const double streamed = c.first_loads * (Q * miss / r_d + Q * (1.0 - miss) / Lr) / sets * stages / K;
    fill = few * (streamed + stages * c.stage_cycles / f0);
    const bool partial = s > 1 && !w.stream_k;
    const double written = partial ? c.partial_writes * 4.0 * s * m * n * batch / w_d
                                   : e * batch * m * n * (1.0 + c.misaligned_write * mis(64.0, w.n, e)) *
                                         (result_miss / w_d + (1.0 - result_miss) / Lw);
    memory = Z / r_d + Q * (1.0 - miss) / Lr - streamed + written;
    written_out = partial ? c.partial_writes * 4.0 * s * m * n * batch : e * batch * m * n * result_miss;
    asked = N * K * tk * e * (a_share * tm + b_share * tn);
  }

  const GemmWork& w;
  const Gpu& g;
  const GemmConstants& c;
  double miss, s, e, m, n, k, batch, tm, tn, tk, S, tiles, N, K, rate, math, f0, droop, a_share, b_share, M_A, M_B;
  double Lr, Lw, Ls, L, few, cycles = 0, sets = 1, B0 = 0, resident = 1;
  int first;
};

inline Gpu drawn_chip(Draws& draws) {
  static const Gpu kChips[] = {load_gpu("nvidia-h200-sxm-141gb"), load_gpu("nvidia-a100-sxm4-80gb"),
                               load_gpu("nvidia-rtx-3090")};
  Gpu gpu = kChips[draws.index(3)];
  const auto vary = [&](double low, double high) { return draws.between(low, high); };
  gpu.sm.count = static_cast<int>(vary(2, 300));
  gpu.sm.issue_rate = vary(0.5, 2.0);
  gpu.sm.shared_bandwidth = gpu.sm.shared_bandwidth * vary(0.2, 3.0);
  gpu.sm.rates.tensor_bf16 = vary(300.0, 5000.0);
  gpu.sm.rates.tensor_fp16 = vary(300.0, 5000.0);
  gpu.sm.rates.tensor_tf32 = vary(150.0, 2500.0);
  gpu.sm.rates.sparsity_factor = vary(1.2, 2.0);
  gpu.clock.tensor_droop = gpu.clock.tensor * vary(0.05, 0.4);
  gpu.l2.capacity = gpu.l2.capacity * vary(1e-3, 2.0);
  gpu.l2.read_bandwidth = gpu.l2.read_bandwidth * vary(0.2, 3.0);
  gpu.l2.write_bandwidth = gpu.l2.write_bandwidth * vary(0.1, 3.0);
  gpu.l2.shared_read_bandwidth = gpu.l2.read_bandwidth * vary(1.0, 2.0);
  gpu.l2.latency = gpu.l2.latency * vary(0.5, 3.0);
  gpu.dram.bandwidth = gpu.dram.bandwidth * vary(0.3, 3.0);
  gpu.dram.latency = gpu.dram.latency * vary(0.5, 3.0);
  if (draws.index(12) == 0) gpu.l2.replacement = L2Replacement::none;
  return gpu;
}

inline GemmConstants drawn_constants(Draws& draws) {
  GemmConstants c;
  const auto some = [&](double low, double high) { return draws.index(3) == 0 ? 0.0 : draws.between(low, high); };
  c.utilization = draws.between(0.4, 1.0);
  c.latency_cycles = some(10, 3000);
  c.few_blocks = some(0.05, 0.4);
  c.fixed_cycles = draws.between(500, 5000);
  c.cold_cycles = some(100, 3000);
  c.stage_cycles = some(10, 400);
  c.first_loads = draws.between(0.1, 1.0);
  c.bias_cycles = some(100, 2000);
  c.epilogue_cycles = some(50, 3000);
  c.epilogue_bytes = draws.between(4, 64);
  c.epilogue_overlap = draws.share();
  c.handoff_cycles = some(50, 3000);
  c.handoff_bytes = some(8, 200);
  c.read_share = draws.between(0.7, 1.3);
  c.write_share = draws.between(0.7, 1.3);
  c.partial_writes = some(0.2, 1.0);
  c.misaligned_write = some(0.2, 2.0);
  c.misaligned_load = some(0.2, 3.0);
  c.misaligned_store = some(0.2, 3.0);
  c.requests = draws.between(0.3, 1.2);
  c.port_bytes = draws.between(30, 200);
  c.droop_cycles = some(500, 20000);
  c.transpose_both = some(0.1, 3.0);
  c.transpose_b = some(10, 1000);
  c.fix_up = some(0.2, 3.0);
  c.grouped = static_cast<double>(draws.index(2));
  c.issue_share = draws.between(0.5, 1.0);
  c.exposed_cycles = some(1, 20);
  c.copy_bytes = some(10, 100);
  c.load_slots = some(0.02, 1.0);
  c.load_slots_nt = draws.between(0.5, 2.0);
  c.load_slots_tn = draws.between(0.5, 2.0);
  c.own_load_slots = draws.between(0.5, 2.0);
  return c;
}

inline StatedProduct drawn_product(Draws& draws, GemmWork::Family family) {
  StatedProduct p;
  p.gpu = drawn_chip(draws);
  p.c = drawn_constants(draws);
  GemmWork& w = p.work;
  w.family = family;
  const bool cuda = family == GemmWork::Family::simt;
  constexpr DType kTypes[] = {DType::bf16, DType::fp16, DType::tf32};
  w.type = cuda ? DType::fp32 : kTypes[draws.index(3)];
  w.layout = static_cast<int>(draws.index(4));
  const auto side = [&](double most) {
    const auto unit = static_cast<std::int64_t>(1) << draws.index(7);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(draws.between(8, most)) / unit) * unit;
  };
  w.m = side(8192), w.n = side(8192), w.k = side(16384);
  w.batch = draws.index(4) == 0 ? static_cast<std::int64_t>(draws.between(2, 40)) : 1;
  constexpr int kSides[] = {64, 128, 192, 256}, kTilings[] = {32, 64, 96, 128, 256}, kDeep[] = {8, 16, 32, 64, 128};
  if (family == GemmWork::Family::wgmma) {
    w.tile_m = kSides[draws.index(4)];
    w.tile_n = draws.index(3) == 0 ? 8 * static_cast<int>(1 + draws.index(20)) : kSides[draws.index(4)];
    if (draws.index(2) == 0) std::swap(w.tile_m, w.tile_n);
  } else {
    w.tile_m = kTilings[draws.index(5)];
    w.tile_n = kTilings[draws.index(5)];
    w.blocks_per_sm = static_cast<int>(1 + draws.index(4));
  }
  w.tile_k = kDeep[draws.index(5)];
  w.stages = static_cast<int>(1 + draws.index(7));
  if (draws.index(3) == 0) w.first_stages = w.stages + static_cast<int>(draws.index(3));
  w.bias = draws.index(3) == 0;
  w.stream_k = draws.index(4) == 0;
  if (draws.index(5) == 0) w.distinct_reads = draws.between(0.3, 1.0);
  if (!cuda && draws.index(4) == 0) w.sparse = draws.index(2) == 0 ? SparseOperand::a : SparseOperand::b;
  const bool shares_steps = w.stream_k && family == GemmWork::Family::wgmma;
  p.splits = shares_steps || draws.index(2) == 0 ? 1 : static_cast<int>(2 + draws.index(7));
  w.split_k = p.splits;
  p.miss = draws.index(3) == 0 ? 1.0 : draws.share();
  p.result_miss = draws.index(3) == 0 ? 1.0 : draws.share();
  return p;
}

}  // namespace ridgeline::stated
