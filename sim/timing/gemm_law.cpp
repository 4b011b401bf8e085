#include "sim/timing/gemm_law.h"

#include <algorithm>
#include <cmath>

#include "sim/timing/achieved_bandwidth.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

/// Output bytes that stay in the L2 as dirty lines instead of costing DRAM time, of an H200's 60 MB cache (timings;
/// counters say more, but then older dirty lines have to leave). Scales with the capacity.
constexpr double kAbsorbedShare = 3.0 / 60.0;
/// Operands larger than this share of the L2 start to be read more than once, and are so entirely at kRefetchedAll.
constexpr double kRefetchedFrom = 20.0 / 60.0, kRefetchedAll = 80.0 / 60.0;

/// Tiles an SM up to which split-K is considered.
constexpr double kSplitBelow = 2.0;
/// Share of the SMs that clusters of four and more can be placed on (120 of an H200's 132).
constexpr double kClusterableShare = 0.91;

double pipe_rate(const GemmWork& work, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  if (work.family == GemmWork::Family::simt) return rates.fp32;
  const double share = work.family == GemmWork::Family::mma_sync && gpu.sm.warpgroup_mma ? kMmaSyncShareOfWgmma : 1.0;
  switch (work.type) {
    case DType::bf16: return share * rates.tensor_bf16;
    case DType::fp16: return share * rates.tensor_fp16;
    case DType::tf32: return share * rates.tensor_tf32;
    default: return rates.fp32;
  }
}

/// How badly rows of this pitch straddle the 128-byte lines of the caches: 0 for multiples of a line, then growing as
/// the offsets get finer, 0.25, 0.56, 0.77 for odd multiples of 64, 32, 16 bytes.
double misaligned_share(std::int64_t pitch, std::int64_t element) {
  const std::int64_t bytes = pitch * element;
  const std::int64_t unit = bytes & -bytes;
  const double missing = 1.0 - static_cast<double>(std::min<std::int64_t>(unit, 128)) / 128.0;
  return missing * missing;
}

/// A maximum with rounded edges: pipes that are nearly equally busy get in each other's way.
double soft_maximum(double a, double b, double c) {
  const auto fourth = [](double x) { return x * x * x * x; };
  return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)));
}

double cubic_norm(double a, double b) {
  const double large = std::max(a, b), small = std::min(a, b);
  if (small < 0.01 * large) return large;
  return std::cbrt(a * a * a + b * b * b);
}

}  // namespace

GemmTile tile_of(const GemmWork& work) {
  GemmTile tile{.m = work.tile_m,
                .n = work.tile_n,
                .k = work.tile_k,
                .stages = work.stages,
                .blocks_per_sm = work.blocks_per_sm,
                .stream_k = work.stream_k};
  if (work.family == GemmWork::Family::wgmma) {
    const auto reads = [](int along_m, int along_n) { return along_m + (along_m + 63) / 64 * along_n; };
    const bool n_first = tile.n % 64 == 0 && (tile.m % 64 != 0 || reads(tile.n, tile.m) < reads(tile.m, tile.n));
    tile.wgmma_m = n_first ? tile.n : tile.m;
    tile.wgmma_n = n_first ? tile.m : tile.n;
  }
  return tile;
}

