#include "sim/timing/attention/attention_law.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/timing/block_schedule.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"
#include "sim/timing/math_rate.h"
#include "sim/timing/products/gemm_constants.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op.h"

namespace ridgeline {
namespace {

/// Eager copies of 16-bit views: fixed cycles, then bytes at a share of the DRAM's bandwidth; 142 of them, median error
/// 3 %.
constexpr double kLayoutCopyCycles = 3290, kLayoutCopyShare = 0.30;
/// Loads of a block's prologue that nothing hides: of the operand it owns, which nobody has asked for, then of its
/// first tile, which others have.
constexpr double kLoadsOfPrologue = 2.0;

}  // namespace

double norm_of(double a, double b, double p) {
  if (p == 1.0) return a + b;
  const double most = std::max(a, b), least = std::min(a, b);
  return most > 0.0 ? most * std::pow(1.0 + std::pow(least / most, p), 1.0 / p) : 0.0;
}

int flash_forward_warps(int tile_q, std::int64_t head_dim) { return tile_q == 128 && head_dim > 128 ? 8 : 4; }

Pipe attention_pipe(const AttentionWork& work, const Gpu& gpu) {
  const auto backend = static_cast<AttentionBackend>(work.backend);
  if (backend == AttentionBackend::cudnn && gpu.sm.warpgroup_mma) return Pipe::tensor_wgmma;
  if ((work.type == DType::fp32 || work.type == DType::tf32) && gpu.sm.rates.tensor_tf32 <= 0.0) return Pipe::fp32;
  if (work.type == DType::bf16 && gpu.sm.rates.tensor_bf16 <= 0.0) return Pipe::fp32;
  if (work.type == DType::fp16 && gpu.sm.rates.tensor_fp16 <= 0.0) return Pipe::fp32;
  return Pipe::tensor_mma;
}

double attention_rate(const AttentionWork& work, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  const Pipe pipe = attention_pipe(work, gpu);
  if (pipe == Pipe::fp32) return rates.fp32;
  const bool thirds = work.type == DType::fp32;  // three products of tf32 stand for one
  const DType type = thirds ? DType::tf32 : work.type;
  const double tensor = type == DType::bf16   ? rates.tensor_bf16
                        : type == DType::fp16 ? rates.tensor_fp16
                                              : rates.tensor_tf32;
  const double rate = pipe == Pipe::tensor_mma ? mma_sync_rate(tensor, type, gpu) : tensor;
  return thirds ? rate / 3.0 : rate;
}

namespace {

/// What the blocks of a kernel ask for. Each walks over both operands of the other side, tile by tile, the next tile's
/// on their way while one is worked on; a backward block adds the gradient of its queries to an accumulator in fp32.
PanelTraffic panel_traffic(const AttentionWork& work, const Gpu& gpu, const AttentionBlocks& blocks, double cold_bytes,
                           double written_bytes) {
  const bool backward = work.part == AttentionWork::Part::backward;
  const double element = static_cast<double>(bytes_of(work.type)), d = static_cast<double>(work.head_dim);
  const double walked_tile = backward ? work.tile_q : work.tile_k,
               walked = static_cast<double>(backward ? work.seq_q : work.seq_k),
               owned = static_cast<double>(backward ? work.seq_k : work.seq_q);
  const double heads = static_cast<double>(work.batch * work.heads);
  const double groups = backward || work.kv_heads <= 0 ? heads : static_cast<double>(work.batch * work.kv_heads);
  const double panels = 2.0 * walked * d * element;
  const double at_work = std::min(blocks.working, static_cast<double>(gpu.sm.count * blocks.resident));
  PanelTraffic traffic;
  const double own = 2.0 * owned * d * element * (backward ? groups : 0.5 * heads);
  traffic.first = own + panels * groups;
  traffic.asked = std::max(traffic.first, own + blocks.products * std::min(walked_tile, walked) * 2.0 * d * element);
  traffic.cold = std::min(cold_bytes, traffic.first);
  // A sequence's head whose blocks end and the next.
  traffic.footprint = std::min(groups, 2.0) * 2.0 * static_cast<double>(longest_of(work, !backward)) * d * element;
  traffic.written = written_bytes + (backward ? blocks.products * std::min(walked_tile, walked) * d * 4.0 : 0.0);
  traffic.written_out = written_bytes;
  traffic.waits = blocks.products / at_work + kLoadsOfPrologue;
  return traffic;
}

/// One kernel's times on up to all SMs of a chip, holding up to all blocks that one can.
class Fastest {
 public:
  Fastest(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants, double cold, double refetched,
          double written)
      : work_(work), gpu_(gpu), constants_(constants) {
    const AchievedBandwidth achieved = achieved_bandwidth(gpu);
    cold_seconds_ = cold / (achieved.dram_read * constants.read_share);
    moving_ = (cold + refetched) / (achieved.dram_read * constants.read_share) + written / achieved.dram_write;
  }

