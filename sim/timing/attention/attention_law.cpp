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

/// Random bits of dropout, four numbers of 32 bits from a run of Philox. Set on cuDNN's kernels of four whole steps on
/// an H200 (without it 0.52 to 0.64 of the time they took forward, 0.73 to 0.88 backward; with it 0.93 to 1.10); the
/// four shapes of h200/more/steps.jsonl.gz, looked at after that, 0.90 to 1.04, CUTLASS' kernels in fp32 0.92 and 0.98.
constexpr double kDropoutOperations = 27.0;
/// FlashAttention makes 16 numbers of 8 bits from one run. Not measured.
constexpr double kFlashDropoutOperations = 6.0;
/// Reading, converting and adding a mask. Set on one shape (batch 4, 16 heads, 1024 positions, 64 wide); the backward
/// kernel walks it against its layout.
constexpr double kBiasOperations = 15.0, kBiasOperationsBackward = 39.0;

/// Eager copies of 16-bit views: fixed cycles, then bytes at a share of the DRAM's bandwidth; 142 of them, median error
/// 3 %.
constexpr double kLayoutCopyCycles = 3290, kLayoutCopyShare = 0.30;
/// Short sequences: up to this many positions blocks have idle warps and rows.
constexpr std::int64_t kShort = 64;
/// What a block alone on an SM keeps of the time it takes with others, above its share of it.
constexpr double kGainAlone = 0.26;
/// Loads of a block's prologue that nothing hides: of the operand it owns, which nobody has asked for, then of its
/// first tile, which others have.
constexpr double kLoadsOfPrologue = 2.0;
/// What the tile cycles of large head dimensions are stated at.
constexpr double kLargeHead = 192.0;

double overlapped(double a, double b, double p) {
  const double most = std::max(a, b), least = std::min(a, b);
  return most > 0.0 ? most * std::pow(1.0 + std::pow(least / most, p), 1.0 / p) : 0.0;
}

AttentionBackend backend_of(const AttentionWork& work) { return static_cast<AttentionBackend>(work.backend); }

/// Multiply-adds of a score. CUTLASS' products that have the head dimension as a side work on 64 or 128 of it, except
/// in the 16-bit backward kernels, which exist for more sizes.
double depth_of(const AttentionWork& work, bool backward) {
  const auto d = static_cast<double>(work.head_dim);
  const bool sides = backend_of(work) == AttentionBackend::efficient && !(backward && is_half(work.type));
  const double side = !sides ? d : d <= 64.0 ? 64.0 : 128.0 * ceil_div(d, 128.0);
  return backward ? 2.0 * d + 3.0 * side : d + side;
}

}  // namespace

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

/// Tiles that block `i` of a head walks over under a causal mask, in one part of the keys; `shift`: keys before the
/// first query.
double causal_length(const AttentionWork& work, double i, double split, double steps, double shift) {
  const bool backward = work.part == AttentionWork::Part::backward;
  const double owned = backward ? work.tile_k : work.tile_q, walked = backward ? work.tile_q : work.tile_k;
  if (backward) {
    const double first = std::max(0.0, std::floor((i * owned - shift) / walked));
    return std::max(0.0, steps - first);
  }
  const double length = std::min(steps, ceil_div(std::max(0.0, (i + 1.0) * owned + shift), walked));
  const double share = ceil_div(steps, work.splits);
  return std::clamp(length - split * share, 0.0, share);
}

}  // namespace

