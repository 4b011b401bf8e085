// The laws of memory-bound kernels and of copies against their equations as docs/model/memory-bound.md and
// docs/model/copies.md state them, written down one after the other, over random kernels, chips and constants.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/laws.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

struct StreamDraw {
  KernelLaunch launch;
  MemoryBoundWork work;
  MemoryBoundConstants code;
  Gpu gpu;
  std::vector<double> hits;
  bool vectors = false;  ///< a point-wise kernel with vectors
};

double fall(double x, double from_one, double to_none) {
  return std::clamp((to_none - x) / (to_none - from_one), 0.0, 1.0);
}

/// Members have the names of the page.
class StatedStream {
 public:
  explicit StatedStream(const StreamDraw& draw) : d(draw) {
    S = g.sm.count, f = g.clock.sustained.value(), C = g.l2.capacity.value();
    G = d.launch.blocks(), B = w.active_blocks > 0.0 ? w.active_blocks : G;
    occ = std::max(1, occupancy_of(g.sm, d.launch).blocks), b_sm = std::ceil(B / S);
    half = bytes_of(d.launch.type) == 2;
    traffic();
    waits();
    instructions();
    last_block();
    overlap();
    const double warps = std::ceil(d.launch.threads_per_block / 32.0);
    waves = B / (S * occ);
    occupancy = std::min(1.0, std::min(occ, b_sm) * warps / g.sm.max_warps);
  }
  double T = 0, clocked = 0, R = 0, W = 0, Lr = 0, Lw = 0, waves = 0, occupancy = 0;
  double latency_part = 0, t_issue = 0, t_l2 = 0, t_dram = 0, dispatch = 0;

 private:
  void traffic() {
    std::size_t place = 0;
    for (const Access& a : d.launch.reads) {
      const double h = d.hits.empty() ? 0.0 : d.hits[place++], q = std::max(a.bytes, a.requested);
      const double all = std::max(q, a.loaded), share = a.bytes * (1.0 - h) / all;
      first_reads += a.bytes * (1.0 - h);
      Lr += q;
      loaded += all;
      waited += all * (1.0 - std::pow(1.0 - share, 2.0));
    }
    for (const Access& a : d.launch.writes) {
      const double h = d.hits.empty() ? 0.0 : d.hits[place++];
      W += a.bytes * (1.0 - 0.32 * h);
      Lw += std::max(a.bytes, a.requested);
    }
    const double threads = d.launch.threads_per_block, registers = std::ceil(d.launch.registers_per_thread / 8.0) * 8.0;
    double a_sm = std::max(1.0, std::floor(std::min(2048.0 / threads, 65536.0 / (threads * registers))));
    double at_work = std::min(128.0 * a_sm, G);
    a_sm = std::min(a_sm, std::max(1.0, G / S));
    if (w.crowded_as_here) {  // on the chip itself
      at_work = std::min(G, S * std::min(occ, std::ceil(G / S)));
      a_sm = at_work / S;
    }
    const double x = w.reread_row_bytes;
    m1 = w.reread_through_l1 ? 1.0 - fall(a_sm * x / g.sm.l1_and_shared.value(), 0.4, 0.94) : 1.0;
    const double m2 = 1.0 - fall(at_work * x / C, g.l2.resident_full / 1.6, g.l2.resident_none / 1.3);
    R = first_reads + w.reread_bytes * m1 * m2;
    Lr += w.reread_bytes * m1;
    const DramSpec& dram = g.dram;
    t_dram = (R / dram.read_efficiency + W / dram.write_efficiency + 2.0 * dram.turnaround * std::min(R, W)) /
             (dram.bandwidth.value() * k.dram_efficiency);
    t_l2 = Lr / (0.845 * g.l2.read_bandwidth.value()) + Lw / (1.112 * g.l2.write_bandwidth.value());
  }

  void waits() {
    c = g.l2.latency.value() / 281.6 / f, c_m = g.dram.latency.value() / 332.9e-9 / 1.98e9;
    const double m = loaded > 0.0 ? waited / loaded : 1.0, X = w.reread_bytes;
    const double s = 1.0 - k.spread * (1.0 - std::log2(std::min(G, S)) / std::log2(S));
    double pass = half ? k.pass_half : k.pass_full;
    // Rows that are read one value at a time: sweeps that find them in the L1 wait for that and not for the L2.
    if (w.crowded_as_here && std::fmod(w.reread_row_bytes, 16.0) != 0.0 && X > 0.0)
      pass -= X / std::max(1.0, loaded) * (1.0 - m1) *
              std::max(0.0, 281.6 - g.sm.l1_latency.value() * 281.6 / g.l2.latency.value());
    const auto cycles = [&](double n) { return (k.block_cycles + pass * n) * s * c; };
    const auto L = [&](double n) {
      return cycles(n) + k.first_miss_cycles * c_m * m + k.miss_cycles * c_m * m * (k.miss_each_pass != 0.0 ? n : 1.0);
    };
    const double n = w.iterations, one = std::min(1.0, n), turns = std::max(1.0, std::ceil(b_sm / occ));
    L1 = L(one);
    t_chain = std::max(0.0, turns * L(n) - L1);
    clocked_first = cycles(one);
    clocked_chain = turns * cycles(n) - clocked_first;
  }

