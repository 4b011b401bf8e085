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
#include "sim/timing/laws.h"
#include "sim/timing/math_rate.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/timing/memory_bound/rereads.h"

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
/// Up to so many blocks an SM the fullest SM decides; with more they drift apart and the SMs share them evenly. At
/// whole numbers of blocks an SM the two agree, so that no chip with more SMs is slower.
constexpr double kFewBlocks = 64.0;

constexpr double kVectorBytes = 16.0;  ///< of a load

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

/// Adds what blocks read again, each its rows, of which the L1 and the L2 keep what they have room for.
Traffic with_rereads(Traffic t, const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu) {
  const double footprint = at_work(launch, work, gpu.sm).of_chip * work.reread_row_bytes / gpu.l2.capacity.value();
  const double l2_miss = 1.0 - ramp(footprint, gpu.l2.resident_full / kRereadFull, gpu.l2.resident_none / kRereadNone);
  const double again = work.reread_bytes * l1_miss_again(launch, work, gpu.sm);
  t.l2_read += again;
  t.dram_read += again * l2_miss;
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
bool tail_beside_others(MemoryBoundKernel kernel) {
  return kernel >= MemoryBoundKernel::add && kernel <= MemoryBoundKernel::cast_down &&
         kernel != MemoryBoundKernel::masked_fill;
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

/// The law of one launch, in parts.
class Law {
 public:
  Law(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu, Residency residency,
      const MemoryBoundConstants& code)
      : launch_(launch),
        work_(work),
        gpu_(gpu),
        code_(code),
        occupancy_(occupancy_of(gpu.sm, launch)),
        sms_(gpu.sm.count),
        blocks_(work.active_blocks > 0.0 ? work.active_blocks : launch.blocks()),
        capacity_(std::max(1, occupancy_.blocks)),
        on_fullest_(std::ceil(blocks_ / sms_)),
        clock_(gpu.clock.sustained.value()),
        half_(bytes_of(launch.type) == 2),
        traffic_(traffic_of(launch, residency)) {
    if (work.reread_bytes > 0.0) traffic_ = with_rereads(traffic_, launch, work, gpu);
    const double l2_scale = gpu.l2.latency.value() > 0.0 ? gpu.l2.latency.value() / kReferenceL2LatencyCycles : 1.0;
    const double dram_scale =
        gpu.dram.latency.value() > 0.0 ? gpu.dram.latency.value() / kReferenceDramLatencySeconds : 1.0;
    cycle_ = l2_scale / clock_;
    // The constants of such kernels are those of rows that no L1 holds: each sweep after the first waits for the L2.
    // Rows of whole vectors do not show it (published times of A100s, V100s and T4s): their loads are in flight
    // together.
    const bool one_by_one = std::fmod(work.reread_row_bytes, kVectorBytes) != 0.0;
    if (work.crowded_as_here && one_by_one && work.reread_bytes > 0.0) {
      const double sweeps = work.reread_bytes / std::max(1.0, traffic_.loaded);
      found_in_l1_ = sweeps * (1.0 - l1_miss_again(launch, work, gpu.sm)) *
                     std::max(0.0, kReferenceL2LatencyCycles - gpu.sm.l1_latency.value() / l2_scale);
    }
    miss_cycle_ = dram_scale / kReferenceClockHertz;
    if (work.tail_steps > 0.0) {
      const double swept = (traffic_.read_missed + traffic_.l2_write) / gpu.l2.capacity.value();
      const double evicted = 1.0 - ramp(swept, gpu.l2.resident_full, gpu.l2.resident_none);
      tail_cycles_ = (code.exchange_cycles + work.tail_steps * code.tail_cycles) * cycle_;
      tail_ = tail_cycles_ + work.tail_steps * code.tail_miss_cycles * miss_cycle_ * evicted;
    }
  }

  /// Seconds by what takes them.
  struct Parts {
    double start = 0;  ///< of the first block to its first pass, and the serial end; without kernel_fixed
    double dram = 0, l2 = 0, issue = 0, chain = 0, dispatch = 0;
    double together = 0;  ///< of all but the start
    double clocked = 0;
  };
  [[nodiscard]] Parts parts() const {
    const AchievedBandwidth achieved = achieved_bandwidth(gpu_);
    Parts r;
    r.dram = dram_seconds(traffic_, gpu_.dram) / code_.dram_efficiency;
    r.l2 = traffic_.l2_read / achieved.l2_read + traffic_.l2_write / achieved.l2_write;
    r.issue = issue();
    const Chain chain = chain_of_block();
    const double waves = std::max(1.0, std::ceil(on_fullest_ / capacity_));
    double tail = tail_;
    r.chain = std::max(0.0, waves * chain.all - chain.first);
    if (tail_beside_others(static_cast<MemoryBoundKernel>(work_.kernel_class)) && waves <= 1.0) {
      r.chain += kTailBesideOthers * tail;
      tail *= 1.0 - kTailBesideOthers;
    }
    const double side_by_side = std::max(1.0, std::min(blocks_ / kOverlapBlocks, capacity_));
    const Overlap overlap{code_.overlap_of_few + kOverlapADoubling * std::log2(side_by_side)};
    r.dispatch = gpu_.launch.blocks_per_second > 0.0 ? launch_.blocks() / gpu_.launch.blocks_per_second : 0.0;
    r.start = chain.first + tail;
    r.together = std::max(overlap(std::max(r.dram, r.l2), r.issue, r.chain), r.dispatch);
    r.clocked = chain.first_cycles + tail_cycles_ +
                std::max(r.issue, std::max(0.0, waves * chain.all_cycles - chain.first_cycles));
    return r;
  }

  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  /// A block of more warps than an SM holds would be launched in smaller ones.
  [[nodiscard]] double warps_of_sm() const {
    return std::min<double>(gpu_.sm.max_warps, std::min(capacity_, on_fullest_) * occupancy_.warps_per_block);
  }
  [[nodiscard]] double waves() const { return blocks_ / (sms_ * capacity_); }

 private:
  struct Chain {
    double all, first;                ///< of all passes of a block, and of one with a single pass
    double all_cycles, first_cycles;  ///< of that, what goes with the clock: not the waits for the DRAM
  };
  /// Latencies: cycles of the reference GPU, scaled by how much slower the target's L2 and DRAM answer.
  [[nodiscard]] Chain chain_of_block() const {
    const double passes = std::max(work_.iterations, 0.0), first_pass = std::min(1.0, passes);
    const double few = cycle_ * (1.0 - code_.spread * (1.0 - slowest_of(launch_.blocks(), sms_)));
    const double block = code_.block_cycles * few,
                 pass = ((half_ ? code_.pass_half : code_.pass_full) - found_in_l1_) * few;
    const double missed = traffic_.loaded > 0.0 ? traffic_.waited_for / traffic_.loaded : 1.0;
    const double miss = code_.miss_cycles * miss_cycle_ * missed,
                 once = block + code_.first_miss_cycles * miss_cycle_ * missed;
    const auto with = [&](double n) { return once + pass * n + miss * (code_.miss_each_pass != 0.0 ? n : 1.0); };
    return {with(passes), with(first_pass), block + pass * passes, block + pass * first_pass};
  }
  /// Seconds of instructions; while there are few blocks an SM, the fullest SM decides.
  [[nodiscard]] double issue() const {
    const double of_element = (half_ ? code_.instructions_half : code_.instructions_full) + work_.arithmetic;
    const double thread_instructions =
        of_element * work_.elements + (half_ ? code_.padded_half : code_.padded_full) * work_.padded_elements;
    const double of_threads = thread_instructions / lanes_per_cycle(gpu_.sm) / (sms_ * clock_);
    const double of_warps = code_.warp_instructions * launch_.blocks() * occupancy_.warps_per_block /
                            (gpu_.sm.schedulers * gpu_.sm.issue_rate) / (sms_ * clock_);
    if (on_fullest_ > kFewBlocks) return of_threads + of_warps;
    return of_threads * on_fullest_ * sms_ / blocks_ +
           of_warps * std::ceil(launch_.blocks() / sms_) * sms_ / launch_.blocks();
  }

  const KernelLaunch& launch_;
  const MemoryBoundWork& work_;
  const Gpu& gpu_;
  const MemoryBoundConstants& code_;
  Occupancy occupancy_;
  double sms_;
  double blocks_;      ///< that do work
  double capacity_;    ///< blocks an SM holds
  double on_fullest_;  ///< blocks of the SM with most
  double clock_;
  bool half_;
  Traffic traffic_;
  double cycle_ = 0, miss_cycle_ = 0, tail_ = 0, tail_cycles_ = 0;
  double found_in_l1_ = 0;  ///< cycles of a pass: rows that are read again from the L1 and not from the L2
};

}  // namespace

KernelTime memory_bound_time(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu,
                             Residency residency) {
  return memory_bound_time(launch, work, gpu, residency,
                           constants_of(static_cast<MemoryBoundKernel>(work.kernel_class)));
}

KernelTime memory_bound_time(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu,
                             Residency residency, const MemoryBoundConstants& code) {
  const Law law(launch, work, gpu, residency, code);
  const Law::Parts parts = law.parts();
  const Seconds fixed = gpu.launch.kernel_fixed + Seconds{parts.start};

  KernelTime result;
  result.time = fixed + Seconds{parts.together};
  result.clocked = Seconds{parts.clocked};
  result.limiter = Limiter::latency;
  double most = fixed.value() + parts.chain;
  const auto consider = [&](double seconds, Limiter limiter) {
    if (seconds > most) {
      most = seconds;
      result.limiter = limiter;
    }
  };
  consider(parts.issue, Limiter::compute);
  consider(parts.l2, Limiter::l2);
  consider(parts.dram, Limiter::dram);
  consider(parts.dispatch, Limiter::latency);
  const Traffic& traffic = law.traffic();
  result.dram_read_bytes = traffic.dram_read;
  result.dram_write_bytes = traffic.dram_write;
  result.l2_bytes = traffic.l2_read + traffic.l2_write;
  result.l2_hit_rate = traffic.l2_read > 0.0 ? std::clamp(1.0 - traffic.dram_read / traffic.l2_read, 0.0, 1.0) : 0.0;
  result.occupancy = law.warps_of_sm() / gpu.sm.max_warps;
  result.waves = law.waves();
  const double peak = 2.0 *
                      math_rate(launch.on_tensor_cores() ? launch.pipe : Pipe::fp32, launch.type, gpu).multiply_adds *
                      gpu.sm.count * gpu.clock.sustained.value();
  result.math_utilization = peak > 0.0 ? launch.flops / peak / result.time.value() : 0.0;
  return result;
}

}  // namespace ridgeline
