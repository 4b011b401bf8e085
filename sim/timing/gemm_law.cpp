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
/// Of a 2:4 sparse operand half of the values are stored, and a sixteenth of its dense bytes says which: four bits a
/// group of four 16-bit or two tf32 values.
constexpr double kSparseStored = 0.5 + 1.0 / 16.0;

/// What a load of a row fetches at once, and the pieces that DRAM is written in.
constexpr std::int64_t kLine = 128, kWritten = 64;

double fourth(double x) { return x * x * x * x; }
double fourth_root(double x) { return std::sqrt(std::sqrt(x)); }

/// Maxima with rounded edges: pipes that are nearly equally busy get in each other's way.
double soft_maximum(double a, double b) { return fourth_root(fourth(a) + fourth(b)); }
double soft_maximum(double a, double b, double c) { return fourth_root(fourth(a) + fourth(b) + fourth(c)); }
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

double stored_share(bool sparse) { return sparse ? kSparseStored : 1.0; }

double gemm_flops(const GemmWork& work) {
  const double dense = 2.0 * static_cast<double>(work.batch) * static_cast<double>(work.m) *
                       static_cast<double>(work.n) * static_cast<double>(work.k);
  return work.sparse == SparseOperand::none ? dense : 0.5 * dense;
}

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
  if (a_transposed) transpose_both_ = c_.transpose_both;
  else if (!b_transposed) transpose_b_ = c_.transpose_b;
  sms_ = gpu.sm.count;
  clusterable_ = std::floor(kClusterableShare * sms_);
  rate_ = pipe_rate(problem, gpu);
  if (problem.sparse != SparseOperand::none) rate_ *= gpu.sm.rates.sparsity_factor;
  flops_ = gemm_flops(problem);
  issue_rate_ = 32.0 * gpu.sm.schedulers * gpu.sm.issue_rate * c_.issue_share;
  shared_bytes_ = gpu.sm.shared_bandwidth.value();
  const Pipe pipe = cuda_cores_ ? Pipe::fp32 : Pipe::tensor_mma;
  clock_ = kernel_clock(gpu, pipe, 0.0).value();
  droop_ = clock_ - kernel_clock(gpu, pipe, 1.0).value();
  droop_cycles_ = c_.droop_seconds * clock_;
  a_stored_ = stored_share(problem.sparse == SparseOperand::a);
  b_stored_ = stored_share(problem.sparse == SparseOperand::b);
  read_bytes_ = element_ * batch_ * (a_stored_ * m_ * k_ + b_stored_ * n_ * k_) * problem.distinct_reads;
  cold_bytes_ = read_bytes_ * read_miss;
  const double results = element_ * batch_ * m_ * n_;
  written_bytes_ = results * write_miss;
  dram_bandwidth_ = gpu.dram.bandwidth.value();
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  read_bandwidth_ = achieved.dram_read * c_.read_share;
  write_bandwidth_ = achieved.dram_write * c_.write_share;
  l2_bandwidth_ = achieved.l2_read;
  const double cache = gpu.l2.capacity.value();
  reuse_from_ = kRefetchedFrom * cache;
  reuse_over_ = (kRefetchedAll - kRefetchedFrom) * cache;
  per_rate_ = 1.0 / rate_;
  per_sms_ = 1.0 / sms_;
  per_shared_ = 1.0 / shared_bytes_;
  per_port_ = 1.0 / c_.port_bytes;
  per_l2_ = 1.0 / c_.l2_bytes;
  per_epilogue_ = 1.0 / c_.epilogue_bytes;
  per_handoff_ = c_.handoff_bytes > 0.0 ? 1.0 / c_.handoff_bytes : 0.0;
  per_copy_ = c_.copy_bytes > 0.0 ? 1.0 / c_.copy_bytes : 0.0;
  hit_time_ = (read_bytes_ - cold_bytes_) / l2_bandwidth_;
  first_loads_ = cold_bytes_ / read_bandwidth_ + hit_time_;
  const double hit_bandwidth = std::max(achieved.l2_write, write_bandwidth_);
  written_time_ = write_penalty_ * (written_bytes_ / write_bandwidth_ + (results - written_bytes_) / hit_bandwidth);
  fixed_ = (c_.fixed_cycles + c_.cold_cycles * read_miss + (problem.bias ? c_.bias_cycles : 0.0)) / clock_;
  memset_ = gpu.launch.memset.value();
}

