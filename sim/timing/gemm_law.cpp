#include "sim/timing/gemm_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/timing/achieved_bandwidth.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/laws.h"

namespace ridgeline {
namespace {

/// Operands larger than this share of the L2 start to be read more than once, and are so entirely at kRefetchedAll.
constexpr double kRefetchedFrom = 20.0 / 60.0, kRefetchedAll = 80.0 / 60.0;

/// Tiles an SM up to which split-K is considered: with a second kernel that adds up, and in place; and the least k of a
/// split (profiled products of an H200).
constexpr double kSplitBelow = 1.0, kSplitInPlaceFrom = 1.0 / 3.0, kSplitInPlaceBelow = 10.0, kLeastSplit = 64.0;
/// Fewest k-steps of a split of a persistent kernel (147 of 152 profiled ones).
constexpr double kLeastStepsOfSplit = 20.0;
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

/// How badly rows of this pitch straddle `line` bytes: 0 for its multiples, then growing as the offsets get finer; of
/// 128: 0.13, 0.42, 0.67 for odd multiples of 64, 32, 16 bytes.
double straddling(std::int64_t pitch, std::int64_t element, std::int64_t line) {
  const std::int64_t bytes = pitch * element;
  const std::int64_t unit = bytes & -bytes;
  const double missing = 1.0 - static_cast<double>(std::min(unit, line)) / static_cast<double>(line);
  return missing * missing * missing;
}
/// What a load of a row fetches at once, and the pieces that DRAM is written in.
constexpr std::int64_t kLine = 128, kWritten = 64;

/// As ceil_div on doubles, but inline: the choice of a kernel asks for hundreds of them.
double covers(double length, double piece) {
  const double quotient = length / piece - 1e-9;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(quotient));
  return whole < quotient ? whole + 1.0 : whole;
}

double fourth(double x) { return x * x * x * x; }
double fourth_root(double x) { return std::sqrt(std::sqrt(x)); }

/// Maxima with rounded edges: pipes that are nearly equally busy get in each other's way.
double soft_maximum(double a, double b) { return fourth_root(fourth(a) + fourth(b)); }
double soft_maximum(double a, double b, double c, double d) {
  return fourth_root(fourth(a) + fourth(b) + fourth(c) + fourth(d));
}

/// Clusters of blocks of persistent kernels: along m and n.
struct ClusterShape {
  double along_m, along_n;
};
constexpr std::array kClustersOfEight{ClusterShape{4, 2}, ClusterShape{2, 4}};
constexpr std::array kClustersOfFour{ClusterShape{4, 1}, ClusterShape{1, 4}, ClusterShape{2, 2}};
constexpr std::array kPairs{ClusterShape{2, 1}, ClusterShape{1, 2}};

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
  const std::int64_t element = bytes_of(problem.type);
  a_straddle_ = 1.0 + c_.misaligned_load * straddling(a_transposed ? problem.m : problem.k, element, kLine);
  b_straddle_ = 1.0 + c_.misaligned_load * straddling(b_transposed ? problem.k : problem.n, element, kLine);
  write_penalty_ = 1.0 + c_.misaligned_write * straddling(problem.n, element, kWritten);
  store_penalty_ = 1.0 + c_.misaligned_store * straddling(problem.n, element, kWritten);
  load_slots_ = c_.load_slots *
                (b_transposed   ? c_.load_slots_nt
                 : a_transposed ? c_.load_slots_tn
                                : 1.0) /
                gpu.sm.issue_rate;
  if (a_transposed) transpose_a_ = transpose_b_ = c_.transpose_both;
  else if (!b_transposed) transpose_b_ = c_.transpose_b;
  sms_ = gpu.sm.count;
  rate_ = pipe_rate(problem, gpu);
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
  write_bandwidth_ = achieved.dram_write * c_.write_share;
  l2_bandwidth_ = achieved.l2_read;
  const double cache = gpu.l2.capacity.value();
  reuse_from_ = kRefetchedFrom * cache;
  reuse_over_ = (kRefetchedAll - kRefetchedFrom) * cache;
  fixed_ = (c_.fixed_cycles + (problem.bias ? c_.bias_cycles : 0.0)) / clock_;
  least_math_ = 1.0 / (rate_ * c_.utilization * clock_);
  memset_ = gpu.launch.memset.value();
}

double GemmLaw::tiles(const GemmTile& tile) const { return covers(m_, tile.m) * covers(n_, tile.n) * batch_; }

bool GemmLaw::needs_counter(const GemmTile& tile, int splits) const {
  if (!persistent_) return tile.stream_k;
  return splits == 1 && (tile.stream_k || tiles(tile) > 2.0 * sms_);
}