  /// `resident` blocks to an SM, or fewer where its fullest has `most_on_sm` or more (those of all SMs, at least).
  void consider(int resident) {
    AttentionWork work = work_;
    work.blocks_per_sm = resident;
    blocks_ = attention_blocks(work, gpu_, constants_);
    double costs = 0.0, working = 0.0;
    for (const double length : blocks_.tiles) {
      costs += blocks_.cycles(length, resident);
      working += length == AttentionBlocks::kLeaves ? 0.0 : 1.0;
    }
    clocked_ = 1.0 - blocks_.unclocked * working / costs;
    if (work.causal || work.lengths.any()) scheduled(resident);
    else in_rounds(resident);
  }
  [[nodiscard]] const AttentionTime& best() const { return best_; }

 private:
  /// Blocks on the fullest SM, the least and more: grids on fewer SMs load less before they begin.
  [[nodiscard]] double fewest_on_fullest(int resident) const {
    return std::max(ceil_div(blocks_.count, gpu_.sm.count), static_cast<double>(resident));
  }

  /// Equal blocks.
  void in_rounds(int resident) {
    if (resident > 1 && blocks_.count < resident) return;
    for (double on_sm = fewest_on_fullest(resident); on_sm <= blocks_.count || on_sm == 1.0; ++on_sm) {
      const double full = std::floor(on_sm / resident), rest = on_sm - full * resident;
      const double cycles = full * blocks_.cycles(blocks_.tiles[0], resident) +
                            (rest > 0.0 ? blocks_.cycles(blocks_.tiles[0], rest) : 0.0);
      if (!keep(cycles, resident / on_sm)) break;
    }
  }

  /// Blocks of unequal length. Which meets which is settled by their tiles alone, prologue and epilogue as one: a
  /// schedule in proportion to costs could end later with shorter blocks.
  void scheduled(int resident) {
    // A block alone on its SM takes the time of a tile alone; in steps, so that blocks that end together still do when
    // a last digit differs.
    constexpr double kSteps = 1024.0;
    const double share =
        std::max(1.0 / resident, std::round(kSteps * blocks_.tile(1.0) / blocks_.tile(resident)) / kSteps);
    static thread_local std::vector<double> alone, more;
    alone.clear();
    more.clear();
    double units = 0.0, costs = 0.0;
    for (std::size_t i = 0; i < blocks_.tiles.size(); ++i) {
      const double unit = blocks_.units[i];
      alone.push_back(unit * share);
      more.push_back(resident > 1 ? unit * (1.0 - share) / (resident - 1.0) : 0.0);
      units += unit;
      costs += blocks_.cycles(blocks_.tiles[i], resident);
    }
    if (resident > 1 && blocks_.count < resident) return;
    const double least_on_sm = fewest_on_fullest(resident);
    for (double on_sm = least_on_sm; on_sm <= blocks_.count || on_sm == 1.0; ++on_sm) {
      // All numbers of SMs whose fullest has so many, and no more than there are.
      const double most = on_sm > 1.0 ? ceil_div(blocks_.count, on_sm - 1.0) - 1.0 : gpu_.sm.count;
      const int sms = std::max(1, static_cast<int>(std::min<double>(gpu_.sm.count, most)));
      const double first = std::min(1.0, resident / on_sm);
      const double least = least_schedule_end(alone, more, blocks_.repeats, sms, resident) * costs / units;
      if (on_sm > least_on_sm && time_of(least, first).total >= best_.total) {
        if (time_of(least, 0.0).compute >= best_.total) break;
        continue;
      }
      if (!keep(latest_schedule_end(alone, more, blocks_.repeats, sms, resident) * costs / units, first)) break;
    }
  }

  [[nodiscard]] AttentionTime time_of(double cycles, double first_round) const {
    AttentionTime result;
    result.math = blocks_.math;
    result.softmax = blocks_.softmax;
    result.latency = blocks_.latency;
    result.activity = std::clamp(blocks_.products * blocks_.math / gpu_.sm.count / cycles, 0.0, 1.0);
    result.clock = kernel_clock(gpu_, attention_pipe(work_, gpu_), result.activity).value();
    result.compute = cycles / result.clock;
    result.fixed = constants_.fixed_cycles / result.clock;
    result.clocked = result.fixed + result.compute * clocked_;
    result.fill = cold_seconds_ * first_round;
    result.memory = moving_ - result.fill;
    result.total = result.fixed + result.fill + norm_of(result.compute, result.memory, constants_.overlap);
    return result;
  }