GemmLaw::Cluster GemmLaw::cluster(const GemmTile& tile, int splits) const {
  const double rows = pieces_of(m_, tile.m), columns = pieces_of(n_, tile.n), copies = batch_ * splits;
  const double count = rows * columns * copies;
  const auto blocks_of = [&](const ClusterShape& shape) {
    return pieces_of(rows, shape.along_m) * shape.along_m * pieces_of(columns, shape.along_n) * shape.along_n * copies;
  };
  const auto drawn = [&](const Cluster& c) { return a_stored_ * tile.m / c.along_n + b_stored_ * tile.n / c.along_m; };
  Cluster best{1, 1, count, std::min(count, sms_)};
  if (count > sms_) {
    // More tiles than SMs: pairs, where they cost no round more.
    const auto rounds = [&](const Cluster& c) { return pieces_of(c.blocks, sms_); };
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
  if (!largest_fitting(kClustersOfEight, clusterable_) && !largest_fitting(kClustersOfFour, clusterable_))
    largest_fitting(kPairs, sms_);
  return best;
}

GemmLaw::Compute GemmLaw::persistent(const GemmTile& tile, int splits, double whole) const {
  const Cluster shared_by = cluster(tile, splits);
  const double count = whole * splits, rounds = pieces_of(shared_by.blocks, shared_by.placed),
               steps = pieces_of(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.wgmma_m) * tile.wgmma_n;
  const double math = area * tile.k * per_rate_;
  const bool turned = tile.wgmma_m != tile.m;
  const double operand_reads = (turned ? b_stored_ : a_stored_) * tile.wgmma_m +
                               (turned ? a_stored_ : b_stored_) * ((tile.wgmma_m + 63) / 64 * tile.wgmma_n);
  const double shared = tile.k * element_ * operand_reads * per_shared_;
  const double latency = c_.latency_cycles / std::max(1, tile.stages - 1);
  // Every block receives both panels; those of a cluster draw them once from the L2.
  const double a_panel = a_straddle_ * a_stored_ * tile.m, b_panel = b_straddle_ * b_stored_ * tile.n;
  const double port = tile.k * element_ * (a_panel + b_panel) * per_port_;
  const double l2 = tile.k * element_ * (a_panel / shared_by.along_n + b_panel / shared_by.along_m) *
                    (shared_by.placed * per_sms_) * per_l2_;
  // Transposing panels takes turns with the math.
  const double bound = math / c_.utilization + tile.k * (transpose_both_ * (tile.m + tile.n) + transpose_b_ / tile.n),
               other = std::max(std::max(shared, latency), std::max(port, l2));
  constexpr double kMostRounding = 1.4143;  // the fourth root of four: the soft maximum of four equals
  const double step = other * kMostRounding <= bound ? bound : std::max(bound, soft_maximum(shared, latency, port, l2));
  const double stored = splits > 1 ? 4.0 : output_element_;
  const double epilogue = area * stored * per_epilogue_ * store_penalty_ + c_.epilogue_cycles;
  if (tile.stream_k) {
    // Few tiles: as many SMs share each one's k-steps as there are. More tiles than SMs: every SM gets the same number
    // of k-steps. A tile cut in pieces is written as fp32, read back and added.
    const double fix_up = c_.fix_up * area * 8.0 / c_.epilogue_bytes;
    const double shares = std::floor(sms_ / count), even = count / sms_;
    const double cycles =
        count <= sms_ ? pieces_of(steps, shares) * step + epilogue + fix_up : even * (steps * step + epilogue) + fix_up;
    return {cycles, bound, shared, latency, std::max(port, l2), count * steps * math * per_sms_, even, count, steps};
  }
  // The next tile's loads are under way while a tile is stored.
  const double stores = epilogue * (1.0 + (rounds - 1.0) * (1.0 - c_.epilogue_overlap));
  return {rounds * steps * step + stores,  bound,  shared, latency, std::max(port, l2),
          count * steps * math * per_sms_, rounds, count,  steps};
}

double GemmLaw::placed(const GemmTile& tile, int splits, double count) const {
  if (!grouped(tile)) return count;
  const double columns = pieces_of(n_, tile.n);
  const double group = columns >= 6.0 ? 8.0 : columns >= 3.0 ? 4.0 : columns >= 2.0 ? 2.0 : 1.0;
  const double padded = pieces_of(m_, tile.m) * pieces_of(columns, group) * group * batch_ * splits;
  return padded <= sms_ * tile.blocks_per_sm ? padded : count;
}

GemmLaw::Compute GemmLaw::tiled(const GemmTile& tile, int splits, double whole) const {
  const double count = whole * splits, rounds = rounds_of(placed(tile, splits, count)),
               steps = pieces_of(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.m) * tile.n;
  const double math = area * tile.k * per_rate_;
  // Rows and columns outside the matrix are not loaded.
  const double rows = a_stored_ * m_ / pieces_of(m_, tile.m), columns = b_stored_ * n_ / pieces_of(n_, tile.n);
  const double panels = (a_straddle_ * rows + b_straddle_ * columns) * tile.k;
  const double loads = load_slots_ * (grouped(tile) ? 1.0 : c_.own_load_slots) * panels,
               copies = panels * element_ * per_copy_;
  // On the CUDA cores a multiply-add takes an issue slot; where the lanes are slower than the issue, loads, barriers
  // and latency hide behind them.
  const double bound = math / c_.utilization, step = cuda_cores_ ? area * tile.k / issue_rate_ + loads : bound + loads;
  const double stored = splits > 1 && !tile.stream_k ? 4.0 : output_element_;
  const double epilogue = c_.epilogue_cycles + area * stored * per_epilogue_ * store_penalty_;
  const double resident = std::min(static_cast<double>(tile.blocks_per_sm), rounds);
  const double full = static_cast<double>(static_cast<std::int64_t>(rounds / resident + 1e-9)),
               rest = rounds - full * resident;
  const auto set = [&](double blocks) {
    return steps * std::max(blocks * bound, soft_maximum(blocks * step, blocks * copies, c_.latency_cycles) +
                                                c_.exposed_cycles * tile.k) +
           epilogue * (1.0 + (blocks - 1.0) * (1.0 - c_.epilogue_overlap));
  };
  double cycles = full * set(resident) + (rest > 0.5 ? set(rest) : 0.0);
  if (tile.stream_k) cycles += (splits - 1) * (c_.handoff_cycles + area * output_element_ * per_handoff_);
  return {cycles, std::max(step, bound),           loads,  (c_.latency_cycles + c_.exposed_cycles * tile.k) / resident,
          0.0,    count * steps * math * per_sms_, rounds, count,
          steps};
}

double GemmLaw::split_reduction(const GemmTile& tile, int splits) const {
  const SplitReduction& kernel = split_reduction_of(cuda_cores_ && !grouped(tile));
  const double results = m_ * n_ * batch_;
  return (kernel.start_cycles + splits * kernel.split_cycles + results * per_sms_ * kernel.element_cycles) /
             gpu_.clock.sustained.value() +
         4.0 * splits * results / (kernel.l2_share * gpu_.l2.read_bandwidth.value());
}

GemmTime GemmLaw::time(const GemmTile& tile, int splits) const {
  return time_of(compute(tile, splits, tiles(tile)), tile, splits);
}

GemmTime GemmLaw::time_of(const Compute& work, const GemmTile& tile, int splits) const {
  GemmTime result;
  result.activity = std::clamp(work.busy / work.cycles, 0.0, 1.0);
  const double cycle = 1.0 / clock_of(work);
  result.compute = work.cycles * cycle;
  const double per_step = work.rounds * work.k_steps * cycle;
  result.math = work.math * per_step;
  result.shared = work.shared * per_step;
  result.latency = work.latency * per_step;
  result.port = work.port * per_step;
  result.rounds = work.rounds;
  result.fixed = fixed_;

  // Operands larger than the L2 are read again by later waves: a wave of `active` tiles reads a square of panels.
  const double active = std::min(work.tiles, sms_ * (persistent_ ? 1 : tile.blocks_per_sm));
  double refetched = cold_bytes_;
  if (const double share = refetched_share(); share > 0.0) {
    const double wave =
        (a_stored_ + b_stored_) * std::sqrt(active * tile.m * tile.n) * k_ * element_ * (work.tiles / splits) / active;
    refetched += std::max(0.0, wave - read_bytes_) * share;
  }
  const double resident_blocks = sms_ * (persistent_ ? 1 : tile.blocks_per_sm);
  const double loading = refetched == cold_bytes_ ? first_loads_ : refetched / read_bandwidth_ + hit_time_;
  const double stages = std::min(static_cast<double>(tile.stages), work.k_steps);
  const double streamed =
      c_.first_loads * first_loads_ * std::min(1.0, resident_blocks / work.tiles) * stages / work.k_steps;
  result.fill = streamed + stages * c_.stage_cycles / clock_;
  const bool partial = splits > 1 && !tile.stream_k;
  const double partial_bytes = partial ? 4.0 * splits * m_ * n_ * batch_ : 0.0;
  result.memory = loading - streamed + (partial ? c_.partial_writes * partial_bytes / write_bandwidth_ : written_time_);
  result.total = result.fixed + result.fill + soft_maximum(result.compute, result.memory);
  result.dram_read = refetched;
  result.dram_write = partial ? partial_bytes : written_bytes_;
  result.l2_bytes = work.tiles * work.k_steps * tile.k * element_ * (a_stored_ * tile.m + b_stored_ * tile.n);
  return result;
}

double GemmLaw::seconds(const GemmTile& tile, int splits, double give_up, double count) const {
  const Compute work = compute(tile, splits, count);
  double extra = fixed_;
  if (needs_counter(tile, splits, count)) extra += memset_;
  if (splits > 1 && !tile.stream_k) extra += split_reduction(tile, splits);
  // Compute and memory, each alone, are bounds from below.
  if (extra + std::max(work.cycles / clock_of(work), first_loads_) >= give_up)
    return std::numeric_limits<double>::infinity();
  // A capped board gains nothing from a faster candidate, only from one with less traffic and fewer helpers.
  const GemmTime product = time_of(work, tile, splits);
  const Pipe pipe = cuda_cores_ ? Pipe::fp32 : Pipe::tensor_mma;
  const Seconds limited = power_limited(gpu_, pipe, type_, flops_, product.dram_read + product.dram_write,
                                        Seconds{product.total}, Seconds{product.fixed + product.compute})
                              .time;
  return limited.value() - fixed_ + extra;
}

double share_of_few_blocks(const GemmConstants& constants, double blocks, double sms) {
  return 1.0 - constants.few_blocks * (1.0 - std::log2(std::clamp(blocks, 1.0, sms)) / std::log2(std::max(2.0, sms)));
}

KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency) {
  return gemm_time(launch, work, gpu, residency, gemm_constants(gemm_class_of(work, gpu)));
}

