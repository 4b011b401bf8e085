// The law of convolutions and the floor of the memory against their equations as docs/model/convolutions.md and
// docs/model/memory-floor.md state them, written down one after the other, over random kernels, chips and constants.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/convolution/convolution_law.h"
#include "sim/timing/laws.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;
using Role = Gathering::Role;
using Family = GemmWork::Family;

struct ConvolutionDraw {
  GemmWork work;
  ConvolutionConstants constants;
  Gpu gpu;
  double cold = 0, hit = 0, written = 0;
};

double fourth_norm(double a, double b, double c = 0.0) {
  return std::pow(std::pow(a, 4.0) + std::pow(b, 4.0) + std::pow(c, 4.0), 0.25);
}
double whole_pieces(double length, double piece) { return std::ceil(length / piece - 1e-9); }

/// How badly a pixel's channels straddle lines: none up to 16 bytes.
double straddled(double channels, double element, double line) {
  const double bytes = channels * element;
  if (bytes <= 16.0) return 0.0;
  double unit = 1.0;
  while (std::fmod(bytes, 2.0 * unit) == 0.0 && unit < line) unit *= 2.0;
  return std::pow(1.0 - unit / line, 3.0);
}

/// Members have the names of the pages.
class StatedConvolution {
 public:
  explicit StatedConvolution(const ConvolutionDraw& draw) : d(draw) {
    e = cuda ? 4.0 : static_cast<double>(bytes_of(w.type)), S = g.sm.count;
    tm = w.tile_m, tn = w.tile_n, tk = w.tile_k, splits = w.split_k;
    tiling();
    rounds = whole_pieces(tiles * splits, S);
    r = wgmma ? 1.0 : std::min(static_cast<double>(w.blocks_per_sm), rounds);
    L2 = std::max(g.l2.shared_read_bandwidth.value(), g.l2.read_bandwidth.value());
    law();
    steps = whole_pieces(steps, splits);
    floor();
    T = std::max({fixed + fourth_norm(compute, memory), floor_l2, floor_dram, floor_latency});
  }
  double T = 0, compute = 0, memory = 0, fixed = 0, clocked = 0, busy = 0, tiles = 0, steps = 0;
  double floor_l2 = 0, floor_dram = 0, floor_latency = 0, refetched = 0;

 private:
  void tiling() {
    const double m = static_cast<double>(w.m), n = static_cast<double>(w.n), depth = static_cast<double>(w.k);
    const double taps = static_cast<double>(w.gathering.taps), classes = static_cast<double>(w.gathering.phases),
                 channels = static_cast<double>(w.gathering.channels);
    of_a = of_b = of_out = n;
    if (role == Role::forward || role == Role::input_gradient) {
      tiles = classes * whole_pieces(m / classes, tm) * whole_pieces(n, tn);
      steps = w.gathering.dense_taps ? whole_pieces(depth, tk) : taps / classes * whole_pieces(channels, tk);
      of_a = channels;
      if (role == Role::forward) of_b = channels;
    } else if (role == Role::weight_gradient) {
      const double of_taps = whole_pieces(m, tm) * taps * whole_pieces(n / taps, tn);
      tiles = wgmma ? of_taps : std::min(of_taps, whole_pieces(m, tm) * whole_pieces(n, tn));
      steps = whole_pieces(depth, tk);
      of_a = m;
      of_b = of_out = n / taps;
    } else {
      tiles = static_cast<double>(w.batch) * whole_pieces(m, tm) * whole_pieces(n, tn);
      steps = whole_pieces(depth, tk);
    }
  }

  [[nodiscard]] double rate() const {
    const MathRates& rates = g.sm.rates;
    if (cuda) return std::min(rates.fp32, 32.0 * g.sm.schedulers * g.sm.issue_rate);
    const double peak = w.type == DType::bf16   ? rates.tensor_bf16
                        : w.type == DType::fp16 ? rates.tensor_fp16
                                                : rates.tensor_tf32;
    return w.family == Family::mma_sync ? std::min(peak, g.sm.schedulers * 4096.0 / e / 6.154) : peak;
  }