  void instructions() {
    double lanes = 32.0 * g.sm.schedulers * g.sm.issue_rate;
    if (g.sm.rates.fp32 > 0.0) lanes = std::min(lanes, g.sm.rates.fp32 / 0.6);
    if (g.sm.rates.int32 > 0.0) lanes = std::min(lanes, g.sm.rates.int32 / 0.4);
    const double warps = std::ceil(d.launch.threads_per_block / 32.0);
    const double t_lane = ((half ? k.instructions_half : k.instructions_full) * w.elements +
                           (half ? k.padded_half : k.padded_full) * w.padded_elements) /
                          (lanes * S * f);
    const double t_warp = k.warp_instructions * G * warps / (g.sm.schedulers * g.sm.issue_rate * S * f);
    t_issue = b_sm <= 64.0 ? t_lane * b_sm * S / B + t_warp * std::ceil(G / S) * S / G : t_lane + t_warp;
  }

  void last_block() {
    const double u = w.tail_steps;
    const double evicted = 1.0 - fall((first_reads + Lw) / C, g.l2.resident_full, g.l2.resident_none);
    tail_cycles = u > 0.0 ? k.exchange_cycles * c + u * k.tail_cycles * c : 0.0;
    tail = tail_cycles + u * k.tail_miss_cycles * c_m * evicted;
    if (d.vectors && b_sm <= occ) {
      t_chain += 0.75 * tail;
      tail *= 0.25;
    }
  }

  void overlap() {
    const double p = k.overlap_of_few + 0.5 * std::log2(std::max(1.0, std::min(B / 128.0, occ)));
    const double most = std::max({t_dram, t_l2, t_issue, t_chain});
    double sum = 0.0;
    for (const double t : {std::max(t_dram, t_l2), t_issue, t_chain})
      sum += t > 0.02 * most ? std::pow(t / most, p) : 0.0;
    dispatch = G / g.launch.blocks_per_second;
    latency_part = g.launch.kernel_fixed.value() + L1 + tail + t_chain;
    T = g.launch.kernel_fixed.value() + L1 + tail + std::max(most * std::pow(sum, 1.0 / p), dispatch);
    clocked = clocked_first + tail_cycles + std::max(t_issue, clocked_chain);
  }

  const StreamDraw& d;
  const Gpu& g = d.gpu;
  const MemoryBoundWork& w = d.work;
  const MemoryBoundConstants& k = d.code;
  double S, f, C, G, B, occ, b_sm;
  bool half;
  double first_reads = 0, loaded = 0, waited = 0, m1 = 1, c = 0, c_m = 0;
  double L1 = 0, t_chain = 0, clocked_first = 0, clocked_chain = 0, tail = 0, tail_cycles = 0;
};

Gpu chip_for_streams(Draws& draws) {
  static const std::array<Gpu, 3> kChips{load_gpu("nvidia-h200-sxm-141gb"), load_gpu("nvidia-v100-sxm2-16gb"),
                                         load_gpu("nvidia-rtx-3090")};
  Gpu g = kChips[draws.index(3)];
  g.sm.count = static_cast<int>(draws.between(2, 300));
  g.sm.issue_rate = draws.between(0.5, 2.0);
  if (draws.index(5) == 0) g.sm.rates.int32 = 0.0;
  if (draws.index(5) == 0) g.sm.rates.fp32 = 1e6;
  g.l2.capacity = g.l2.capacity * draws.between(0.01, 2.0);
  g.l2.latency = g.l2.latency * draws.between(0.5, 3.0);
  g.l2.read_bandwidth = g.l2.read_bandwidth * draws.between(0.3, 3.0);
  g.l2.write_bandwidth = g.l2.write_bandwidth * draws.between(0.3, 3.0);
  g.dram.latency = g.dram.latency * draws.between(0.5, 3.0);
  g.dram.bandwidth = g.dram.bandwidth * draws.between(0.3, 3.0);
  g.dram.turnaround = draws.share() * 0.3;
  g.clock.sustained = g.clock.sustained * draws.between(0.5, 2.0);
  g.launch.blocks_per_second *= draws.between(0.01, 3.0);
  return g;
}

