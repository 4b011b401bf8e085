// Kernels described by their code: passes of the resident blocks, against what the memory moves.
//
//   T = t0 + start + max(‖passes, memory‖_p, ‖repeated, memory‖_4, blocks / dispatch rate)
//       one pass a block: max(passes, memory) instead of ‖passes, memory‖_p; staged: p = 4
//   pass of r blocks on an SM = ‖r·busy, wait‖_p     in step: busy + wait alone, else ‖r·busy, busy + wait‖_p
//
// wait is the latency, shared by the passes whose loads fly together. repeated: reads beyond each byte's first, which
// the L2 answers from the copy in the nearer partition as far as copies have room.
// busy is the slowest of issue, math and the port of shared memory and L1; latency that of the loads a warp waits for
// (Little's law: what is in flight over the latency bounds the bandwidth). A warp that waits for several lines of the
// DRAM waits for the slowest: kSlowestOfLines more for each doubling. start: parameters and code come through the L2
// one after the other; the first data after that, and from the DRAM their translation too.
#include <algorithm>
#include <cmath>

#include "sim/occupancy/occupancy.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/fullest_sm.h"
#include "sim/timing/math_rate.h"

namespace ridgeline {
namespace {

/// How completely latency, pipes and memory overlap in loops, and reads and writes in the L2. Fitted on the bandwidth
/// by warps in flight and on streams that stay in the L2 of an H200.
constexpr double kOverlap = 2.6, kL2Overlap = 2.1;
/// Fitted on the same curve at one to four loads a warp.
constexpr double kSlowestOfLines = 0.105;
/// Of passes with a DRAM that has been asked ahead, and of repeated reads with it: queues that never run empty. Fitted
/// on copies with two to four stages of an H200.
constexpr double kAheadOverlap = 4.0;
/// Bytes a clock that an SM sends to the L2.
constexpr double kStoredAClock = 64.0;
/// A footprint this share of the L2 leaves half of its lines with a copy in either partition. Fitted on reads of 0.5 to
/// 32 MB by all blocks of an H200.
constexpr double kCopiesHalf = 0.64;
/// Writes turn the DRAM around as often as there are writes while reads come between, at least as many as this many
/// writes for one read. Streams of 7 reads for a write to 7 writes for a read lose in proportion to the writes.
constexpr double kWritesForARead = 7.0;
/// A warp's atomic request takes the longer, the more of its lanes meet on an address, in this power of their number.
/// From all 32 on one address against 32 beside each other in one line, on an H200.
constexpr double kLanesMeet = 0.65;
/// Latencies of the L2 before the first instruction that matters: parameters, code. Fitted on streams of 1 to 16 MB.
constexpr double kStartLatencies = 2.1;

double norm(double a, double b, double p) {
  const double most = std::max(a, b);
  return most > 0.0 ? most * std::pow(std::pow(a / most, p) + std::pow(b / most, p), 1.0 / p) : 0.0;
}

struct CodeTraffic {
  double read = 0, written = 0;        ///< bytes: read ones once, written ones as often as they are
  double missed = 0, written_out = 0;  ///< from and to the DRAM
  double requested = 0;                ///< reads asked of the L2
  double repeated_missed = 0;          ///< of `missed`, reads of bytes that the kernel had read before
};

/// Blocks that go `apart` through the same data find of it what any of them left: a share of the L2's size.
CodeTraffic traffic_of(const KernelLaunch& launch, Residency residency, const L2Spec& l2, bool apart) {
  CodeTraffic t;
  std::size_t i = 0;
  const auto miss = [&] { return 1.0 - (i < residency.size() ? residency[i] : 0.0); };
  for (const Access& access : launch.reads) {
    const double requested = std::max(access.bytes, access.requested);
    t.read += access.bytes;
    t.requested += requested;
    t.missed += access.bytes * miss();
    if (apart)
      t.repeated_missed += (requested - access.bytes) * std::max(0.0, 1.0 - l2.capacity.value() / access.bytes);
    ++i;
  }
  t.missed += t.repeated_missed;
  for (const Access& access : launch.writes) {
    const double written = std::max(access.bytes, access.requested);
    t.written += written;
    t.written_out += written * miss();
    ++i;
  }
  return t;
}

/// Seconds of reads beyond each byte's first. Every partition of the L2 keeps a copy of what its SMs ask for, as far as
/// there is room; where there is none the lines come from the other.
double repeated_time(const CodeTraffic& t, const L2Spec& l2) {
  const double far = l2.read_bandwidth.value();
  const double near = l2.shared_read_bandwidth.value() > 0.0 ? l2.shared_read_bandwidth.value() : far;
  const double copied = 1.0 / (1.0 + t.read / (kCopiesHalf * l2.capacity.value()));
  return std::max(0.0, t.requested - t.read) * (copied / near + (1.0 - copied) / far);
}

/// Seconds of atomic additions: warps' requests go to lines, and a line's requests follow one another the longer, the
/// more of a warp's lanes meet on an address. Requests to many lines get in each other's way: as the square root of
/// their number, up to what the whole L2 does.
double atomic_time(double additions, double lines, double together, const L2Spec& l2) {
  if (l2.atomic_rate <= 0.0 || l2.atomic_address_rate <= 0.0) return 0.0;
  const double of_line = l2.atomic_address_rate * std::pow(32.0 / std::clamp(together, 1.0, 32.0), kLanesMeet);
  const double of_lines = of_line * std::sqrt(std::max(1.0, lines));
  const double of_all = l2.atomic_rate * std::pow(std::clamp(together, 1.0, 32.0), -kLanesMeet);
  return additions / std::min(of_lines, of_all);
}

/// Cycles that a pass waits for the lines it asks for.
double line_latency(const CodeConstants& code, const MemoryBoundWork& work, const CodeTraffic& traffic,
                    const Gpu& gpu) {
  const double asked = traffic.requested + work.reread_bytes;
  const double from_l1 = asked > 0.0 ? work.reread_bytes / asked : 0.0;
  const double missed = traffic.requested > 0.0 ? traffic.missed / traffic.requested : 1.0;
  // A request to the DRAM has passed through the L2.
  const double dram = std::max(gpu.l2.latency.value(), gpu.dram.latency.value() * gpu.clock.sustained.value()) *
                      (1.0 + kSlowestOfLines * std::log2(code.lines));
  const double l2_latency = (1.0 - missed) * gpu.l2.latency.value() + missed * dram;
  return from_l1 * gpu.sm.l1_latency.value() + (1.0 - from_l1) * l2_latency;
}

/// Seconds the DRAM takes for what misses and what is written out.
double dram_time(const CodeTraffic& traffic, const DramSpec& dram) {
  const double peak = dram.bandwidth.value();
  return traffic.missed / (peak * dram.read_efficiency) + traffic.written_out / (peak * dram.write_efficiency) +
         2.0 * dram.turnaround * std::min(kWritesForARead * traffic.missed, traffic.written_out) / peak;
}

}  // namespace

KernelTime code_time(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu, Residency residency) {
  const CodeConstants& code = code_constants(static_cast<CodeKernel>(work.kernel_class));
  const Occupancy occupancy = occupancy_of(gpu.sm, launch);
  const double blocks = launch.blocks(), sms = gpu.sm.count, passes = std::max(0.0, work.iterations);
  const double capacity = std::max(1, occupancy.blocks), warps = occupancy.warps_per_block;
  const CodeTraffic traffic = traffic_of(launch, residency, gpu.l2, code.apart);
  const double shared_by = std::max(1.0, work.elements);
  const double clock = gpu.clock.sustained.value();
  const double block_passes = std::max(1.0, blocks * passes);

  // Cycles of one pass.
  const double issue = warps * code.instructions / (gpu.sm.schedulers * gpu.sm.issue_rate);
  const MathRate rate = math_rate(launch.pipe, launch.type, gpu);
  const double math = rate.multiply_adds > 0.0 ? 0.5 * launch.flops / block_passes / rate.multiply_adds : 0.0;
  const double fill =
      gpu.sm.l1_bandwidth.value() > 0.0 ? traffic.requested / block_passes / gpu.sm.l1_bandwidth.value() : 0.0;
  const bool staged = code.order == Order::staged;
  const double port =
      warps * code.port_clocks * 128.0 / std::max(1.0, gpu.sm.shared_bandwidth.value()) + (staged ? 0.0 : fill);
  const double busy = std::max({issue, math, port});
  double latency = code.dependent_cycles + (staged ? fill : 0.0) + code.shared_waits * gpu.sm.shared_latency.value();
  if (code.lines > 0) latency += line_latency(code, work, traffic, gpu);
  const double wait = latency / shared_by;
  const auto pass = [&](double resident) {
    if (resident <= 0.0) return 0.0;
    if (code.order == Order::loose || (staged && work.elements > 0.0)) return norm(resident * busy, wait, kOverlap);
    return resident <= 1.0 ? busy + wait : norm(resident * busy, busy + wait, kOverlap);
  };

  // Sets of resident blocks on the fullest SM.
  const double most = fullest_sm(blocks, sms, capacity), sets = std::floor(most / capacity + 1e-9);
  const double last = most - sets * capacity, whole = std::floor(last + 1e-9);  // a mean of launches
  const double last_pass = pass(whole) + (last - whole) * (pass(whole + 1.0) - pass(whole));
  const double loops = (sets * pass(capacity) + last_pass) * passes;
  const double stores = most * traffic.written / blocks / kStoredAClock;
  const double cycles = passes > 1.0 ? loops + stores : std::max(loops, stores);
  const double activity = cycles > 0.0 ? std::clamp(math * block_passes / sms / cycles, 0.0, 1.0) : 0.0;
  const double hertz = kernel_clock(gpu, launch.pipe, activity * rate.of_pipe).value();

  const double t_dram = dram_time(traffic, gpu.dram);
  const double first_missed = traffic.missed - traffic.repeated_missed;
  const double t_l2 = norm(std::max(0.0, traffic.read - first_missed) / gpu.l2.read_bandwidth.value(),
                           (traffic.written - traffic.written_out) / gpu.l2.write_bandwidth.value(), kL2Overlap);
  const double t_mem = t_dram + t_l2;  // a stream comes to what stays in the L2 and to what does not in turn
  const double first = passes > 0.0 && passes <= 1.0 ? latency / hertz : 0.0;
  const double t_sm = std::max(0.0, cycles / hertz - first);
  const double dispatch = gpu.launch.blocks_per_second > 0.0 ? blocks / gpu.launch.blocks_per_second : 0.0;
  double body = passes > 1.0 ? norm(t_sm, t_mem, staged ? kAheadOverlap : kOverlap) : std::max(t_sm, t_mem);
  body = std::max(body, norm(repeated_time(traffic, gpu.l2), t_mem, kAheadOverlap));
  if (code.kernel == CodeKernel::atomic_add) {
    const double lines = traffic.written / 128.0;
    body = std::max({t_sm, t_dram, atomic_time(32.0 * warps * block_passes, lines, work.tail_steps, gpu.l2)});
  }
  body = std::max(body, dispatch);
  double start = 0.0;
  if (passes > 0.0) {
    const double moved = traffic.read + traffic.written;
    const double cold = moved > 0.0 ? (first_missed + traffic.written_out) / moved : 0.0;
    start = kStartLatencies * gpu.l2.latency.value() / clock + first + cold * gpu.dram.latency.value();
  }

  KernelTime result;
  result.time = gpu.launch.kernel_fixed + Seconds{start + body};
  result.clocked = Seconds{std::min(start, kStartLatencies * gpu.l2.latency.value() / clock + first) + t_sm};
  result.limiter = t_mem > t_sm ? (t_dram > t_l2 ? Limiter::dram : Limiter::l2)
                   : latency > busy * std::max(1.0, std::min(capacity, std::ceil(blocks / sms))) ? Limiter::latency
                   : port >= busy ? Limiter::shared_memory
                                  : Limiter::compute;
  if (t_sm <= 0.0 && t_mem <= dispatch) result.limiter = Limiter::latency;
  result.dram_read_bytes = traffic.missed;
  result.dram_write_bytes = traffic.written_out;
  result.l2_bytes = traffic.requested + traffic.written;
  result.l2_hit_rate = traffic.requested > 0.0 ? 1.0 - traffic.missed / traffic.requested : 0.0;
  result.occupancy = std::min(1.0, std::min(capacity, std::ceil(blocks / sms)) * warps / gpu.sm.max_warps);
  result.waves = blocks / (sms * capacity);
  result.math_utilization = activity;
  return result;
}

}  // namespace ridgeline