  void law() {
    const double math = tm * tn * tk / rate(), bound = math / k.utilization;
    const double f0 = cuda ? g.clock.sustained.value() : g.clock.tensor.value(), A = tiles * splits / rounds;
    const double gathered = tk * e *
                            (tm * (1.0 + k.misaligned_load * straddled(of_a, e, 128.0)) +
                             tn * (1.0 + k.misaligned_load * straddled(of_b, e, 128.0)));
    const double share = role == Role::weight_gradient ? k.weight_share : k.l2_share;
    const double from_l2 = gathered * share * f0 * A / L2;
    const double to_shared = gathered / g.sm.shared_bandwidth.value() + k.row_cycles * w.gathering.scattered_rows;
    const double latency = std::max(0.0, k.latency_cycles + (g.l2.latency.value() - 281.6) / 2.0);
    const double x = bound + to_shared;
    const bool to_images = role == Role::scattered_images, added_up = to_images || role == Role::scattered_filters;
    double epilogue = (k.epilogue_cycles + tm * tn * (splits > 1.0 ? 4.0 : e) / k.epilogue_bytes *
                                               (1.0 + k.misaligned_store * straddled(of_out, e, 64.0))) *
                      (added_up ? k.scatter : 1.0);
    if (to_images)
      epilogue = std::max(epilogue,
                          static_cast<double>(w.batch * w.m * w.n) / tiles * A * f0 / (k.atomics * g.l2.atomic_rate));
    const auto cycles_with = [&](double l2) {
      double step = wgmma  ? fourth_norm(bound, latency, to_shared + l2)
                    : cuda ? fourth_norm(r * (x + l2), latency + x)
                           : fourth_norm(r * x, latency + x, r * l2);
      if (w.gathering.indexed) step *= k.indexed;
      return rounds / r * whole_pieces(steps, splits) * step + rounds * epilogue;
    };
    const double cycles = cycles_with(from_l2);
    busy = std::min(1.0, tiles * steps * math / S / cycles);
    const double f = cuda ? f0 : f0 - busy * g.clock.tensor_droop.value(), D = g.dram.bandwidth.value();
    compute = cycles / f;
    clocked = cycles_with(0.0) / f;
    memory = (d.cold + d.written * (to_images ? 2.0 : 1.0)) / (k.dram_share * D) +
             d.hit / (0.845 * g.l2.read_bandwidth.value());
    fixed = k.fixed_cycles / f0;
    if (splits > 1.0) fixed += k.split_cycles / f + 8.0 * splits * tiles * tm * tn / (k.split_share * D);
  }

  void floor() {
    const double blocks = tiles * splits, at_work = std::min(blocks, S * r), depth = steps * tk * e;
    const double Z0 = d.cold + d.hit, Q = std::max(Z0, (wgmma ? 0.58 : 0.9) * blocks * depth * (tm + tn));
    const double F = std::min(Z0, (tm + tn) * depth);
    const double square = std::min(Z0, 2.0 * std::sqrt(at_work * tm * tn) * depth);
    const double later = std::min(Q - Z0, std::max(0.0, square * blocks / at_work - Z0));
    const double C = g.l2.replacement == L2Replacement::none ? 0.0 : g.l2.capacity.value();
    refetched = (Q - Z0 - later) * std::exp(-C / F) + later * std::exp(-C / Z0);
    const double missed = d.cold + refetched, fs = g.clock.sustained.value(), D = g.dram.bandwidth.value();
    const double l2_latency = g.l2.latency.value(), dram_latency = std::max(l2_latency, g.dram.latency.value() * fs);
    const auto load = [&](double cold) { return l2_latency + std::min(1.0, cold) * (dram_latency - l2_latency); };
    const double start = g.launch.kernel_fixed.value() + (2.0 * l2_latency + load(d.cold / Z0)) / fs;
    floor_l2 = start + Q / L2 + d.written / (1.112 * g.l2.write_bandwidth.value());
    floor_dram = start + missed / (D * g.dram.read_efficiency) + d.written / (D * g.dram.write_efficiency);
    floor_latency = start + blocks / at_work * steps / 2.0 * load(missed / Q) / fs;
  }

  const ConvolutionDraw& d;
  const GemmWork& w = d.work;
  const Gpu& g = d.gpu;
  const ConvolutionConstants& k = d.constants;
  const Role role = w.gathering.role;
  const bool wgmma = w.family == Family::wgmma, cuda = w.family == Family::simt;
  double e, S, tm, tn, tk, splits, rounds = 0, r = 1, L2 = 0;
  double of_a = 0, of_b = 0, of_out = 0;  ///< channels of a pixel
};