bool GemmLaw::may_split(const GemmTile& tile, int splits) const {
  if (splits == 1) return true;
  if (fused_bias_)
    return false;  // the epilogue that adds it cannot run on partial sums: 1 of 152 profiled addmm splits
  if (persistent_ && (tile.stream_k || element_ > 2.0)) return false;  // the tf32 kernels share out k-steps instead
  if (persistent_) return tiles(tile) * splits <= sms_ && k_ >= kLeastStepsOfSplit * splits * tile.k;
  if (batch_ != 1.0 || k_ / splits < kLeastSplit) return false;
  const double count = tiles(tile);
  // The fp32 kernels that are not CUTLASS's add up in place, always; CUTLASS's where a second kernel had too much to
  // add.
  if (tile.stream_k)
    return count <= kSplitInPlaceBelow * sms_ && (grouped(tile) ? count >= kSplitInPlaceFrom * sms_ : cuda_cores_);
  return grouped(tile) || !cuda_cores_ ? count <= kSplitBelow * sms_ : false;
}

GemmLaw::Cluster GemmLaw::cluster(const GemmTile& tile, int splits) const {
  const double rows = covers(m_, tile.m), columns = covers(n_, tile.n), copies = batch_ * splits;
  const double count = rows * columns * copies;
  const auto blocks_of = [&](const ClusterShape& shape) {
    return covers(rows, shape.along_m) * shape.along_m * covers(columns, shape.along_n) * shape.along_n * copies;
  };
  const auto drawn = [&](const Cluster& c) { return tile.m / c.along_n + tile.n / c.along_m; };
  Cluster best{1, 1, count, std::min(count, sms_)};
  if (count > sms_) {
    // More tiles than SMs: pairs, where they cost no round more.
    const auto rounds = [&](const Cluster& c) { return covers(c.blocks, sms_); };
    for (const ClusterShape& shape : kPairs) {
      const Cluster pair{shape.along_m, shape.along_n, blocks_of(shape), sms_};
      const double more = rounds(pair) - rounds(best);
      if (more < 0.0 || (more == 0.0 && drawn(pair) < drawn(best))) best = pair;
    }
    return best;
  }
  const auto largest_fitting = [&](std::span<const ClusterShape> shapes, double room) {
    for (const ClusterShape& shape : shapes) {
      const double blocks = blocks_of(shape);
      if (blocks > room) continue;
      const Cluster fits{shape.along_m, shape.along_n, blocks, blocks};
      const bool other = best.along_m * best.along_n != shape.along_m * shape.along_n;
      if (other || blocks < best.blocks || (blocks == best.blocks && drawn(fits) < drawn(best))) best = fits;
    }
    return best.along_m * best.along_n > 1.0;
  };
  const double clusterable = std::floor(kClusterableShare * sms_);
  if (!largest_fitting(kClustersOfEight, clusterable) && !largest_fitting(kClustersOfFour, clusterable))
    largest_fitting(kPairs, sms_);
  return best;
}

GemmLaw::Compute GemmLaw::persistent(const GemmTile& tile, int splits) const {
  const Cluster shared_by = cluster(tile, splits);
  const double count = tiles(tile) * splits, rounds = covers(shared_by.blocks, shared_by.placed),
               steps = covers(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.wgmma_m) * tile.wgmma_n;
  const double math = area * tile.k / rate_;
  const double operand_reads = tile.wgmma_m + static_cast<double>((tile.wgmma_m + 63) / 64 * tile.wgmma_n);
  const double shared = tile.k * element_ * operand_reads / shared_bytes_;
  const double latency = c_.latency_cycles / std::max(1, tile.stages - 1);
  // Every block receives both panels; those of a cluster draw them once from the L2.
  const double a_panel = a_straddle_ * tile.m, b_panel = b_straddle_ * tile.n;
  const double port = tile.k * element_ * (a_panel + b_panel) / c_.port_bytes;
  const double l2 = tile.k * element_ * (a_panel / shared_by.along_n + b_panel / shared_by.along_m) *
                    (shared_by.placed / sms_) / c_.l2_bytes;
  // Transposing panels takes turns with the math.
  const double bound = math / c_.utilization + tile.k * (transpose_a_ * tile.m + transpose_b_ * tile.n),
               other = std::max(std::max(shared, latency), std::max(port, l2));
  constexpr double kMostRounding = 1.4143;  // the fourth root of four: the soft maximum of four equals
  const double step = other * kMostRounding <= bound ? bound : std::max(bound, soft_maximum(shared, latency, port, l2));
  const double stored = splits > 1 ? 4.0 : output_element_;
  const double epilogue = area * stored / c_.epilogue_bytes * store_penalty_ + c_.epilogue_cycles;
  if (tile.stream_k) {
    // Few tiles: as many SMs share each one's k-steps as there are. More tiles than SMs: every SM gets the same number
    // of k-steps. A tile cut in pieces is written as fp32, read back and added.
    const double fix_up = c_.fix_up * area * 8.0 / c_.epilogue_bytes;
    const double shares = std::floor(sms_ / count), even = count / sms_;
    const double cycles =
        count <= sms_ ? covers(steps, shares) * step + epilogue + fix_up : even * (steps * step + epilogue) + fix_up;
    return {cycles, bound, shared, latency, std::max(port, l2), count * steps * math / sms_, even, count, steps};
  }
  return {rounds * (steps * step + epilogue), bound,  shared, latency, std::max(port, l2),
          count * steps * math / sms_,        rounds, count,  steps};
}

