// The law of kernels described by their code against its equations as docs/model/code-kernels.md states them, written
// down one after the other, over random launches and chips and the rows of all kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/occupancy/occupancy.h"
#include "sim/timing/code_kernels.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

using testing_support::Draws;

struct CodeDraw {
  KernelLaunch launch;
  MemoryBoundWork work;
  Gpu gpu;
  std::vector<double> hits;
};

double norm_of(double a, double b, double p) { return std::pow(std::pow(a, p) + std::pow(b, p), 1.0 / p); }
double share_below(double x) { return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))); }

/// Blocks of the fullest SM, a mean of launches: "The fullest SM" of the page.
double stated_fullest(double G, double S, double R) {
  const double k = std::max(0.0, std::ceil(G / (S * R) - 1e-9) - 1.0), V = G - k * S * R, u = 0.55;
  if (k == 0.0 || R == 1.0) return std::ceil(G / S - 1e-9);
  double F = 1.0;
  for (double j = 1; j <= R - 1.0; ++j)
    F += share_below((V - j * S * (1.0 - std::pow(u, (R - 1.0) * (2.0 * k - 1.0)))) / (0.06 * S));
  F = std::clamp(F, std::ceil(V / S - 1e-9), R);
  const double h = std::min(k, 2.0) * std::pow(u, 2.0 * (R - 2.0));
  return k * R + F + share_below((V - R * S - 1.0 + 0.042 * S * h) / (0.036 * S * h));
}

/// Members have the names of the page.
class StatedCode {
 public:
  explicit StatedCode(const CodeDraw& draw) : d(draw) {
    G = d.launch.blocks(), S = g.sm.count, n = d.work.iterations, all = std::max(1.0, G * n);
    R = std::max(1, occupancy_of(g.sm, d.launch).blocks), w = std::ceil(d.launch.threads_per_block / 32.0);
    fs = g.clock.sustained.value();
    traffic();
    arithmetic();
    latency = latency_of_a_pass();
    time();
    waves = G / (S * R);
    occupancy = std::min(1.0, std::min(R, std::ceil(G / S)) * w / g.sm.max_warps);
  }
  double T = 0, clocked = 0, Rm = 0, Wm = 0, Q = 0, written = 0, waves = 0, occupancy = 0, activity = 0;
  Limiter limiter = Limiter::latency;

 private:
  void traffic() {
    double again = 0.0;
    std::size_t place = 0;
    const auto missed = [&] { return d.hits.empty() ? 1.0 : 1.0 - d.hits[place++]; };
    for (const Access& read : d.launch.reads) {
      const double q = std::max(read.bytes, read.requested);
      B += read.bytes, Q += q, first_missed += read.bytes * missed();
      if (code.apart) again += (q - read.bytes) * std::max(0.0, 1.0 - g.l2.capacity.value() / read.bytes);
    }
    Rm = first_missed + again;
    for (const Access& write : d.launch.writes) {
      const double bytes = std::max(write.bytes, write.requested);
      written += bytes, Wm += bytes * missed();
    }
  }

  void arithmetic() {
    const MathRates& rates = g.sm.rates;
    double rate = 0.0;
    if (d.launch.pipe == Pipe::fp32) rate = rates.fp32;
    if (tensor) {
      const double peak = d.launch.type == DType::bf16   ? rates.tensor_bf16
                          : d.launch.type == DType::tf32 ? rates.tensor_tf32
                                                         : rates.tensor_fp16;
      rate = peak;
      if (d.launch.pipe == Pipe::tensor_mma)
        rate = std::min(peak, g.sm.schedulers * 4096.0 / static_cast<double>(bytes_of(d.launch.type)) / 6.154);
      of_peak = rate / peak;
    }
    math = rate > 0.0 ? d.launch.flops / (2.0 * all * rate) : 0.0;
    fill = Q / all / g.sm.l1_bandwidth.value();
    port = w * code.port_clocks * 128.0 / g.sm.shared_bandwidth.value() + (staged ? 0.0 : fill);
    busy = std::max({w * code.instructions / (g.sm.schedulers * g.sm.issue_rate), math, port});
  }

  [[nodiscard]] double latency_of_a_pass() const {
    const double own = code.dependent_cycles + code.shared_waits * g.sm.shared_latency.value() + (staged ? fill : 0.0);
    if (code.lines == 0) return own;
    const double loads = Q + d.work.reread_bytes, v = loads > 0.0 ? d.work.reread_bytes / loads : 0.0,
                 m = Q > 0.0 ? Rm / Q : 1.0;
    const double dram =
        std::max(g.l2.latency.value(), fs * g.dram.latency.value()) * (1.0 + 0.105 * std::log2(code.lines));
    return own + v * g.sm.l1_latency.value() + (1.0 - v) * ((1.0 - m) * g.l2.latency.value() + m * dram);
  }