ConvolutionDraw drawn_convolution(Draws& draws) {
  static const std::array<Gpu, 3> kChips{load_gpu("nvidia-h200-sxm-141gb"), load_gpu("nvidia-a100-sxm4-80gb"),
                                         load_gpu("nvidia-rtx-3090")};
  ConvolutionDraw d;
  Gpu& g = d.gpu = kChips[draws.index(3)];
  g.sm.count = static_cast<int>(draws.between(2, 300));
  g.sm.issue_rate = draws.between(0.5, 2.0);
  g.sm.shared_bandwidth = g.sm.shared_bandwidth * draws.between(0.2, 3.0);
  g.sm.rates.tensor_bf16 = draws.between(300, 5000);
  g.sm.rates.tensor_fp16 = draws.between(300, 5000);
  g.sm.rates.tensor_tf32 = draws.between(150, 2500);
  g.clock.tensor_droop = g.clock.tensor * draws.between(0.05, 0.4);
  g.l2.capacity = g.l2.capacity * draws.between(1e-3, 3.0);
  g.l2.read_bandwidth = g.l2.read_bandwidth * draws.between(0.2, 3.0);
  g.l2.shared_read_bandwidth = g.l2.read_bandwidth * draws.between(0.8, 2.0);
  g.l2.write_bandwidth = g.l2.write_bandwidth * draws.between(0.1, 3.0);
  g.l2.latency = g.l2.latency * draws.between(0.3, 3.0);
  g.dram.bandwidth = g.dram.bandwidth * draws.between(0.1, 3.0);
  g.dram.latency = g.dram.latency * draws.between(0.3, 3.0);
  if (draws.index(12) == 0) g.l2.replacement = L2Replacement::none;
  g.power.limit = g.power.limit * 1e6;

  ConvolutionConstants& k = d.constants;
  const auto some = [&](double low, double high) { return draws.index(3) == 0 ? 0.0 : draws.between(low, high); };
  k.fixed_cycles = draws.between(500, 5000);
  k.utilization = draws.between(0.3, 1.0);
  k.latency_cycles = some(10, 3000);
  k.l2_share = draws.between(0.05, 1.0);
  k.weight_share = draws.between(0.05, 1.0);
  k.misaligned_load = some(0.2, 3.0);
  k.epilogue_cycles = some(50, 3000);
  k.epilogue_bytes = draws.between(4, 64);
  k.misaligned_store = some(0.2, 3.0);
  k.dram_share = draws.between(0.4, 1.0);
  k.split_cycles = some(50, 5000);
  k.split_share = draws.between(0.3, 1.0);
  k.indexed = draws.between(1.1, 3.0);
  k.scatter = draws.between(1.1, 3.0);
  k.atomics = draws.between(0.05, 1.0);
  k.row_cycles = some(1, 50);

  GemmWork& w = d.work;
  w.family = std::array{Family::wgmma, Family::mma_sync, Family::simt}[draws.index(3)];
  w.type = w.family == Family::simt ? DType::fp32 : std::array{DType::bf16, DType::fp16, DType::tf32}[draws.index(3)];
  constexpr std::array kSides{32, 64, 128, 256};
  w.tile_m = kSides[draws.index(4)], w.tile_n = kSides[draws.index(4)];
  w.tile_k = 8 << draws.index(4);
  w.blocks_per_sm = static_cast<int>(1 + draws.index(4));
  w.split_k = draws.index(2) == 0 ? 1 : static_cast<int>(2 + draws.index(10));
  w.gathering.role = std::array{Role::forward, Role::input_gradient, Role::weight_gradient, Role::scattered_images,
                                Role::scattered_filters}[draws.index(5)];
  const auto channels = [&] {
    const std::int64_t unit = std::int64_t{1} << draws.index(7);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(draws.between(1, 600)) / unit) * unit;
  };
  const std::int64_t taps = std::array<std::int64_t, 5>{1, 4, 9, 25, 49}[draws.index(5)];
  const auto pixels = static_cast<std::int64_t>(draws.between(16, 100000));
  w.gathering.taps = taps;
  w.gathering.channels = channels();
  w.gathering.indexed = draws.index(4) == 0;
  switch (w.gathering.role) {
    case Role::input_gradient: w.gathering.phases = draws.index(2) == 0 ? 1 : 4; [[fallthrough]];
    case Role::forward:
      w.m = pixels, w.n = channels(), w.k = taps * w.gathering.channels;
      w.gathering.dense_taps = draws.index(4) == 0;
      break;
    case Role::weight_gradient: w.m = channels(), w.n = taps * w.gathering.channels, w.k = pixels; break;
    default:
      w.batch = static_cast<std::int64_t>(draws.between(1, 300));
      w.m = pixels, w.n = channels(), w.k = channels();
      w.gathering.scattered_rows = draws.share() * 30.0;
  }
  d.cold = draws.between(1e3, 1e9);
  d.hit = some(1e3, 1e9);
  d.written = draws.between(1e3, 1e9);
  return d;
}