AttentionBlocks attention_blocks(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants) {
  const bool backward = work.part == AttentionWork::Part::backward;
  const bool flash = backend_of(work) == AttentionBackend::flash;
  // CUTLASS' fused kernels stop at the end of a short sequence; the others compute whole tiles.
  const bool stops = backend_of(work) == AttentionBackend::efficient;
  const auto used = [stops](int tile, std::int64_t length) {
    return static_cast<double>(stops ? std::min<std::int64_t>(tile, (length + 63) / 64 * 64) : tile);
  };
  const double scores = used(work.tile_q, work.seq_q) * used(work.tile_k, work.seq_k);
  const AttentionWidth& width = constants.width(static_cast<double>(work.head_dim));
  AttentionBlocks result;
  result.math = scores * depth_of(work, backward) / attention_rate(work, gpu);
  double operations = constants.softmax_operations;
  if (work.dropout) operations += flash ? kFlashDropoutOperations : kDropoutOperations;
  if (work.bias) operations += backward ? kBiasOperationsBackward : kBiasOperations;
  result.softmax = scores * (1.0 / gpu.sm.rates.special + operations / gpu.sm.rates.fp32);
  // Every warp reads the operand it does not own: half a tile's products reuse each byte over a warp's 32 rows.
  const double operand_bytes =
      (backward ? 5.0 : 2.0) * scores * static_cast<double>(work.head_dim * bytes_of(work.type)) / 32.0;
  const double math =
      result.math / width.utilization + operand_bytes / gpu.sm.shared_bandwidth.value() * width.operand_loads;
  const bool large = &width == &constants.large;
  result.latency =
      width.tile_cycles * (large ? static_cast<double>(work.head_dim) / kLargeHead : 1.0) * work.tiles_together;
  // FlashAttention has kernels without checks of sequences only where the head dimension is the kernel's, up to 128.
  const bool uneven =
      work.seq_q % work.tile_q != 0 || work.seq_k % work.tile_k != 0 || (flash && (work.padded_head || large));
  const double edges = !uneven ? 1.0 : work.causal ? width.uneven_causal : constants.uneven;
  result.busy = edges * (work.padded_head ? width.padded : 1.0) *
                (std::max(math, result.softmax) + constants.exposed * std::min(math, result.softmax));
  const double hertz = kernel_clock(gpu, attention_pipe(work, gpu), 0.0).value();
  const bool is_short = std::max(work.seq_q, work.seq_k) <= kShort;
  result.block = width.block_cycles * (is_short ? constants.short_block : 1.0) + load_latency(gpu, 1.0, hertz) -
                 reference_load_latency(1.0) + load_latency(gpu, 0.0, hertz) - reference_load_latency(0.0);
  result.unclocked = std::max(0.0, std::min(result.block, load_latency(gpu, 1.0, hertz) - gpu.l2.latency.value()));

  // Blocks of one head, in launch order, in tiles.
  const double owned = backward ? work.tile_k : work.tile_q, walked = backward ? work.tile_q : work.tile_k;
  const double own_length = static_cast<double>(backward ? work.seq_k : work.seq_q),
               walk_length = static_cast<double>(backward ? work.seq_q : work.seq_k);
  const double blocks = ceil_div(own_length, owned), steps = ceil_div(walk_length, walked);
  const double heads = static_cast<double>(work.batch * work.heads);
  result.count = blocks * heads * work.splits;
  result.resident =
      static_cast<int>(std::clamp(ceil_div(result.count, gpu.sm.count), 1.0, static_cast<double>(work.blocks_per_sm)));
  // FlashAttention's forward loop checks the tile over the end of the keys like those on the diagonal, and in most of
  // its causal kernels for uneven sequences has no registers left for it: the worse the more the blocks that share an
  // SM are in different places of the code.
  const bool checks_end = flash && !backward && uneven;
  const bool spills = checks_end && work.causal && !large && work.head_dim != 96;
  const double apart = 1.0 - std::min(1.0, gpu.sm.count * work.blocks_per_sm / result.count);
  const double in_step = spills ? constants.spilled_masked : constants.further_masked;
  const double further = spills ? in_step * (1.0 + width.drift * apart) : in_step;
  const auto with_masks = [&](double length, double masked, double each_further) {
    return length + std::min(masked, 1.0) * constants.first_masked + std::max(masked - 1.0, 0.0) * each_further;
  };
  if (!work.causal) {
    const double length = ceil_div(steps, work.splits);
    result.tiles.push_back(with_masks(length, checks_end ? 1.0 : 0.0, 0.0));
    result.repeats = result.count;
    result.products = length * result.count;
    return result;
  }
  result.repeats = heads;
  const double masked = ceil_div(owned, walked) + (spills ? 1.0 : 0.0);
  const double shift = static_cast<double>(work.seq_k - work.seq_q);
  for (double split = 0; split < work.splits; ++split)
    for (double i = 0; i < blocks; ++i) {
      const double length = causal_length(work, i, split, steps, shift);
      result.products += length * heads;
      result.tiles.push_back(with_masks(length, std::min(length, masked), further));
      result.units.push_back(with_masks(length, std::min(length, masked), in_step) + 1.0);
    }
  return result;
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
  const double at_work = std::min(blocks.count, static_cast<double>(gpu.sm.count * blocks.resident));
  PanelTraffic traffic;
  const double own = 2.0 * owned * d * element * (backward ? groups : 0.5 * heads);
  traffic.first = own + panels * groups;
  traffic.asked = std::max(traffic.first, own + blocks.products * std::min(walked_tile, walked) * 2.0 * d * element);
  traffic.cold = std::min(cold_bytes, traffic.first);
  traffic.footprint = std::min(groups, 2.0) * panels;  // a head whose blocks end and the next
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
    double costs = 0.0;
    for (const double length : blocks_.tiles) costs += blocks_.cycles(length, resident);
    clocked_ = 1.0 - blocks_.unclocked * static_cast<double>(blocks_.tiles.size()) / costs;
    if (work.causal) scheduled(resident);
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
    const double share = resident > 1 ? 1.0 / resident + (1.0 - 1.0 / resident) * kGainAlone : 1.0;
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
    result.total = result.fixed + result.fill + overlapped(result.compute, result.memory, constants_.overlap);
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
  AttentionTime best_{.total = std::numeric_limits<double>::infinity()};
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