GemmLaw::GemmLaw(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, double read_miss,
                 double write_miss)
    : c_(constants),
      persistent_(problem.family == GemmWork::Family::wgmma),
      cuda_cores_(problem.family == GemmWork::Family::simt),
      fused_bias_(problem.bias),
      batch_(static_cast<double>(problem.batch)),
      m_(static_cast<double>(problem.m)),
      n_(static_cast<double>(problem.n)),
      k_(static_cast<double>(problem.k)),
      element_(static_cast<double>(bytes_of(problem.type))),
      output_element_(element_),
      gpu_(gpu),
      type_(cuda_cores_ ? DType::fp32 : problem.type) {
  const bool a_transposed = problem.layout == 2 || problem.layout == 3,
             b_transposed = problem.layout == 1 || problem.layout == 3;
  a_pitch_penalty_ = misaligned_share(a_transposed ? problem.m : problem.k, bytes_of(problem.type));
  b_pitch_penalty_ = misaligned_share(b_transposed ? problem.k : problem.n, bytes_of(problem.type));
  write_penalty_ = 1.0 + c_.misaligned_write * misaligned_share(problem.n, bytes_of(problem.type));
  store_penalty_ = 1.0 + c_.misaligned_store * misaligned_share(problem.n, bytes_of(problem.type));
  load_slots_ = c_.load_slots * (b_transposed ? c_.load_slots_nt : 1.0) / gpu.sm.issue_rate;
  sms_ = gpu.sm.count;
  rate_ = pipe_rate(problem, gpu);
  if (a_transposed) rate_ *= c_.rate_tn;
  else if (!b_transposed) rate_ *= c_.rate_nn;
  rate_ *= problem.rate_share;
  issue_rate_ = 32.0 * gpu.sm.schedulers * gpu.sm.issue_rate * problem.rate_share;
  shared_bytes_ = gpu.sm.shared_bandwidth.value();
  const Pipe pipe = cuda_cores_ ? Pipe::fp32 : Pipe::tensor_mma;
  clock_ = kernel_clock(gpu, pipe, 0.0).value();
  droop_ = clock_ - kernel_clock(gpu, pipe, 1.0).value();
  read_bytes_ = element_ * batch_ * (m_ * k_ + n_ * k_) * problem.distinct_reads;
  cold_bytes_ = read_bytes_ * read_miss;
  written_bytes_ = element_ * batch_ * m_ * n_ * write_miss;
  dram_bandwidth_ = gpu.dram.bandwidth.value();
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  read_bandwidth_ = achieved.dram_read * c_.read_share;
  write_bandwidth_ = achieved.dram_write;
  const double cache = gpu.l2.capacity.value();
  absorbed_ = kAbsorbedShare * cache;
  reuse_from_ = kRefetchedFrom * cache;
  reuse_over_ = (kRefetchedAll - kRefetchedFrom) * cache;
  fixed_ = c_.fixed_cycles / clock_;
  least_math_ = 1.0 / (rate_ * c_.utilization * clock_);
  memset_ = gpu.launch.memset.value();
}

double GemmLaw::tiles(const GemmTile& tile) const { return ceil_div(m_, tile.m) * ceil_div(n_, tile.n) * batch_; }

bool GemmLaw::needs_counter(const GemmTile& tile, int splits) const {
  return persistent_ && splits == 1 && (tile.stream_k || tiles(tile) > 2.0 * sms_);
}

bool GemmLaw::may_split(const GemmTile& tile, int splits) const {
  if (splits == 1) return true;
  if (fused_bias_)
    return false;  // the epilogue that adds it cannot run on partial sums: 1 of 152 profiled addmm splits
  if (persistent_ && (tile.stream_k || element_ > 2.0)) return false;  // the tf32 kernels share out k-steps instead
  if (persistent_) return tiles(tile) * splits <= sms_ && ceil_div(k_, static_cast<double>(splits) * tile.k) >= 6.0;
  // The libraries split only where tiles leave SMs idle.
  return batch_ == 1.0 && k_ / splits >= 64.0 && tiles(tile) <= kSplitBelow * sms_ &&
         tiles(tile) * splits <= 4.0 * sms_ * tile.blocks_per_sm;
}

GemmLaw::Compute GemmLaw::persistent(const GemmTile& tile, int splits) const {
  const double count = tiles(tile) * splits, rounds = ceil_div(count, sms_),
               steps = ceil_div(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.wgmma_m) * tile.wgmma_n, sides = tile.m + tile.n;
  const double math = area * tile.k / rate_;
  const double misaligned = (a_pitch_penalty_ * tile.m + b_pitch_penalty_ * tile.n) / sides;
  const double operand_reads = tile.wgmma_m + static_cast<double>((tile.wgmma_m + 63) / 64 * tile.wgmma_n);
  const double straddle = 1.0 + c_.misaligned_load * misaligned;
  const double shared = tile.k * element_ * operand_reads / shared_bytes_;
  const double latency = c_.latency_cycles / std::max(1, tile.stages - 1);
  // Clusters multicast panels: pairs of blocks in full grids (halving the longer side's traffic), four or more where
  // the grid leaves SMs over for their coarser placement.
  const double sides_loaded = count > kClusterableShare * sms_ ? 0.5 * (sides + std::min(tile.m, tile.n)) : 0.5 * sides;
  const double port = tile.k * element_ * sides_loaded * straddle / c_.port_bytes;
  const double bound = math / c_.utilization, other = std::max(std::max(shared, latency), port);
  constexpr double kMostRounding = 1.3161;  // the fourth root of three: the soft maximum of three equals
  const double step = other * kMostRounding <= bound ? bound : std::max(bound, soft_maximum(shared, latency, port));
  const double stored = splits > 1 ? 4.0 : output_element_;
  const double epilogue = area * stored / c_.epilogue_bytes * store_penalty_ + c_.epilogue_cycles;
  if (tile.stream_k) {
    // Every SM gets the same number of k-steps; a tile cut in two is written as fp32, read back and added.
    const double shared_out = count * steps / sms_;
    const double fix_up = 2.0 * area * 4.0 / c_.epilogue_bytes;
    return {std::max(shared_out, 1.0) * step + std::max(1.0, count / sms_) * epilogue + fix_up,
            math / c_.utilization,
            shared,
            latency,
            port,
            count * steps * math / sms_,
            count / sms_,
            count,
            steps};
  }
  return {rounds * (steps * step + epilogue),
          math / c_.utilization,
          shared,
          latency,
          port,
          count * steps * math / sms_,
          rounds,
          count,
          steps};
}

