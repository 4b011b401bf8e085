// Kernels described by their code: passes of the resident blocks, against what the memory moves.
//
//   T = t0 + start + max(‖passes, memory‖_p, blocks / dispatch rate)                 one pass a block: the larger of
//   both pass of r blocks on an SM = ‖r·busy, latency‖_p     (in step: busy + latency alone, ‖r·busy, busy +
//   latency‖_p)
//
// busy is the slowest of issue, math and the port of shared memory and L1; latency that of the loads a warp waits for
// (Little's law: what is in flight over the latency bounds the bandwidth). A warp that waits for several lines of the
// DRAM waits for the slowest: kSlowestOfLines more for each doubling. start: parameters and code come through the L2
// one after the other; the first data after that, and from the DRAM their translation too.
#include <algorithm>
#include <cmath>

#include "sim/occupancy/occupancy.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/gemm_constants.h"

namespace ridgeline {
namespace {

/// How completely latency, pipes and memory overlap in loops, and reads and writes in the L2. Fitted on the bandwidth
/// by warps in flight and on streams that stay in the L2 of an H200.
constexpr double kOverlap = 2.6, kL2Overlap = 2.1;
/// Fitted on the same curve at one to four loads a warp.
constexpr double kSlowestOfLines = 0.105;
/// Bytes a clock that an SM sends to the L2.
constexpr double kStoredAClock = 64.0;
/// Latencies of the L2 before the first instruction that matters: parameters, code. Fitted on streams of 1 to 16 MB.
constexpr double kStartLatencies = 2.1;

double norm(double a, double b, double p) {
  const double most = std::max(a, b);
  return most > 0.0 ? most * std::pow(std::pow(a / most, p) + std::pow(b / most, p), 1.0 / p) : 0.0;
}

struct Traffic {
  double read = 0, written = 0;        ///< distinct bytes
  double missed = 0, written_out = 0;  ///< of them, from and to the DRAM
  double requested = 0;                ///< reads asked of the L2
};

Traffic traffic_of(const KernelLaunch& launch, Residency residency) {
  Traffic t;
  std::size_t i = 0;
  const auto miss = [&] { return 1.0 - (i < residency.size() ? residency[i] : 0.0); };
  for (const Access& access : launch.reads) {
    t.read += access.bytes;
    t.requested += std::max(access.bytes, access.requested);
    t.missed += access.bytes * miss();
    ++i;
  }
  for (const Access& access : launch.writes) {
    t.written += access.bytes;
    t.written_out += access.bytes * miss();
    ++i;
  }
  return t;
}

double math_rate(const KernelLaunch& launch, const Gpu& gpu) {
  if (launch.pipe == Pipe::tensor_mma)
    return gpu.sm.rates.tensor_fp16 * (gpu.sm.warpgroup_mma ? kMmaSyncShareOfWgmma : 1.0);
  return launch.pipe == Pipe::fp32 ? gpu.sm.rates.fp32 : 0.0;
}

}  // namespace

KernelTime code_time(const KernelLaunch& launch, const StreamWork& work, const Gpu& gpu, Residency residency) {
  const CodeConstants& code = code_constants(static_cast<CodeKernel>(work.kernel_class));
  const Occupancy occupancy = occupancy_of(gpu.sm, launch);
  const double blocks = launch.blocks(), sms = gpu.sm.count, passes = std::max(0.0, work.iterations);
  const double capacity = std::max(1, occupancy.blocks), warps = occupancy.warps_per_block;
  const Traffic traffic = traffic_of(launch, residency);
  const double clock = gpu.clock.sustained.value();
  const double block_passes = std::max(1.0, blocks * passes);

  // Cycles of one pass.
  const double issue = warps * code.instructions / (gpu.sm.schedulers * gpu.sm.issue_rate);
  const double rate = math_rate(launch, gpu);
  const double math = rate > 0.0 ? 0.5 * launch.flops / block_passes / rate : 0.0;
  const double fill =
      gpu.sm.l1_bandwidth.value() > 0.0 ? traffic.requested / block_passes / gpu.sm.l1_bandwidth.value() : 0.0;
  const double port = warps * code.port_clocks * 128.0 / std::max(1.0, gpu.sm.shared_bandwidth.value()) + fill;
  const double busy = std::max({issue, math, port});
  double latency = code.dependent_cycles;
  double l2_latency = 0.0;
  if (code.lines > 0) {
    const double asked = traffic.requested + work.reread_bytes;
    const double from_l1 = asked > 0.0 ? work.reread_bytes / asked : 0.0;
    const double missed = traffic.requested > 0.0 ? traffic.missed / traffic.requested : 1.0;
    const double dram = gpu.dram.latency.value() * clock * (1.0 + kSlowestOfLines * std::log2(code.lines));
    l2_latency = (1.0 - missed) * gpu.l2.latency.value() + missed * dram;
    latency += from_l1 * gpu.sm.l1_latency.value() + (1.0 - from_l1) * l2_latency;
  }
  const auto pass = [&](double resident) {
    if (resident <= 0.0) return 0.0;
    if (!code.in_step) return norm(resident * busy, latency, kOverlap);
    return resident <= 1.0 ? busy + latency : norm(resident * busy, busy + latency, kOverlap);
  };

  // Sets of resident blocks. Blocks of the last set go where a block has ended; those of one SM end nearly together, so
  // that half of the SMs' worth of blocks already puts two on one of them.
  const double sets = std::floor(blocks / (sms * capacity) + 1e-9), rest = blocks - sets * sms * capacity;
  double fullest = 0.0;
  if (rest > 0.5)
    fullest = sets < 1.0 ? std::ceil(rest / sms) : std::min(capacity, std::floor(2.0 * rest / sms + 1e-9) + 1.0);
  const double loops = (sets * pass(capacity) + pass(fullest)) * passes;
  const double stores = (sets * capacity + fullest) * traffic.written / blocks / kStoredAClock;
  const double cycles = passes > 1.0 ? loops + stores : std::max(loops, stores);
  const double activity = cycles > 0.0 ? std::clamp(math * block_passes / sms / cycles, 0.0, 1.0) : 0.0;
  const double hertz = kernel_clock(gpu, launch.pipe, activity).value();

  const double peak = gpu.dram.bandwidth.value();
  const double t_dram = traffic.missed / (peak * gpu.dram.read_efficiency) +
                        traffic.written_out / (peak * gpu.dram.write_efficiency) +
                        2.0 * gpu.dram.turnaround * std::min(traffic.missed, traffic.written_out) / peak;
  const double t_l2 = norm(std::max(0.0, traffic.requested - traffic.missed) / gpu.l2.read_bandwidth.value(),
                           (traffic.written - traffic.written_out) / gpu.l2.write_bandwidth.value(), kL2Overlap);
  const double t_mem = t_dram + t_l2;  // a stream comes to what stays in the L2 and to what does not in turn
  const double first = passes > 0.0 && passes <= 1.0 ? latency / hertz : 0.0;
  const double t_sm = std::max(0.0, cycles / hertz - first);
  const double dispatch = gpu.launch.blocks_per_second > 0.0 ? blocks / gpu.launch.blocks_per_second : 0.0;
  const double body = std::max(passes > 1.0 ? norm(t_sm, t_mem, kOverlap) : std::max(t_sm, t_mem), dispatch);
  double start = 0.0;
  if (passes > 0.0) {
    const double moved = traffic.read + traffic.written;
    const double cold = moved > 0.0 ? (traffic.missed + traffic.written_out) / moved : 0.0;
    start = kStartLatencies * gpu.l2.latency.value() / clock + first + cold * gpu.dram.latency.value();
  }

  KernelTime result;
  result.time = gpu.launch.kernel_fixed + Seconds{start + body};
  result.limiter = t_mem > t_sm ? (t_dram > t_l2 ? Limiter::dram : Limiter::l2)
                   : latency > busy * std::max(1.0, std::min(capacity, std::ceil(blocks / sms))) ? Limiter::latency
                   : port >= busy ? Limiter::shared_memory
                                  : Limiter::compute;
  if (t_sm <= 0.0 && t_mem <= dispatch) result.limiter = Limiter::latency;
  result.dram_read_bytes = traffic.missed;
  result.dram_write_bytes = traffic.written_out;
  result.l2_bytes = traffic.requested + traffic.written;
  result.l2_hit_rate = traffic.requested > 0.0 ? 1.0 - traffic.missed / traffic.requested : 0.0;
  result.occupancy = std::min(capacity, std::ceil(blocks / sms)) * warps / gpu.sm.max_warps;
  result.waves = blocks / (sms * capacity);
  result.math_utilization = activity;
  return result;
}

}  // namespace ridgeline