  /// Cycles of a pass of `r` blocks on an SM.
  [[nodiscard]] double pass(double r) const {
    if (r <= 0.0) return 0.0;
    const double a = d.work.elements, wait = latency / std::max(1.0, a);
    if (code.order == Order::loose || (staged && a > 0.0)) return norm_of(r * busy, wait, 2.6);
    return r <= 1.0 ? busy + wait : norm_of(r * busy, busy + wait, 2.6);
  }

  void time() {
    const double F = stated_fullest(G, S, R), sets = std::floor(F / R + 1e-9), rest = F - sets * R,
                 down = std::floor(rest + 1e-9);
    const double loops = n * (sets * pass(R) + pass(down) + (rest - down) * (pass(down + 1.0) - pass(down)));
    const double stores = F * written / (64.0 * G);
    const double cycles = n > 1.0 ? loops + stores : std::max(loops, stores);
    double f = fs;
    activity = cycles > 0.0 ? std::min(1.0, math * all / S / cycles) : 0.0;
    if (tensor) f = g.clock.tensor.value() - g.clock.tensor_droop.value() * of_peak * activity;

    const double D = g.dram.bandwidth.value();
    const double dram = Rm / (D * g.dram.read_efficiency) + Wm / (D * g.dram.write_efficiency) +
                        2.0 * g.dram.turnaround * std::min(7.0 * Rm, Wm) / D;
    const double l2 = norm_of(std::max(0.0, B - first_missed) / g.l2.read_bandwidth.value(),
                              (written - Wm) / g.l2.write_bandwidth.value(), 2.1),
                 memory = dram + l2;
    const double c = 1.0 / (1.0 + B / (0.64 * g.l2.capacity.value()));
    const double repeated =
        (Q - B) * (c / g.l2.shared_read_bandwidth.value() + (1.0 - c) / g.l2.read_bandwidth.value());
    const double once = n > 0.0 && n <= 1.0 ? latency / f : 0.0, passes = std::max(0.0, cycles / f - once);
    double body = n > 1.0 ? norm_of(passes, memory, staged ? 4.0 : 2.6) : std::max(passes, memory);
    body = std::max(body, norm_of(repeated, memory, 4.0));
    if (code.kernel == CodeKernel::atomic_add) body = std::max({passes, dram, additions()});
    const double dispatch = G / g.launch.blocks_per_second;
    body = std::max(body, dispatch);
    // The memory, or what an SM waits for or is busy with.
    if (memory > passes) limiter = dram > l2 ? Limiter::dram : Limiter::l2;
    else if (latency <= busy * std::max(1.0, std::min(R, std::ceil(G / S))))
      limiter = port >= busy ? Limiter::shared_memory : Limiter::compute;
    if (passes <= 0.0 && memory <= dispatch) limiter = Limiter::latency;
    const double begins = 2.1 * g.l2.latency.value() / fs + once;
    const double cold = B + written > 0.0 ? (first_missed + Wm) / (B + written) : 0.0;
    const double start = n > 0.0 ? begins + cold * g.dram.latency.value() : 0.0;
    T = g.launch.kernel_fixed.value() + start + body;
    clocked = (n > 0.0 ? begins : 0.0) + passes;
  }

  /// T_add.
  [[nodiscard]] double additions() const {
    const double lanes = std::clamp(d.work.tail_steps, 1.0, 32.0), lines = std::max(1.0, written / 128.0);
    return 32.0 * w * all /
           std::min(g.l2.atomic_address_rate * std::pow(32.0 / lanes, 0.65) * std::sqrt(lines),
                    g.l2.atomic_rate * std::pow(lanes, -0.65));
  }

  const CodeDraw& d;
  const Gpu& g = d.gpu;
  const CodeConstants& code = code_constants(static_cast<CodeKernel>(d.work.kernel_class));
  const bool staged = code.order == Order::staged,
             tensor = d.launch.pipe == Pipe::tensor_wgmma || d.launch.pipe == Pipe::tensor_mma;
  double G, S, n, all, R, w, fs;
  double B = 0, first_missed = 0, of_peak = 1, math = 0, fill = 0, busy = 0, port = 0, latency = 0;
};