StreamDraw drawn_stream(Draws& draws) {
  StreamDraw d;
  d.gpu = chip_for_streams(draws);
  const auto some = [&](double low, double high) { return draws.index(3) == 0 ? 0.0 : draws.between(low, high); };
  MemoryBoundConstants& k = d.code;
  k.block_cycles = draws.between(100, 5000);
  k.pass_half = draws.between(300, 3000);
  k.pass_full = draws.between(300, 3000);
  k.miss_cycles = some(50, 2000);
  k.miss_each_pass = static_cast<double>(draws.index(2));
  k.first_miss_cycles = some(50, 2000);
  k.instructions_half = draws.between(0.1, 50);
  k.instructions_full = draws.between(0.1, 50);
  k.padded_half = some(0.1, 20);
  k.padded_full = some(0.1, 20);
  k.warp_instructions = some(1, 300);
  k.exchange_cycles = some(100, 3000);
  k.tail_cycles = some(10, 1000);
  k.tail_miss_cycles = some(10, 1000);
  k.dram_efficiency = draws.between(0.6, 1.0);
  k.spread = draws.share();
  k.overlap_of_few = draws.between(1.2, 3.0);

  constexpr std::array kVectors{MemoryBoundKernel::add, MemoryBoundKernel::gelu, MemoryBoundKernel::cast_down,
                                MemoryBoundKernel::dropout_backward};
  constexpr std::array kOthers{MemoryBoundKernel::fill, MemoryBoundKernel::masked_fill,
                               MemoryBoundKernel::unrolled_cast, MemoryBoundKernel::reduce_rows};
  d.vectors = draws.index(2) == 0;
  d.work.kernel_class = static_cast<int>(d.vectors ? kVectors[draws.index(4)] : kOthers[draws.index(4)]);

  KernelLaunch& l = d.launch;
  l.type = draws.index(2) == 0 ? DType::bf16 : DType::fp32;
  l.threads_per_block = 32 << draws.index(6);
  l.registers_per_thread = static_cast<int>(draws.between(16, 64));
  l.grid = {static_cast<std::int64_t>(draws.between(1, 60000)), static_cast<std::int64_t>(1 + draws.index(3)), 1};
  l.flops = draws.between(1, 1e9);
  const auto access = [&](bool read) {
    Access a;
    a.bytes = draws.between(1e3, 1e9);
    if (draws.index(3) == 0) a.requested = a.bytes * draws.between(1.0, 8.0);
    if (read && draws.index(3) == 0) a.loaded = std::max(a.bytes, a.requested) * draws.between(1.0, 8.0);
    return a;
  };
  for (std::size_t i = draws.index(3) + 1; i > 0; --i) l.reads.push_back(access(true));
  for (std::size_t i = draws.index(3); i > 0; --i) l.writes.push_back(access(false));
  if (draws.index(3) != 0)
    for (std::size_t i = 0; i < l.reads.size() + l.writes.size(); ++i) d.hits.push_back(draws.share());
  MemoryBoundWork& w = d.work;
  w.elements = draws.between(1e2, 1e9);
  w.padded_elements = some(1e2, 1e9);
  if (draws.index(3) == 0) w.active_blocks = std::ceil(l.blocks() * draws.share());
  w.iterations = draws.index(4) == 0 ? draws.share() : draws.between(1, 200);
  w.tail_steps = draws.index(2) == 0 ? 0.0 : draws.between(1, 50);
  if (draws.index(2) == 0) {
    w.reread_bytes = l.read_bytes() * draws.between(1e-3, 1.0);  // no more than a sweep over what was read
    w.reread_row_bytes =
        draws.index(2) == 0 ? 16.0 * std::ceil(draws.between(1, 20000)) : std::ceil(draws.between(2, 3e5));
    w.reread_through_l1 = draws.index(3) != 0;
    w.crowded_as_here = draws.index(2) == 0;
  }
  l.work = w;
  return d;
}

