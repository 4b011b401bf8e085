// Memory-bound kernels: launch, the latency chain of one block, then whichever of DRAM, L2, issue slots and chains of
// blocks in waves is longest, softened where they overlap.
//
//   T = t0 + L1 + max(B, blocks / dispatch rate) + Ltail          B = (t_mem^p + t_issue^p + t_chain^p)^(1/p)
//
// t_mem is the slower of DRAM and L2 traffic, L1 the chain of a block with one pass, t_chain the rest of the chains of
// all waves, Ltail the serial end of a cross-block reduction. Memory and issue slots see the blocks as a fluid: blocks
// drift apart, so that the last wave overlaps the one before. p grows with the blocks in flight: a few wait for their
// loads, compute and store in step and leave the memory idle between; many fill each other's pauses. Nothing here gets
// slower with more SMs, a faster clock or more bandwidth.
#include <algorithm>
#include <cmath>

#include "sim/occupancy/occupancy.h"
#include "sim/timing/achieved_bandwidth.h"
#include "sim/timing/laws.h"
#include "sim/timing/math_rate.h"
#include "sim/timing/stream_kernels.h"

namespace ridgeline {
namespace {

/// What each doubling of a grid beyond this many blocks adds to the exponent p, up to as many doublings as an SM holds
/// blocks. Of the grid, not of an SM: a chip with more SMs would have fewer blocks on each, and a time that grows.
/// Fitted on point-wise and multi-tensor kernels of the H200 together.
constexpr double kOverlapBlocks = 128.0, kOverlapADoubling = 0.5;
/// Share of a DRAM write that rewriting a line still dirty in the L2 saves; the rest pays for the L2 write and its
/// eviction elsewhere.
constexpr double kAbsorbedWriteSaving = 0.32;
/// A block that reads its row again finds it at a distance of all rows being worked on, times these: other blocks'
/// writes come between, and blocks are not in step, so the ramp of the L2 begins earlier and ends later than it would
/// for one stream.
constexpr double kRereadFull = 1.6, kRereadNone = 1.3;
/// L1 share of a row that is read again falls from all to none between these multiples of the L1's capacity.
constexpr double kL1HitsAll = 0.4, kL1HitsNone = 0.94;

/// Share of the last block's longer way that the other blocks of its wave run beside.
constexpr double kTailBesideOthers = 0.75;

struct Traffic {
  double dram_read = 0, dram_write = 0, l2_read = 0, l2_write = 0;
  double read_missed = 0;  ///< distinct bytes that come from DRAM at their first reading
  double loaded = 0;       ///< by all first readings of a block
  double waited_for = 0;   ///< of that, what waits for the DRAM: loads in flight together wait for the slower of two
};

double ramp(double x, double full, double none) { return std::clamp((none - x) / (none - full), 0.0, 1.0); }

/// What blocks read once and write.
Traffic traffic_of(const KernelLaunch& launch, Residency residency) {
  Traffic t;
  std::size_t i = 0;
  for (const Access& access : launch.reads) {
    const double hit = i < residency.size() ? residency[i] : 0.0;
    ++i;
    const double asked = std::max(access.bytes, access.requested), missed = access.bytes * (1.0 - hit);
    t.read_missed += missed;
    t.l2_read += asked;
    const double loaded = std::max(asked, access.loaded), found = loaded > 0.0 ? 1.0 - missed / loaded : 1.0;
    t.loaded += loaded;
    t.waited_for += loaded * (1.0 - found * found);
  }
  for (const Access& access : launch.writes) {
    const double hit = i < residency.size() ? residency[i] : 0.0;
    ++i;
    t.dram_write += access.bytes * (1.0 - kAbsorbedWriteSaving * hit);
    t.l2_write += std::max(access.bytes, access.requested);
  }
  t.dram_read = t.read_missed;
  return t;
}

/// Adds what `at_work` blocks read again, each its rows, of which the L1 and the L2 keep what they have room for.
Traffic with_rereads(Traffic t, const StreamWork& work, const Gpu& gpu, double at_work) {
  const double footprint = at_work * work.reread_row_bytes / gpu.l2.capacity.value();
  const double l2_miss = 1.0 - ramp(footprint, gpu.l2.resident_full / kRereadFull, gpu.l2.resident_none / kRereadNone);
  double l1_miss = 1.0;
  if (work.reread_through_l1)
    l1_miss = 1.0 - ramp(at_work / gpu.sm.count * work.reread_row_bytes / std::max(1.0, gpu.sm.l1_and_shared.value()),
                         kL1HitsAll, kL1HitsNone);
  t.l2_read += work.reread_bytes * l1_miss;
  t.dram_read += work.reread_bytes * l1_miss * l2_miss;
  return t;
}

double dram_seconds(const Traffic& t, const DramSpec& dram) {
  return (t.dram_read / dram.read_efficiency + t.dram_write / dram.write_efficiency +
          2.0 * dram.turnaround * std::min(t.dram_read, t.dram_write)) /
         dram.bandwidth.value();
}

/// A kernel ends with its slowest block, and the more blocks there are the slower that one is, until there are some on
/// every SM: the share of that growth, a doubling at a time.
double slowest_of(double blocks, double sms) {
  return sms > 1.0 ? std::log2(std::clamp(blocks, 1.0, sms)) / std::log2(sms) : 1.0;
}

/// Whether the tail lengthens the last block alone: point-wise kernels with vectors, but for the fill behind a copy.
bool tail_beside_others(StreamKernel kernel) {
  return kernel >= StreamKernel::add && kernel <= StreamKernel::cast_down && kernel != StreamKernel::masked_fill;
}

/// Times that overlap: their p-norm.
struct Overlap {
  double p;
  [[nodiscard]] double operator()(double a, double b, double c) const {
    const double most = std::max({a, b, c});
    if (most <= 0.0) return 0.0;
    double sum = 0.0;
    for (const double x : {a, b, c})
      if (x > 0.02 * most) sum += std::exp2(p * std::log2(x / most));
    return most * std::exp2(std::log2(sum) / p);
  }
};

}  // namespace

KernelTime stream_time(const KernelLaunch& launch, const StreamWork& work, const Gpu& gpu, Residency residency) {
  return stream_time(launch, work, gpu, residency, constants_of(static_cast<StreamKernel>(work.kernel_class)));
}

KernelTime stream_time(const KernelLaunch& launch, const StreamWork& work, const Gpu& gpu, Residency residency,
                       const StreamConstants& code) {
  const Occupancy occupancy = occupancy_of(gpu.sm, launch);
  const double sms = gpu.sm.count;
  const double blocks = work.active_blocks > 0.0 ? work.active_blocks : launch.blocks();
  const double capacity = std::max(1, occupancy.blocks);  // blocks an SM holds
  const double on_fullest = std::ceil(blocks / sms);
  const double resident = std::min(capacity, on_fullest);

  Traffic traffic = traffic_of(launch, residency);
  if (work.reread_bytes > 0.0) traffic = with_rereads(traffic, work, gpu, std::min(sms * resident, launch.blocks()));
  const double miss = traffic.loaded > 0.0 ? traffic.waited_for / traffic.loaded : 1.0;
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  const double t_dram = dram_seconds(traffic, gpu.dram) / code.dram_efficiency;
  const double t_l2 = traffic.l2_read / achieved.l2_read + traffic.l2_write / achieved.l2_write;
  const double t_mem = std::max(t_dram, t_l2);

  const bool half = bytes_of(launch.type) == 2;
  // Latencies: cycles of the reference GPU, scaled by how much slower the target's L2 and DRAM answer.
  const double clock = gpu.clock.sustained.value();
  const double l2_scale = gpu.l2.latency.value() > 0.0 ? gpu.l2.latency.value() / kReferenceL2LatencyCycles : 1.0;
  const double dram_scale =
      gpu.dram.latency.value() > 0.0 ? gpu.dram.latency.value() / kReferenceDramLatencySeconds : 1.0;
  const double cycle = l2_scale / clock, miss_cycle = dram_scale / kReferenceClockHertz;
  const double passes = std::max(work.iterations, 0.0), first_pass = std::min(1.0, passes);
  const double cycle_of_few = cycle * (1.0 - code.spread * (1.0 - slowest_of(launch.blocks(), sms)));
  const double block_seconds = code.block_cycles * cycle_of_few,
               pass_seconds = (half ? code.pass_half : code.pass_full) * cycle_of_few,
               miss_seconds = code.miss_cycles * miss_cycle * miss,
               once_seconds = block_seconds + code.first_miss_cycles * miss_cycle * miss;
  const double chain =
      once_seconds + pass_seconds * passes + miss_seconds * (code.miss_each_pass != 0.0 ? passes : 1.0);
  const double first =
      once_seconds + pass_seconds * first_pass + miss_seconds * (code.miss_each_pass != 0.0 ? first_pass : 1.0);

  // Instructions; while there are few blocks an SM, the fullest SM decides.
  const double warps = occupancy.warps_per_block;
  const double thread_instructions = (half ? code.instructions_half : code.instructions_full) * work.elements +
                                     (half ? code.padded_half : code.padded_full) * work.padded_elements;
  const double t_thread = thread_instructions / lanes_per_cycle(gpu.sm) / (sms * clock);
  const double t_warp =
      code.warp_instructions * launch.blocks() * warps / (gpu.sm.schedulers * gpu.sm.issue_rate) / (sms * clock);
  const bool few = on_fullest <= 4.0 * capacity;
  const double t_issue =
      few ? t_thread * on_fullest * sms / blocks + t_warp * std::ceil(launch.blocks() / sms) * sms / launch.blocks()
          : t_thread + t_warp;

  const double side_by_side = std::max(1.0, std::min(blocks / kOverlapBlocks, capacity));
  const Overlap overlap{code.overlap_of_few + kOverlapADoubling * std::log2(side_by_side)};
  double tail = 0.0, tail_cycles = 0.0;
  if (work.tail_steps > 0.0) {
    const double swept = (traffic.read_missed + traffic.l2_write) / gpu.l2.capacity.value();
    const double evicted = 1.0 - ramp(swept, gpu.l2.resident_full, gpu.l2.resident_none);
    tail_cycles = (code.exchange_cycles + work.tail_steps * code.tail_cycles) * cycle;
    tail = tail_cycles + work.tail_steps * code.tail_miss_cycles * miss_cycle * evicted;
  }
  const double waves = std::max(1.0, std::ceil(on_fullest / capacity));
  double t_chain = std::max(0.0, waves * chain - first);
  if (tail_beside_others(static_cast<StreamKernel>(work.kernel_class)) && waves <= 1.0) {
    t_chain += kTailBesideOthers * tail;
    tail *= 1.0 - kTailBesideOthers;
  }
  const double body = overlap(t_mem, t_issue, t_chain);
  const double dispatch = gpu.launch.blocks_per_second > 0.0 ? launch.blocks() / gpu.launch.blocks_per_second : 0.0;
  const double fixed = gpu.launch.kernel_fixed.value() + first + tail;

  KernelTime result;
  result.time = Seconds{fixed + std::max(body, dispatch)};
  // What goes with the clock: cycles, not the waits for the DRAM among them.
  const double first_cycles = block_seconds + pass_seconds * first_pass;
  const double chain_cycles = std::max(0.0, waves * (block_seconds + pass_seconds * passes) - first_cycles);
  result.clocked = Seconds{first_cycles + tail_cycles + std::max(t_issue, chain_cycles)};
  result.limiter = Limiter::latency;
  double most = fixed + t_chain;
  const auto consider = [&](double seconds, Limiter limiter) {
    if (seconds > most) {
      most = seconds;
      result.limiter = limiter;
    }
  };
  consider(t_issue, Limiter::compute);
  consider(t_l2, Limiter::l2);
  consider(t_dram, Limiter::dram);
  consider(dispatch, Limiter::latency);
  result.dram_read_bytes = traffic.dram_read;
  result.dram_write_bytes = traffic.dram_write;
  result.l2_bytes = traffic.l2_read + traffic.l2_write;
  result.l2_hit_rate = traffic.l2_read > 0.0 ? std::clamp(1.0 - traffic.dram_read / traffic.l2_read, 0.0, 1.0) : 0.0;
  result.occupancy = resident * warps / gpu.sm.max_warps;
  result.waves = blocks / (sms * capacity);
  const double peak = 2.0 *
                      math_rate(launch.on_tensor_cores() ? launch.pipe : Pipe::fp32, launch.type, gpu).multiply_adds *
                      sms * clock;
  result.math_utilization = peak > 0.0 ? launch.flops / peak / result.time.value() : 0.0;
  return result;
}

}  // namespace ridgeline
