#include "sim/timing/products/gemm_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/timing/clock_law.h"
#include "sim/timing/math_rate.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"

namespace ridgeline {
namespace {

/// Operands larger than this share of the L2 start to be read more than once, and are so entirely at kRefetchedAll.
constexpr double kRefetchedFrom = 20.0 / 60.0, kRefetchedAll = 80.0 / 60.0;

/// Share of the SMs that clusters of four and more can be placed on (120 of an H200's 132).
constexpr double kClusterableShare = 0.91;

/// Blocks of a wave are up to a pipeline of stages apart: lines of panels have to stay this many pipelines.
constexpr double kPipelinesApart = 2.0;

/// Lines that many SMs ask for come at most this much faster than others (an H200; NVIDIA's documents name no number).
constexpr double kSharedOverPlain = 1.45;

double pipe_rate(const GemmWork& work, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  if (work.family == GemmWork::Family::simt) return rates.fp32;
  const double rate = work.type == DType::bf16   ? rates.tensor_bf16
                      : work.type == DType::fp16 ? rates.tensor_fp16
                      : work.type == DType::tf32 ? rates.tensor_tf32
                                                 : rates.fp32;
  return work.family == GemmWork::Family::mma_sync ? mma_sync_rate(rate, work.type, gpu) : rate;
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

double cache_of(const Gpu& gpu) { return gpu.l2.replacement == L2Replacement::none ? 0.0 : gpu.l2.capacity.value(); }

double fourth(double x) { return x * x * x * x; }
double fourth_root(double x) { return std::sqrt(std::sqrt(x)); }

/// Maxima with rounded edges: pipes that are nearly equally busy get in each other's way.
double soft_maximum(double a, double b) { return fourth_root(fourth(a) + fourth(b)); }
double soft_maximum(double a, double b, double c) { return fourth_root(fourth(a) + fourth(b) + fourth(c)); }
double soft_maximum(double a, double b, double c, double d) {
  return fourth_root(fourth(a) + fourth(b) + fourth(c) + fourth(d));
}

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
                .first_stages = work.first_stages > 0 ? work.first_stages : work.stages,
                .blocks_per_sm = work.blocks_per_sm,
                .paired = work.paired,
                .stream_k = work.stream_k};
  if (work.family == GemmWork::Family::wgmma) {
    constexpr int kWgmmaRows = 64, kTcgen05Rows = 128;
    const bool whole = work.tensor_memory && (tile.m % kTcgen05Rows == 0 || tile.n % kTcgen05Rows == 0);
    const int rows = tile.mma_rows = whole ? kTcgen05Rows : kWgmmaRows;
    const auto reads = [rows](int along_m, int along_n) { return along_m + (along_m + rows - 1) / rows * along_n; };
    const bool n_first = tile.n % rows == 0 && (tile.m % rows != 0 || reads(tile.n, tile.m) < reads(tile.m, tile.n));
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
      always_summed_(problem.always_summed),
      stores_between_tiles_(problem.grouped),
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
  // Beyond half the clock a kernel that waits less would become slower.
  droop_ = std::min(clock_ - kernel_clock(gpu, pipe, 1.0).value(), 0.5 * clock_);
  a_stored_ = stored_share(problem.sparse == SparseOperand::a);
  b_stored_ = stored_share(problem.sparse == SparseOperand::b);
  read_bytes_ = element_ * batch_ * (a_stored_ * m_ * k_ + b_stored_ * n_ * k_) * problem.distinct_reads;
  cold_bytes_ = read_bytes_ * read_miss;
  const double results = element_ * batch_ * m_ * n_;
  written_bytes_ = results * write_miss;
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  l2_bandwidth_ = achieved.l2_read;
  // What comes from the DRAM or goes there passes through the L2.
  read_bandwidth_ = std::min(achieved.dram_read * c_.read_share, l2_bandwidth_);
  write_bandwidth_ = std::min(achieved.dram_write * c_.write_share, achieved.l2_write);
  const double cache = cache_of(gpu);
  reuse_from_ = kRefetchedFrom * cache;
  reuse_over_ = (kRefetchedAll - kRefetchedFrom) * cache;
  held_panels_ = gpu.l2.resident_full * cache;
  const double plain = gpu.l2.read_bandwidth.value(), shared = gpu.l2.shared_read_bandwidth.value();
  per_l2_ = c_.requests * clock_ / (shared > 0.0 ? std::min(shared, kSharedOverPlain * plain) : plain);
  l2_latency_ = gpu.l2.latency.value();
  dram_latency_ = gpu.dram.latency.value() * clock_ * read_miss;
  per_rate_ = 1.0 / rate_;
  per_sms_ = 1.0 / sms_;
  per_log_ = 1.0 / std::log2(std::max(2.0, sms_));
  per_shared_ = 1.0 / shared_bytes_;
  per_port_ = 1.0 / c_.port_bytes;
  per_epilogue_ = 1.0 / c_.epilogue_bytes;
  per_handoff_ = c_.handoff_bytes > 0.0 ? 1.0 / c_.handoff_bytes : 0.0;
  per_copy_ = c_.copy_bytes > 0.0 ? 1.0 / c_.copy_bytes : 0.0;
  hit_time_ = (read_bytes_ - cold_bytes_) / l2_bandwidth_;
  first_loads_ = cold_bytes_ / read_bandwidth_ + hit_time_;
  written_time_ = write_penalty_ * (written_bytes_ / write_bandwidth_ + (results - written_bytes_) / achieved.l2_write);
  fixed_ = (c_.fixed_cycles + c_.cold_cycles * read_miss + (problem.bias ? c_.bias_cycles : 0.0)) / clock_;
  memset_ = gpu.launch.memset.value();
}

GemmLaw::Clusters GemmLaw::clusters(const GemmTile& tile, int splits, double count) const {
  const double rows = pieces_of(m_, tile.m), columns = pieces_of(n_, tile.n), copies = batch_ * splits;
  const double a = a_straddle_ * a_stored_ * tile.m, b = b_straddle_ * b_stored_ * tile.n;
  const auto whole = [](double tiles, double along) { return std::ceil(tiles / along) * along; };
  const Drawn alone{rounds_of(count), count * (a + b)};
  Clusters best{alone, alone, alone};
  const auto consider = [&](double along_m, double along_n, bool few_sms) {
    const double blocks = whole(rows, along_m) * whole(columns, along_n) * copies;
    if (few_sms && blocks > clusterable_) return alone;
    const Drawn drawn{few_sms ? 1.0 : rounds_of(blocks), count * (a / along_n + b / along_m)};
    if (drawn.rounds == best.fewest_rounds.rounds && drawn.elements < best.fewest_rounds.elements)
      best.fewest_rounds = drawn;
    return drawn;
  };
  if (tile.paired) {  // along the rows of its instructions
    const Drawn pair = tile.wgmma_m == tile.m ? consider(2, 1, false) : consider(1, 2, false);
    best = {pair, pair, pair};
  } else {
    best.pair_along_m = consider(2, 1, false);
    best.pair_along_n = consider(1, 2, false);
  }
  if (count > clusterable_) return best;
  consider(2, 2, true);
  consider(4, 1, true);
  consider(1, 4, true);
  consider(4, 2, true);
  consider(2, 4, true);
  return best;
}

GemmLaw::Compute GemmLaw::persistent(const GemmTile& tile, int splits, double whole) const {
  const double count = whole * splits, steps = pieces_of(k_, static_cast<double>(splits) * tile.k);
  const Clusters panels = clusters(tile, splits, count);
  const double area = static_cast<double>(tile.wgmma_m) * tile.wgmma_n;
  const double math = area * tile.k * per_rate_;
  const bool turned = tile.wgmma_m != tile.m;
  const double operand_reads = (turned ? b_stored_ : a_stored_) * tile.wgmma_m +
                               (turned ? a_stored_ : b_stored_) * (reads_of_n(tile) * tile.wgmma_n);
  const double shared = tile.k * element_ * operand_reads * per_shared_;
  const double in_flight = ahead(tile, splits, steps);
  const double latency = (c_.latency_cycles + stage_latency(tile)) / in_flight;
  // Every block receives both panels.
  const double a_panel = a_straddle_ * a_stored_ * tile.m, b_panel = b_straddle_ * b_stored_ * tile.n;
  const double port = tile.k * element_ * (a_panel + b_panel) * per_port_;
  // Transposing panels takes turns with the math, and so does what spills.
  const double bound = math / c_.utilization + tile.k * (transpose_both_ * (tile.m + tile.n) + transpose_b_ / tile.n) +
                       tile.spilled * per_shared_;
  const double stored = splits > 1 ? 4.0 : output_element_;
  const double epilogue = area * stored * per_epilogue_ * store_penalty_ + c_.epilogue_cycles;
  const double exposed = stores_between_tiles_ ? 1.0 : 1.0 - c_.epilogue_overlap;
  const auto step = [&](double l2) {
    const double other = std::max(std::max(shared, latency), std::max(port, l2));
    constexpr double kMostRounding = 1.4143;  // the fourth root of four: the soft maximum of four equals
    return other * kMostRounding <= bound ? bound : std::max(bound, soft_maximum(shared, latency, port, l2));
  };
  const double own_step = std::max({bound, shared, port, (c_.latency_cycles + l2_latency_) / in_flight});
  const double whole_l2 = tile.k * element_ * per_l2_, busy = count * steps * math * per_sms_,
               asked = panels.fewest_rounds.elements * k_ / splits * element_;
  if (tile.stream_k) {
    // Few tiles: as many SMs share each one's k-steps as there are. More tiles than SMs: every SM gets the same number
    // of k-steps. A tile cut in pieces is written as fp32, read back and added.
    const double fix_up = c_.fix_up * area * 8.0 / c_.epilogue_bytes, even = count * per_sms_;
    const bool few = count <= sms_;
    const double own_steps = few ? pieces_of(steps, std::floor(sms_ / count)) : even * steps;
    const double l2 = whole_l2 * panels.fewest_rounds.elements * steps / own_steps;
    const double cycles = own_steps * step(l2) + (few ? 1.0 : even) * epilogue + fix_up;
    return {cycles,
            bound,
            shared,
            latency,
            std::max(port, l2),
            busy,
            even,
            count,
            steps,
            asked,
            own_steps * own_step + (few ? 1.0 : even) * epilogue + fix_up};
  }
  // The next tile's loads are under way while a tile is stored.
  const auto cycles_of = [&](const Drawn& drawn) {
    return drawn.rounds * steps * step(whole_l2 * drawn.elements / drawn.rounds) +
           epilogue * (1.0 + (drawn.rounds - 1.0) * exposed);
  };
  const double rounds = panels.fewest_rounds.rounds, l2 = whole_l2 * panels.fewest_rounds.elements / rounds;
  double cycles = cycles_of(panels.fewest_rounds);
  if (step(l2) > bound) {  // pairs that leave more of the last round empty may draw so much less
    if (panels.pair_along_m.rounds > rounds) cycles = std::min(cycles, cycles_of(panels.pair_along_m));
    if (panels.pair_along_n.rounds > rounds) cycles = std::min(cycles, cycles_of(panels.pair_along_n));
  }
  const double own_cycles = rounds * steps * own_step + epilogue * (1.0 + (rounds - 1.0) * exposed);
  return {cycles, bound, shared, latency, std::max(port, l2), busy, rounds, count, steps, asked, own_cycles};
}

GemmLaw::Compute GemmLaw::tiled(const GemmTile& tile, int splits, double whole) const {
  const double count = whole * splits, rounds = rounds_of(count),
               steps = pieces_of(k_, static_cast<double>(splits) * tile.k);
  const double area = static_cast<double>(tile.m) * tile.n;
  const double math = area * tile.k * per_rate_;
  // Rows and columns outside the matrix are not loaded.
  const double rows = a_stored_ * m_ / pieces_of(m_, tile.m), columns = b_stored_ * n_ / pieces_of(n_, tile.n);
  const double panels = (a_straddle_ * rows + b_straddle_ * columns) * tile.k;
  const double loads = load_slots_ * (grouped(tile) ? 1.0 : c_.own_load_slots) * panels + tile.spilled * per_shared_,
               copies = panels * element_ * per_copy_;
  // On the CUDA cores a multiply-add takes an issue slot; where the lanes are slower than the issue, loads, barriers
  // and latency hide behind them.
  const double bound = math / c_.utilization, step = cuda_cores_ ? area * tile.k / issue_rate_ + loads : bound + loads;
  const double stored = splits > 1 && !tile.stream_k ? 4.0 : output_element_;
  const double epilogue = c_.epilogue_cycles + area * stored * per_epilogue_ * store_penalty_;
  // A k-step's loads were asked for `stages - 1` steps before.
  const double in_flight = ahead(tile, splits, steps), latency = stage_latency(tile) / in_flight;
  // The blocks of the fullest SM in as few sets as its room allows, all of them about equal.
  const double sets = pieces_of(rounds, std::max(1, tile.blocks_per_sm)), resident = rounds / sets;
  const double own_pace =
      std::max(std::max(resident * bound, l2_latency_ / in_flight),
               soft_maximum(resident * step, resident * copies, c_.latency_cycles / std::min(1.0, in_flight)) +
                   c_.exposed_cycles * tile.k);
  double rest = sets * epilogue * (1.0 + (resident - 1.0) * (1.0 - c_.epilogue_overlap));
  if (tile.stream_k) rest += (splits - 1) * (c_.handoff_cycles + area * output_element_ * per_handoff_);
  const double cycles = sets * steps * std::max(own_pace, latency) + rest;
  const double asked = count * steps * panels * element_, l2 = asked * per_l2_;
  return {std::max(cycles, l2),
          std::max(step, bound),
          loads,
          (c_.latency_cycles + c_.exposed_cycles * tile.k) / resident,
          l2 / (rounds * steps),
          count * steps * math * per_sms_,
          rounds,
          count,
          steps,
          asked,
          sets * steps * own_pace + rest};
}

double GemmLaw::split_reduction(int splits, const SplitReduction& kernel) const {
  const double results = m_ * n_ * batch_;
  const double seconds =
      (kernel.start_cycles + splits * kernel.split_cycles + results * per_sms_ * kernel.element_cycles) /
          gpu_.clock.sustained.value() +
      4.0 * splits * results / (kernel.l2_share * gpu_.l2.read_bandwidth.value());
  return std::max(seconds, results * output_element_ / write_bandwidth_);
}

double GemmLaw::share_of_few(double blocks) const {
  if (c_.few_blocks == 0.0) return 1.0;
  return 1.0 - c_.few_blocks * (1.0 - std::log2(std::clamp(blocks, 1.0, std::max(1.0, sms_))) * per_log_);
}

double GemmTime::total_with(double memory_seconds) const {
  return fixed + fill + soft_maximum(compute, memory_seconds);
}

namespace {

/// Tiles along a side, for a byte of the L2 that keeps panels.
double sharing_each(const GemmTile& tile, double stored, double element) {
  return 1.0 / (stored * std::sqrt(static_cast<double>(tile.m) * tile.n) * element * tile.k * tile.first_stages *
                kPipelinesApart);
}

}  // namespace

double sharing_tiles(const GemmWork& work, const Gpu& gpu) {
  const double stored = stored_share(work.sparse == SparseOperand::a) + stored_share(work.sparse == SparseOperand::b);
  return gpu.l2.resident_full * cache_of(gpu) *
         sharing_each(tile_of(work), stored, static_cast<double>(bytes_of(work.type)));
}

GemmTime GemmLaw::time(const GemmTile& tile, int splits) const {
  return time_of(compute(tile, splits, tiles(tile)), tile, splits);
}

// What tiles ask for is shared by those that run at once as far as the L2 holds their panels: a square of `together`
// tiles of a matrix reads each of its panels once. Without an L2 every tile's panels come from the DRAM.
double GemmLaw::refetched(const Compute& work, const GemmTile& tile, int splits) const {
  const double share = refetched_share();
  if (share == 0.0) return cold_bytes_;
  const double stored = a_stored_ + b_stored_, side = std::sqrt(static_cast<double>(tile.m) * tile.n);
  const double active = std::min(work.tiles, sms_ * (persistent_ ? 1 : tile.blocks_per_sm)),
               of_matrix = work.tiles / (batch_ * splits);
  const double held = held_panels_ * sharing_each(tile, stored, element_);
  const double across = std::min(std::sqrt(std::min(active, of_matrix)), held);
  const double alone = work.asked;
  const double waves = across * alone <= stored * side * k_ * element_ * of_matrix * batch_
                           ? alone
                           : stored * side * k_ * element_ * of_matrix * batch_ / across;
  return cold_bytes_ + std::max(0.0, waves - read_bytes_) * share;
}

GemmTime GemmLaw::time_of(const Compute& work, const GemmTile& tile, int splits) const {
  GemmTime result;
  result.activity = std::clamp(work.busy / work.cycles, 0.0, 1.0);
  const double few = share_of_few(blocks_of(tile, work.tiles)), cycle = few / clock_of(work);
  result.compute = work.cycles * cycle;
  const double per_step = work.rounds * work.k_steps * cycle;
  result.math = work.math * per_step;
  result.shared = work.shared * per_step;
  result.latency = work.latency * per_step;
  result.port = work.port * per_step;
  result.rounds = work.rounds;
  result.fixed = few * fixed_;
  result.clocked = result.fixed + std::min(work.clocked, work.cycles) * cycle;

  result.dram_read = refetched(work, tile, splits);
  const double loading = first_loads_ + (result.dram_read - cold_bytes_) / read_bandwidth_;
  const double stages = std::min(static_cast<double>(tile.first_stages), work.k_steps);
  const double sets =
      persistent_ ? std::max(1.0, work.rounds) : pieces_of(work.rounds, std::max(1, tile.blocks_per_sm));
  const double streamed = c_.first_loads * first_loads_ * stages / (work.k_steps * sets);
  result.fill = few * (streamed + stages * c_.stage_cycles / clock_);
  const bool partial = splits > 1 && !tile.stream_k;
  const double partial_bytes = partial ? 4.0 * splits * m_ * n_ * batch_ : 0.0;
  const double partial_written = c_.partial_writes * partial_bytes;
  result.memory = loading - streamed + (partial ? partial_written / write_bandwidth_ : written_time_);
  result.total = result.fixed + result.fill + soft_maximum(result.compute, result.memory);
  result.dram_write = partial ? partial_written : written_bytes_;
  result.l2_bytes = work.tiles * work.k_steps * tile.k * element_ * (a_stored_ * tile.m + b_stored_ * tile.n);
  return result;
}

}  // namespace ridgeline