TEST(StatedStreams, the_law_is_what_its_equations_say) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 20000; ++i) {
    const StreamDraw d = drawn_stream(draws);
    const StatedStream stated(d);
    const KernelTime time = memory_bound_time(d.launch, d.work, d.gpu, d.hits, d.code);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i);
    ASSERT_NEAR(time.time.value(), stated.T, 1e-9 * stated.T) << which;
    ASSERT_NEAR(time.clocked.value(), stated.clocked, 1e-9 * stated.clocked) << which;
    ASSERT_NEAR(time.dram_read_bytes, stated.R, 1e-9 * stated.R) << which;
    ASSERT_NEAR(time.dram_write_bytes, stated.W, 1e-9 * stated.W) << which;
    ASSERT_NEAR(time.l2_bytes, stated.Lr + stated.Lw, 1e-9 * time.l2_bytes) << which;
    ASSERT_NEAR(time.l2_hit_rate, std::max(0.0, 1.0 - stated.R / stated.Lr), 1e-9) << which;
    ASSERT_NEAR(time.waves, stated.waves, 1e-9 * stated.waves) << which;
    ASSERT_NEAR(time.occupancy, stated.occupancy, 1e-9) << which;
    const double peak = 2.0 * d.gpu.sm.rates.fp32 * d.gpu.sm.count * d.gpu.clock.sustained.value();
    ASSERT_NEAR(time.math_utilization, d.launch.flops / peak / stated.T, 1e-9 * time.math_utilization) << which;
    // The longest part limits.
    const double most = std::max({stated.latency_part, stated.t_issue, stated.t_l2, stated.t_dram, stated.dispatch});
    if (time.limiter == Limiter::compute) ASSERT_GE(stated.t_issue, most * (1.0 - 1e-9)) << which;
    else if (time.limiter == Limiter::l2) ASSERT_GE(stated.t_l2, most * (1.0 - 1e-9)) << which;
    else if (time.limiter == Limiter::dram) ASSERT_GE(stated.t_dram, most * (1.0 - 1e-9)) << which;
    else ASSERT_GE(std::max(stated.latency_part, stated.dispatch), most * (1.0 - 1e-9)) << which;
  }
}

TEST(StatedCopies, copies_memsets_and_changes_of_layout_are_what_their_equations_say) {
  using What = FixedWork::What;
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 2000; ++i) {
    Gpu g = chip_for_streams(draws);
    g.host_link.bandwidth = BytesPerSecond{draws.between(1e9, 1e13)};
    if (draws.index(6) == 0) g.host_link.bandwidth = BytesPerSecond{};
    g.launch.memset = Seconds{draws.between(1e-7, 1e-5)};
    FixedWork w;
    w.what = static_cast<What>(draws.index(static_cast<std::size_t>(What::collective) + 1));
    w.bytes = draws.between(1.0, 1e10);
    w.blocks = draws.between(1.0, 1e6);
    KernelLaunch launch;
    constexpr std::array kTypes{DType::boolean, DType::bf16, DType::fp32, DType::int64};
    launch.type = kTypes[draws.index(4)];
    const double z = w.bytes, M = g.launch.memset.value(), D = g.dram.bandwidth.value();
    const double D_r = 0.9745 * D * g.dram.read_efficiency, D_w = D * g.dram.write_efficiency;
    const double link = g.host_link.bandwidth.value();
    // Over the host's link, or what a thread of the host copies of memory that is not pinned.
    const auto over_link = [&](double most, double memory) {
      const double rate = link > 0.0 ? std::min(link, most) : most;
      return 2.0 * M + z / std::min(std::isinf(rate) ? memory : rate, memory);
    };
    double T = 0.0, read = 0.0, written = 0.0, clocked = 0.0, started = M;
    switch (w.what) {
      case What::memset: T = M + z / D_w, written = z; break;
      case What::memcpy_device:
      case What::collective: T = M + z / D_r + z / D_w, read = written = z; break;
      case What::memcpy_host_to_device: T = over_link(INFINITY, D_w), written = z, started = 2 * M; break;
      case What::memcpy_device_to_host: T = over_link(INFINITY, D_r), read = z, started = 2 * M; break;
      case What::memcpy_pageable_to_device: T = over_link(7.0e9, D_w), written = z, started = 2 * M; break;
      case What::memcpy_device_to_pageable: T = over_link(2.8e9, D_r), read = z, started = 2 * M; break;
      case What::helper:
        started = std::max(M, g.launch.kernel_fixed.value());
        T = started + z / D_r, read = z;
        break;
      case What::layout_change:
        started = 2 * M;
        clocked = 395.0 * w.blocks / (g.sm.count * g.clock.sustained.value());
        T = 2 * M +
            std::pow(std::pow(clocked, 4) + std::pow(z / ((bytes_of(launch.type) > 2 ? 0.86 : 0.67) * D), 4), 0.25);
        read = written = 0.5 * z;
        break;
    }
    const KernelTime time = fixed_time(launch, w, g, {});
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i) +
                              " of kind " + std::to_string(static_cast<int>(w.what));
    ASSERT_NEAR(time.time.value(), T, 1e-9 * T) << which;
    ASSERT_NEAR(time.clocked.value(), clocked, 1e-9 * clocked) << which;
    ASSERT_EQ(time.dram_read_bytes, read) << which;
    ASSERT_EQ(time.dram_write_bytes, written) << which;
    ASSERT_EQ(time.l2_bytes, z) << which;
    ASSERT_EQ(time.limiter, T > 2.0 * started ? Limiter::dram : Limiter::latency) << which;
  }
}

}  // namespace
}  // namespace ridgeline