double GemmLaw::placed(const GemmTile& tile, int splits, double count) const {
  if (!grouped(tile)) return count;
  const double columns = covers(n_, tile.n);
  const double group = columns >= 6.0 ? 8.0 : columns >= 3.0 ? 4.0 : columns >= 2.0 ? 2.0 : 1.0;
  const double padded = covers(m_, tile.m) * covers(columns, group) * group * batch_ * splits;
  return padded <= sms_ * tile.blocks_per_sm ? padded : count;
}

GemmLaw::Compute GemmLaw::tiled(const GemmTile& tile, int splits) const {
  const double count = tiles(tile) * splits, rounds = covers(placed(tile, splits, count), sms_),
               steps = covers(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.m) * tile.n;
  const double math = area * tile.k / rate_;
  // Rows and columns outside the matrix are not loaded.
  const double rows = m_ / covers(m_, tile.m), columns = n_ / covers(n_, tile.n);
  const double loads = load_slots_ * (a_straddle_ * rows + b_straddle_ * columns) * tile.k + c_.step_cycles;
  // On the CUDA cores a multiply-add takes an issue slot; where the lanes are slower than the issue, loads hide behind
  // them.
  const double step = cuda_cores_ ? std::max(math / c_.utilization, area * tile.k / issue_rate_ + loads)
                                  : math / c_.utilization + loads;
  const double stored = splits > 1 && !tile.stream_k ? 4.0 : output_element_;
  const double epilogue = c_.epilogue_cycles + area * stored / c_.epilogue_bytes;
  const double resident = std::min(static_cast<double>(tile.blocks_per_sm), rounds);
  const double full = static_cast<double>(static_cast<std::int64_t>(rounds / resident + 1e-9)),
               rest = rounds - full * resident;
  const auto set = [&](double blocks) {
    return steps * (soft_maximum(blocks * step, c_.latency_cycles) + c_.exposed_cycles) +
           epilogue * (1.0 + (blocks - 1.0) * (1.0 - c_.epilogue_overlap));
  };
  double cycles = full * set(resident) + (rest > 0.5 ? set(rest) : 0.0);
  if (tile.stream_k) cycles += (splits - 1) * c_.handoff_cycles;
  return {cycles, step,  loads, (c_.latency_cycles + c_.exposed_cycles) / resident, 0.0, count * steps * math / sms_,
          rounds, count, steps};
}

double GemmLaw::split_reduction(int splits) const {
  const double bytes = (4.0 * splits + output_element_) * m_ * n_ * batch_;
  return (c_.split_cycles + splits * c_.split_step_cycles) / clock_ + bytes / (c_.split_bandwidth * dram_bandwidth_);
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
  const double loading = refetched / read_bandwidth_ + (read_bytes_ - cold_bytes_) / l2_bandwidth_;
  const double first_loads = cold_bytes_ / read_bandwidth_ + (read_bytes_ - cold_bytes_) / l2_bandwidth_;
  const double stages = std::min(static_cast<double>(tile.stages), work.k_steps);
  const double streamed =
      c_.first_loads * first_loads * std::min(1.0, resident_blocks / work.tiles) * stages / work.k_steps;
  result.fill = streamed + stages * c_.stage_cycles / clock_;
  const bool partial = splits > 1 && !tile.stream_k;
  const double written = partial ? 0.0 : written_bytes_ * write_penalty_;
  result.memory = loading - streamed + written / write_bandwidth_;
  result.total = result.fixed + result.fill + soft_maximum(result.compute, result.memory);
  result.dram_read = refetched;
  result.dram_write = partial ? 4.0 * splits * m_ * n_ * batch_ : written_bytes_;
  result.l2_bytes = work.tiles * work.k_steps * tile.k * element_ * (tile.m + tile.n);
  return result;
}

double GemmLaw::seconds(const GemmTile& tile, int splits, double give_up) const {
  // The math of the fullest SM alone settles most candidates.
  if (!tile.stream_k) {
    const double steps = covers(k_, static_cast<double>(splits) * tile.k), rounds = covers(tiles(tile) * splits, sms_);
    if (fixed_ + rounds * steps * (static_cast<double>(tile.m) * tile.n * tile.k) * least_math_ >= give_up)
      return std::numeric_limits<double>::infinity();
  }
  const Compute work = compute(tile, splits);
  double extra = fixed_;
  if (needs_counter(tile, splits)) extra += memset_;
  if (splits > 1 && !tile.stream_k) extra += split_reduction(splits);
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