TEST(StatedConvolutions, the_law_and_its_floor_are_what_their_equations_say) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 10000; ++i) {
    const ConvolutionDraw d = drawn_convolution(draws);
    const StatedConvolution s(d);
    const ConvolutionTime time = convolution_law(d.work, d.gpu, d.cold, d.hit, d.written, d.constants);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(time.tiles, s.tiles, 1e-9 * s.tiles) << which;
    ASSERT_NEAR(time.steps, s.steps, 1e-9 * s.steps) << which;
    ASSERT_NEAR(time.compute, s.compute, 1e-9 * s.compute) << which;
    ASSERT_NEAR(time.clocked, s.clocked, 1e-9 * s.clocked) << which;
    ASSERT_NEAR(time.memory, s.memory, 1e-9 * s.memory) << which;
    ASSERT_NEAR(time.fixed, s.fixed, 1e-9 * s.fixed) << which;
    ASSERT_NEAR(time.math, s.busy, 1e-9) << which;
    ASSERT_NEAR(time.floor.refetched, s.refetched, 1e-9 * s.refetched + 1e-6) << which;
    ASSERT_NEAR(time.floor.l2, s.floor_l2, 1e-9 * s.floor_l2) << which;
    ASSERT_NEAR(time.floor.dram, s.floor_dram, 1e-9 * s.floor_dram) << which;
    ASSERT_NEAR(time.floor.latency, s.floor_latency, 1e-9 * s.floor_latency) << which;
    ASSERT_NEAR(time.total, s.T, 1e-9 * s.T) << which;
  }
}

/// One launch: the law at what its accesses miss, figures beside the time by what they are called.
TEST(StatedConvolutions, a_launch_is_the_law_at_its_misses) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 3000; ++i) {
    ConvolutionDraw d = drawn_convolution(draws);
    KernelLaunch launch;
    launch.work = d.work;
    launch.threads_per_block = 32 * static_cast<int>(1 + draws.index(12));
    launch.pipe = Pipe::tensor_mma;
    const double a = draws.between(1e3, 1e9), b = draws.between(1e3, 1e9);
    launch.reads = {Access{.operand = 0, .bytes = a}, Access{.operand = 1, .bytes = b}};
    launch.writes = {Access{.operand = 2, .bytes = d.written}};
    const std::vector<double> hits{draws.share(), draws.share(), 0.5};
    d.cold = a * (1.0 - hits[0]) + b * (1.0 - hits[1]);
    d.hit = a + b - d.cold;
    const StatedConvolution s(d);
    const KernelTime time = convolution_time(launch, d.work, d.gpu, hits, d.constants);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(time.time.value(), s.T, 1e-8 * s.T) << which;
    ASSERT_NEAR(time.clocked.value(), s.clocked, 1e-8 * s.clocked) << which;
    ASSERT_NEAR(time.dram_read_bytes, d.cold + s.refetched, 1e-8 * time.dram_read_bytes) << which;
    ASSERT_EQ(time.dram_write_bytes, d.written) << which;
    ASSERT_NEAR(time.math_utilization, s.busy, 1e-8) << which;
    const double resident = d.work.blocks_per_sm, asked = s.tiles * s.steps * d.work.split_k * d.work.tile_k *
                                                          static_cast<double>(bytes_of(d.work.type)) *
                                                          (d.work.tile_m + d.work.tile_n);
    ASSERT_NEAR(time.l2_bytes, asked, 1e-9 * asked) << which;
    ASSERT_NEAR(time.l2_hit_rate, std::max(0.0, 1.0 - time.dram_read_bytes / asked), 1e-8) << which;
    ASSERT_NEAR(time.waves, s.tiles * d.work.split_k / (d.gpu.sm.count * resident), 1e-8 * time.waves) << which;
    ASSERT_NEAR(time.occupancy, std::min(1.0, resident * launch.threads_per_block / 32.0 / d.gpu.sm.max_warps), 1e-9)
        << which;
    // A floor that is the time limits; else the longer of start, memory and compute.
    const double law = s.fixed + fourth_norm(s.compute, s.memory),
                 floor = std::max({s.floor_l2, s.floor_dram, s.floor_latency});
    if (floor > law * (1.0 + 1e-9)) {
      const Limiter limits = floor == s.floor_l2     ? Limiter::l2
                             : floor == s.floor_dram ? Limiter::dram
                                                     : Limiter::latency;
      ASSERT_EQ(time.limiter, limits) << which;
    } else if (floor < law * (1.0 - 1e-9)) {
      if (s.fixed > std::max(s.compute, s.memory)) ASSERT_EQ(time.limiter, Limiter::latency) << which;
      else ASSERT_EQ(time.limiter == Limiter::dram, s.memory > s.compute) << which;
    }
  }
}

}  // namespace
}  // namespace ridgeline