CodeDraw drawn_code(Draws& draws) {
  static const std::array<Gpu, 2> kChips{load_gpu("nvidia-h200-sxm-141gb"), load_gpu("nvidia-h100-sxm5-80gb")};
  CodeDraw d;
  Gpu& g = d.gpu = kChips[draws.index(2)];
  g.sm.count = static_cast<int>(draws.between(2, 300));
  g.sm.issue_rate = draws.between(0.5, 2.0);
  g.sm.shared_bandwidth = g.sm.shared_bandwidth * draws.between(0.3, 3.0);
  g.sm.l1_bandwidth = g.sm.l1_bandwidth * draws.between(0.3, 3.0);
  g.sm.l1_latency = g.sm.l1_latency * draws.between(0.3, 3.0);
  g.sm.shared_latency = g.sm.shared_latency * draws.between(0.3, 3.0);
  g.clock.tensor_droop = g.clock.tensor * draws.between(0.05, 0.4);
  g.l2.capacity = g.l2.capacity * draws.between(1e-2, 3.0);
  g.l2.read_bandwidth = g.l2.read_bandwidth * draws.between(0.1, 3.0);
  g.l2.shared_read_bandwidth = g.l2.read_bandwidth * draws.between(0.8, 2.0);
  g.l2.write_bandwidth = g.l2.write_bandwidth * draws.between(0.1, 3.0);
  g.l2.latency = g.l2.latency * draws.between(0.3, 3.0);
  g.l2.atomic_rate = draws.between(1e10, 1e13);
  g.l2.atomic_address_rate = draws.between(1e8, 1e11);
  g.dram.bandwidth = g.dram.bandwidth * draws.between(0.1, 3.0);
  g.dram.latency = g.dram.latency * draws.between(0.3, 3.0);
  g.dram.turnaround = 0.3 * draws.share();
  g.launch.blocks_per_second *= draws.between(0.01, 3.0);
  KernelLaunch& l = d.launch;
  l.grid = {static_cast<std::int64_t>(draws.between(1, 6000)), 1, 1};
  l.threads_per_block = 32 * static_cast<int>(1 + draws.index(32));
  l.pipe = std::array{Pipe::none, Pipe::fp32, Pipe::tensor_mma, Pipe::tensor_wgmma}[draws.index(4)];
  l.type = std::array{DType::fp16, DType::bf16, DType::tf32}[draws.index(3)];
  l.flops = draws.between(1, 1e12);
  const auto access = [&] {
    Access a;
    a.bytes = draws.between(1e3, 1e9);
    if (draws.index(2) == 0) a.requested = a.bytes * draws.between(1.0, 50.0);
    return a;
  };
  for (std::size_t i = draws.index(3); i > 0; --i) l.reads.push_back(access());
  for (std::size_t i = draws.index(3); i > 0; --i) l.writes.push_back(access());
  if (draws.index(3) != 0)
    for (std::size_t i = 0; i < l.reads.size() + l.writes.size(); ++i) d.hits.push_back(draws.share());
  MemoryBoundWork& w = d.work;
  const int kinds = static_cast<int>(CodeKernel::end) - static_cast<int>(CodeKernel::empty);
  w.kernel_class = static_cast<int>(CodeKernel::empty) + static_cast<int>(draws.index(static_cast<std::size_t>(kinds)));
  w.iterations = draws.index(5) == 0 ? 1.0 : draws.index(8) == 0 ? 0.0 : std::ceil(draws.between(2, 5000));
  w.elements = draws.index(2) == 0 ? 0.0 : std::ceil(draws.between(1, 8));
  w.reread_bytes = draws.index(2) == 0 ? 0.0 : draws.between(1e3, 1e9);
  w.tail_steps = draws.between(0.5, 40);
  l.work = w;
  return d;
}

TEST(StatedCode, the_law_is_what_its_equations_say) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  for (int i = 0; i < 10000; ++i) {
    const CodeDraw d = drawn_code(draws);
    const StatedCode s(d);
    const KernelTime time = code_time(d.launch, d.work, d.gpu, d.hits);
    const std::string which = "RIDGELINE_TEST_SEED=" + std::to_string(seed) + ", draw " + std::to_string(i) + ": " +
                              std::string(code_constants(static_cast<CodeKernel>(d.work.kernel_class)).name);
    ASSERT_NEAR(time.time.value(), s.T, 1e-9 * s.T) << which;
    ASSERT_NEAR(time.clocked.value(), s.clocked, 1e-9 * s.clocked) << which;
    ASSERT_NEAR(time.dram_read_bytes, s.Rm, 1e-9 * s.Rm) << which;
    ASSERT_NEAR(time.dram_write_bytes, s.Wm, 1e-9 * s.Wm) << which;
    ASSERT_NEAR(time.l2_bytes, s.Q + s.written, 1e-9 * time.l2_bytes) << which;
    ASSERT_NEAR(time.l2_hit_rate, s.Q > 0.0 ? 1.0 - s.Rm / s.Q : 0.0, 1e-9) << which;
    ASSERT_NEAR(time.waves, s.waves, 1e-9 * s.waves) << which;
    ASSERT_NEAR(time.occupancy, s.occupancy, 1e-9) << which;
    ASSERT_NEAR(time.math_utilization, s.activity, 1e-9) << which;
    ASSERT_EQ(time.limiter, s.limiter) << which;
  }
}

}  // namespace
}  // namespace ridgeline