GemmLaw::Compute GemmLaw::tiled(const GemmTile& tile, int splits) const {
  const double count = tiles(tile) * splits, rounds = ceil_div(count, sms_),
               steps = ceil_div(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.m) * tile.n;
  const double math = area * tile.k / rate_;
  const double loads = load_slots_ * (tile.m + tile.n) * tile.k;
  // On the CUDA cores a multiply-add takes an issue slot; where the lanes are slower than the issue, loads hide behind
  // them.
  const double step = cuda_cores_ ? std::max(math / c_.utilization, area * tile.k / issue_rate_ + loads)
                                  : math / c_.utilization + loads;
  const double stored = splits > 1 ? 4.0 : output_element_;
  const double epilogue = c_.epilogue_cycles + area * stored / c_.epilogue_bytes;
  const double resident = std::min(static_cast<double>(tile.blocks_per_sm), rounds);
  const double full = static_cast<double>(static_cast<std::int64_t>(rounds / resident + 1e-9)),
               rest = rounds - full * resident;
  const auto set = [&](double blocks) {
    return steps * std::max(blocks * step, c_.latency_cycles) +
           epilogue * (1.0 + (blocks - 1.0) * (1.0 - c_.epilogue_overlap));
  };
  const double cycles = full * set(resident) + (rest > 0.5 ? set(rest) : 0.0);
  return {cycles, step, loads, c_.latency_cycles / resident, 0.0, count * steps * math / sms_, rounds, count, steps};
}

double GemmLaw::split_reduction(int splits) const {
  const double bytes = (4.0 * splits + output_element_) * m_ * n_ * batch_;
  return c_.split_cycles / clock_ + bytes / (c_.split_bandwidth * dram_bandwidth_);
}

GemmTime GemmLaw::time(const GemmTile& tile, int splits) const { return time_of(compute(tile, splits), tile, splits); }

GemmTime GemmLaw::time_of(const Compute& work, const GemmTile& tile, int splits) const {
  GemmTime result;
  result.activity = std::clamp(work.busy / work.cycles, 0.0, 1.0);
  const double clock = clock_ - droop_ * result.activity;
  result.compute = work.cycles / clock;
  const double per_step = work.rounds * work.k_steps / clock;
  result.math = work.math * per_step;
  result.shared = work.shared * per_step;
  result.latency = work.latency * per_step;
  result.port = work.port * per_step;
  result.rounds = work.rounds;
  result.fixed = fixed_;

  // Operands larger than the L2 are read again by later waves: a wave of `active` tiles reads a square of panels.
  const double active = std::min(work.tiles, sms_ * (persistent_ ? 1 : tile.blocks_per_sm));
  double refetched = cold_bytes_;
  if (batch_ == 1.0 && read_bytes_ > reuse_from_) {
    const double wave = 2.0 * std::sqrt(active * tile.m * tile.n) * k_ * element_ * (work.tiles / splits) / active;
    const double ramp = std::min(1.0, (read_bytes_ - reuse_from_) / reuse_over_);
    refetched += std::max(0.0, wave - read_bytes_) * ramp;
  }
  const double resident_blocks = sms_ * (persistent_ ? 1 : tile.blocks_per_sm);
  result.fill = cold_bytes_ / read_bandwidth_ * std::min(1.0, resident_blocks / work.tiles) *
                std::min(1.0, tile.stages / work.k_steps);
  const double written = splits > 1 ? 0.0 : std::max(0.0, written_bytes_ * write_penalty_ - absorbed_);
  result.memory = refetched / read_bandwidth_ - result.fill + written / write_bandwidth_;
  result.total = result.fixed + result.fill + cubic_norm(result.compute, result.memory);
  result.dram_read = refetched;
  result.dram_write = splits > 1 ? 4.0 * splits * m_ * n_ * batch_ : written_bytes_;
  result.l2_bytes = work.tiles * work.k_steps * tile.k * element_ * (tile.m + tile.n);
  return result;
}