  /// Whether still more blocks on an SM could be faster.
  bool keep(double cycles, double first_round) {
    const AttentionTime time = time_of(cycles, std::min(1.0, first_round));
    if (time.total < best_.total) best_ = time;
    return time.compute < best_.total;
  }

  const AttentionWork& work_;
  const Gpu& gpu_;
  const AttentionConstants& constants_;
  double cold_seconds_ = 0, moving_ = 0;
  double clocked_ = 1;  ///< of the cycles, what goes with the SMs' clock
  AttentionBlocks blocks_;
  AttentionTime best_{.total = std::numeric_limits<double>::infinity(), .floor = {}};
};

}  // namespace

AttentionTime fused_attention_time(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants,
                                   double cold_bytes, double written_bytes) {
  const AttentionBlocks blocks = attention_blocks(work, gpu, constants);
  const PanelFloor floor =
      panel_floor(panel_traffic(work, gpu, blocks, cold_bytes, written_bytes), gpu, achieved_bandwidth(gpu).l2_read);
  Fastest fastest(work, gpu, constants, cold_bytes, floor.refetched, written_bytes);
  for (int resident = work.blocks_per_sm; resident >= 1; --resident) fastest.consider(resident);
  AttentionTime best = fastest.best();
  best.floor = floor;
  best.total = std::max(best.total, floor.most());
  return best;
}

KernelTime attention_time(const KernelLaunch& launch, const AttentionWork& work, const Gpu& gpu, Residency residency) {
  return attention_time(launch, work, gpu, residency, attention_constants(attention_class_of(work)));
}

KernelTime attention_time(const KernelLaunch& launch, const AttentionWork& work, const Gpu& gpu, Residency residency,
                          const AttentionConstants& constants) {
  KernelTime result;
  double cold = 0.0, missed_writes = 0.0, read = 0.0;
  for (std::size_t i = 0; i < launch.reads.size(); ++i) {
    read += launch.reads[i].bytes;
    cold += launch.reads[i].bytes * (1.0 - (i < residency.size() ? residency[i] : 0.0));
  }
  for (std::size_t i = 0; i < launch.writes.size(); ++i) {
    const std::size_t at = launch.reads.size() + i;
    missed_writes += launch.writes[i].bytes * (1.0 - (at < residency.size() ? residency[at] : 0.0));
  }
  result.l2_bytes = launch.read_bytes() + launch.written_bytes();
  result.dram_read_bytes = cold;
  result.dram_write_bytes = missed_writes;  // what finds its line dirty replaces it there
  result.l2_hit_rate = read > 0.0 ? 1.0 - cold / read : 0.0;
  const double resident = std::max(1, work.blocks_per_sm);
  result.occupancy = std::min(1.0, resident * launch.threads_per_block / 32.0 / gpu.sm.max_warps);
  result.waves = launch.blocks() / (gpu.sm.count * resident);

  if (work.part == AttentionWork::Part::layout_copy) {
    const double fixed = kLayoutCopyCycles / gpu.clock.sustained.value();
    const double moving =
        (launch.read_bytes() + launch.written_bytes()) / (kLayoutCopyShare * gpu.dram.bandwidth.value());
    result.time = Seconds{fixed + moving};
    result.limiter = moving > fixed ? Limiter::dram : Limiter::latency;
    return result;
  }
  const AttentionTime part = fused_attention_time(work, gpu, constants, cold, missed_writes);
  cold += part.floor.refetched;
  result.dram_read_bytes = cold;
  result.time = Seconds{part.total};
  result.clocked = Seconds{part.clocked};
  result.math_utilization = part.activity;
  const double start = part.fixed + part.fill;
  if (part.floor.l2 >= part.total) result.limiter = Limiter::l2;
  else if (part.floor.dram >= part.total) result.limiter = Limiter::dram;
  else if (part.floor.latency >= part.total) result.limiter = Limiter::latency;
  else if (start > part.compute && start > part.memory) result.limiter = Limiter::latency;
  else if (part.memory > part.compute) result.limiter = Limiter::dram;
  else if (part.activity < 0.25) result.limiter = Limiter::latency;
  else result.limiter = Limiter::compute;
  limit_power(result, launch, gpu);
  return result;
}

}  // namespace ridgeline
