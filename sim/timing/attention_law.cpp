#include "sim/timing/attention_law.h"
#include "sim/timing/achieved_bandwidth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/timing/block_schedule.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/gemm_constants.h"
#include "sim/timing/laws.h"
#include "sim/units/ceil_div.h"
#include "sim/workload/op.h"

namespace ridgeline {
namespace {

/// Thread operations a score needs besides its exponential: scale, maximum, sum, conversion.
constexpr double kSoftmaxOperations = 2.8;
/// Random bits of dropout, four numbers of 32 bits from a run of Philox. Set on cuDNN's kernels of four whole steps on
/// an H200 (without it 0.52 to 0.64 of the time they took forward, 0.73 to 0.88 backward; with it 0.93 to 1.10); the
/// four shapes of h200/more/steps.jsonl.gz, looked at after that, 0.90 to 1.04, CUTLASS' kernels in fp32 0.92 and 0.98.
constexpr double kDropoutOperations = 27.0;
/// FlashAttention makes 16 numbers of 8 bits from one run. Not measured.
constexpr double kFlashDropoutOperations = 6.0;
/// Reading, converting and adding a mask. Set on one shape (batch 4, 16 heads, 1024 positions, 64 wide); the backward
/// kernel walks it against its layout.
constexpr double kBiasOperations = 15.0, kBiasOperationsBackward = 39.0;

double quartic_norm(double a, double b) {
  const double a2 = a * a, b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

}  // namespace

Pipe attention_pipe(const AttentionWork& work, const Gpu& gpu) {
  const auto backend = static_cast<AttentionBackend>(work.backend);
  if (backend == AttentionBackend::cudnn && gpu.sm.warpgroup_mma) return Pipe::tensor_wgmma;
  if (work.type == DType::fp32 && gpu.sm.rates.tensor_tf32 <= 0.0) return Pipe::fp32;
  if (work.type == DType::bf16 && gpu.sm.rates.tensor_bf16 <= 0.0) return Pipe::fp32;
  if (work.type == DType::fp16 && gpu.sm.rates.tensor_fp16 <= 0.0) return Pipe::fp32;
  return Pipe::tensor_mma;
}

double attention_rate(const AttentionWork& work, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  const Pipe pipe = attention_pipe(work, gpu);
  if (pipe == Pipe::fp32) return rates.fp32;
  const double tensor = work.type == DType::bf16   ? rates.tensor_bf16
                        : work.type == DType::fp16 ? rates.tensor_fp16
                        : work.type == DType::tf32 ? rates.tensor_tf32
                                                   : rates.tensor_tf32 / 3.0;
  return pipe == Pipe::tensor_mma && gpu.sm.warpgroup_mma ? tensor * kMmaSyncShareOfWgmma : tensor;
}

AttentionBlocks attention_blocks(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants) {
  const bool backward = work.part == AttentionWork::Part::backward;
  // CUTLASS' fused kernels stop at the end of a short sequence; the others compute whole tiles.
  const bool stops = static_cast<AttentionBackend>(work.backend) == AttentionBackend::efficient;
  const auto used = [stops](int tile, std::int64_t length) {
    return static_cast<double>(stops ? std::min<std::int64_t>(tile, (length + 63) / 64 * 64) : tile);
  };
  const double scores = used(work.tile_q, work.seq_q) * used(work.tile_k, work.seq_k);
  const double products = backward ? 5.0 : 2.0;
  AttentionBlocks result;
  result.math = products * scores * static_cast<double>(work.head_dim) / attention_rate(work, gpu);
  const bool flash = static_cast<AttentionBackend>(work.backend) == AttentionBackend::flash;
  double operations = kSoftmaxOperations;
  if (work.dropout) operations += flash ? kFlashDropoutOperations : kDropoutOperations;
  if (work.bias) operations += backward ? kBiasOperationsBackward : kBiasOperations;
  result.softmax = scores * (1.0 / gpu.sm.rates.special + operations / gpu.sm.rates.fp32);
  const bool wide = work.head_dim > 64;
  // Every warp reads the operand it does not own: half a tile's products reuse each byte over a warp's 32 rows.
  const double operand_bytes = products * scores * static_cast<double>(work.head_dim * bytes_of(work.type)) / 32.0;
  const double loads = operand_bytes / gpu.sm.shared_bandwidth.value() *
                       (wide ? constants.operand_loads_wide : constants.operand_loads_narrow);
  const double math = result.math / (wide ? constants.utilization_wide : constants.utilization_narrow) + loads;
  result.latency = wide ? constants.tile_cycles_wide : constants.tile_cycles_narrow;
  const bool uneven = work.seq_q % work.tile_q != 0 || work.seq_k % work.tile_k != 0;
  const double edges = !uneven        ? 1.0
                       : !work.causal ? constants.uneven
                       : wide         ? constants.uneven_causal_wide
                                      : constants.uneven_causal_narrow;
  result.busy = edges * (std::max(math, result.softmax) + constants.exposed * std::min(math, result.softmax));
  result.block = constants.block_cycles;

  // Blocks of one head, in launch order, in tiles.
  const double owned = backward ? work.tile_k : work.tile_q, walked = backward ? work.tile_q : work.tile_k;
  const double own_length = static_cast<double>(backward ? work.seq_k : work.seq_q),
               walk_length = static_cast<double>(backward ? work.seq_q : work.seq_k);
  const double blocks = ceil_div(own_length, owned), steps = ceil_div(walk_length, walked);
  const double heads = static_cast<double>(work.batch * work.heads);
  result.count = blocks * heads * work.splits;
  result.resident =
      static_cast<int>(std::clamp(ceil_div(result.count, gpu.sm.count), 1.0, static_cast<double>(work.blocks_per_sm)));
  if (!work.causal) {
    result.tiles.push_back(ceil_div(steps, work.splits));
    result.repeats = result.count;
    return result;
  }
  result.extra = constants.diagonal_tiles * owned / walked;
  result.repeats = heads;
  const double shift = static_cast<double>(work.seq_k - work.seq_q);
  for (double split = 0; split < work.splits; ++split)
    for (double i = 0; i < blocks; ++i) {
      double length;
      if (backward) {
        const double first = std::max(0.0, std::floor((i * owned - shift) / walked));
        length = std::max(0.0, steps - first);
      } else {
        length = std::min(steps, ceil_div(std::max(0.0, (i + 1.0) * owned + shift), walked));
        const double share = ceil_div(steps, work.splits);
        length = std::clamp(length - split * share, 0.0, share);
      }
      result.tiles.push_back(length);
    }
  return result;
}

AttentionTime fused_attention_time(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants,
                                   double cold_bytes, double written_bytes) {
  const AttentionBlocks blocks = attention_blocks(work, gpu, constants);
  const double sms = gpu.sm.count;
  const int slots = static_cast<int>(sms * blocks.resident);
  double cycles = 0.0, tiles = 0.0;
  for (const double length : blocks.tiles) tiles += length * blocks.repeats;
  if (!work.causal) {
    const double per_block = blocks.tiles[0], full = std::floor(blocks.count / slots + 1e-9),
                 rest = blocks.count - full * slots;
    cycles = full * blocks.cycles(per_block, blocks.resident);
    if (rest > 0.5) cycles += blocks.cycles(per_block, ceil_div(rest, sms));
  } else {
    static thread_local std::vector<double> costs;
    costs.clear();
    for (const double length : blocks.tiles) costs.push_back(blocks.cycles(length, blocks.resident));
    cycles = schedule_end(costs, blocks.repeats, slots);
  }

  AttentionTime result;
  result.math = blocks.math;
  result.softmax = blocks.softmax;
  result.latency = blocks.latency;
  result.activity = std::clamp(tiles * blocks.math / sms / cycles, 0.0, 1.0);
  result.clock = kernel_clock(gpu, attention_pipe(work, gpu), result.activity).value();
  result.compute = cycles / result.clock;
  result.fixed = constants.fixed_cycles / result.clock;
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  const double read_bandwidth = achieved.dram_read * constants.read_share, write_bandwidth = achieved.dram_write;
  result.fill = cold_bytes / read_bandwidth * std::min(1.0, slots / blocks.count);
  result.memory = cold_bytes / read_bandwidth - result.fill + written_bytes / write_bandwidth;
  result.total = result.fixed + result.fill + quartic_norm(result.compute, result.memory);
  return result;
}

KernelTime attention_time(const KernelLaunch& launch, const AttentionWork& work, const Gpu& gpu, Residency residency) {
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
  result.dram_write_bytes = launch.written_bytes();
  result.l2_hit_rate = read > 0.0 ? 1.0 - cold / read : 0.0;
  const double resident = std::max(1, work.blocks_per_sm);
  result.occupancy = std::min(1.0, resident * launch.threads_per_block / 32.0 / gpu.sm.max_warps);
  result.waves = launch.blocks() / (gpu.sm.count * resident);

  const bool helper = work.part != AttentionWork::Part::forward && work.part != AttentionWork::Part::backward;
  if (helper) {
    const AttentionHelperConstants& constants = attention_helper_constants(work.part);
    const double fixed = constants.fixed_cycles / gpu.clock.sustained.value();
    const double moving =
        (launch.read_bytes() + launch.written_bytes()) / (constants.bandwidth_share * gpu.dram.bandwidth.value());
    result.time = Seconds{fixed + moving};
    result.limiter = moving > fixed ? Limiter::dram : Limiter::latency;
    return result;
  }
  const AttentionConstants& constants = attention_constants(attention_class_of(work));
  const AttentionTime part = fused_attention_time(work, gpu, constants, cold, missed_writes);
  const Seconds limited =
      power_limited(gpu, launch.pipe, launch.type, launch.flops, cold + missed_writes, Seconds{part.total});
  result.time = limited;
  result.math_utilization = part.activity;
  const double start = part.fixed + part.fill;
  if (limited.value() > part.total * 1.001) result.limiter = Limiter::compute;
  else if (start > part.compute && start > part.memory) result.limiter = Limiter::latency;
  else if (part.memory > part.compute) result.limiter = Limiter::dram;
  else if (part.activity < 0.25) result.limiter = Limiter::latency;
  else result.limiter = Limiter::compute;
  return result;
}

}  // namespace ridgeline