KernelTime gemm_time(const KernelLaunch& launch, const GemmWork& work, const Gpu& gpu, Residency residency,
                     const GemmConstants& constants) {
  KernelTime result;
  // Share of the bytes of `accesses` that is not in the L2; theirs begin at `place` of the residency.
  const auto missing = [&](const std::vector<Access>& accesses, std::size_t place) {
    double wanted = 0.0, missed = 0.0;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      wanted += accesses[i].bytes;
      missed += accesses[i].bytes * (1.0 - (place + i < residency.size() ? residency[place + i] : 0.0));
    }
    return wanted > 0.0 ? missed / wanted : 1.0;
  };
  if (work.reduces_splits) {
    const GemmLaw law(work, gpu, constants);
    result.time = Seconds{law.split_reduction(tile_of(work), work.split_k) * work.expected};
    result.limiter =
        launch.read_bytes() / gpu.dram.bandwidth.value() > 0.5 * result.time.value() ? Limiter::l2 : Limiter::latency;
    result.l2_bytes = launch.read_bytes() + launch.written_bytes();
    result.l2_hit_rate = 1.0;
    result.dram_write_bytes = launch.written_bytes();
    return result;
  }
  const GemmLaw law(work, gpu, constants, missing(launch.reads, 0), missing(launch.writes, launch.reads.size()));
  const GemmTime part = law.time(tile_of(work), work.split_k);
  const double in_step = share_of_few_blocks(constants, launch.blocks(), gpu.sm.count);
  const double total = part.total - (1.0 - in_step) * (part.fixed + part.fill) +
                       soft_maximum(in_step * part.compute, part.memory) - soft_maximum(part.compute, part.memory);
  result.time = Seconds{total};
  result.clocked = Seconds{in_step * (part.fixed + part.compute)};
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
  if (start > part.compute && start > part.memory) result.limiter = Limiter::latency;
  else if (part.memory > part.compute) result.limiter = Limiter::dram;
  else if (part.latency > part.math && part.latency > part.shared) result.limiter = Limiter::latency;
  else if (part.shared > part.math) result.limiter = Limiter::shared_memory;
  else if (part.math < 0.5 * part.compute) result.limiter = Limiter::latency;
  else result.limiter = Limiter::compute;
  limit_power(result, launch, gpu);
  result.stretch(work.expected);
  return result;
}

}  // namespace ridgeline