double GemmLaw::seconds(const GemmTile& tile, int splits, double give_up) const {
  // The math of the fullest SM alone settles most candidates.
  if (!tile.stream_k) {
    const double steps = ceil_div(k_, static_cast<double>(splits) * tile.k),
                 rounds = ceil_div(tiles(tile) * splits, sms_);
    if (fixed_ + rounds * steps * (static_cast<double>(tile.m) * tile.n * tile.k) * least_math_ >= give_up)
      return std::numeric_limits<double>::infinity();
  }
  const Compute work = compute(tile, splits);
  double extra = fixed_;
  if (needs_counter(tile, splits)) extra += memset_;
  if (splits > 1) extra += split_reduction(splits);
  // Compute and memory, each alone, are bounds from below.
  const double clock = clock_ - droop_ * std::min(1.0, work.busy / work.cycles);
  if (extra + std::max(work.cycles / clock, cold_bytes_ / read_bandwidth_) >= give_up)
    return std::numeric_limits<double>::infinity();
  // A capped board gains nothing from a faster candidate, only from one with less traffic and fewer helpers.
  const GemmTime product = time_of(work, tile, splits);
  const Pipe pipe = cuda_cores_ ? Pipe::fp32 : Pipe::tensor_mma;
  const Seconds limited = power_limited(gpu_, pipe, type_, 2.0 * batch_ * m_ * n_ * k_,
                                        product.dram_read + product.dram_write, Seconds{product.total});
  return limited.value() - fixed_ + extra;
}

KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency) {
  KernelTime result;
  const GemmConstants& constants = gemm_constants(gemm_class_of(work, gpu));
  double wanted = 0.0, missed = 0.0;
  for (std::size_t i = 0; i < launch.reads.size(); ++i) {
    wanted += launch.reads[i].bytes;
    missed += launch.reads[i].bytes * (1.0 - (i < residency.size() ? residency[i] : 0.0));
  }
  const double miss = wanted > 0.0 ? missed / wanted : 1.0;
  if (work.reduces_splits) {
    const GemmLaw law(work, gpu, constants);
    result.time = Seconds{law.split_reduction(work.split_k)};
    result.limiter =
        launch.read_bytes() / gpu.dram.bandwidth.value() > 0.5 * result.time.value() ? Limiter::l2 : Limiter::latency;
    result.l2_bytes = launch.read_bytes() + launch.written_bytes();
    result.l2_hit_rate = 1.0;
    result.dram_write_bytes = launch.written_bytes();
    return result;
  }
  const GemmLaw law(work, gpu, constants, miss);
  const GemmTime part = law.time(tile_of(work), work.split_k);
  const Seconds limited =
      power_limited(gpu, launch.pipe, launch.type, launch.flops, part.dram_read + part.dram_write, Seconds{part.total});
  result.time = limited;
  result.dram_read_bytes = part.dram_read;
  result.dram_write_bytes = part.dram_write;
  result.l2_bytes = part.l2_bytes;
  result.l2_hit_rate = part.l2_bytes > 0.0 ? std::clamp(1.0 - part.dram_read / part.l2_bytes, 0.0, 1.0) : 0.0;
  const double resident = gpu.sm.count * std::max(1, work.blocks_per_sm);
  result.waves = launch.blocks() / resident;
  result.occupancy =
      std::min(1.0, std::max(1, work.blocks_per_sm) * launch.threads_per_block / 32.0 / gpu.sm.max_warps);
  result.math_utilization = part.activity;
  const double start = part.fixed + part.fill;
  if (limited.value() > part.total * 1.001) result.limiter = Limiter::compute;
  else if (start > part.compute && start > part.memory) result.limiter = Limiter::latency;
  else if (part.memory > part.compute) result.limiter = Limiter::dram;
  else if (part.latency > part.math && part.latency > part.shared) result.limiter = Limiter::latency;
  else if (part.shared > part.math) result.limiter = Limiter::shared_memory;
  else if (part.math < 0.5 * part.compute) result.limiter = Limiter::latency;
  else result.limiter = Limiter::compute;
  return result;
}

}  // namespace ridgeline
