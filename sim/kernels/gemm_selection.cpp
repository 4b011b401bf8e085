#include "sim/kernels/gemm_selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/occupancy/occupancy.h"

namespace ridgeline {
namespace {

constexpr std::array kPersistentSplits{2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16};
constexpr int kMostSplits = 64, kFewSplits = 9;

/// Logarithms of numbers of splits.
const std::array<double, kMostSplits + 1> kLogSplits = [] {
  std::array<double, kMostSplits + 1> table{};
  for (std::size_t z = 1; z < table.size(); ++z) table[z] = std::log(static_cast<double>(z));
  return table;
}();

/// Largest of 16, 8, 4, 2 bytes that all contiguous dimensions are multiples of.
int alignment_of(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t element) {
  for (const int unit : {16, 8, 4})
    if (a * element % unit == 0 && b * element % unit == 0 && c * element % unit == 0) return unit;
  return 2;
}

/// The library turns on sharing of k-steps for few tiles of long products (at most two an SM in five, 80 k-steps or
/// more) and where it saves most of a round: the last one less than two fifths full, 28 k-steps or more. 33 of 230
/// profiled kernels; those with more rounds than kRoundsShared gain nothing by it.
bool suits_stream_k(const GemmLaw& law, const GemmWork& problem, const GemmTile& tile, const Gpu& gpu) {
  constexpr double kRoundsShared = 9.0;
  if (problem.batch > 1 || problem.bias) return false;
  const double rounds = law.tiles(tile) / gpu.sm.count, begun = rounds - std::floor(rounds);
  if (rounds <= 1.0) return rounds <= 0.42 && problem.k >= 80 * tile.k;
  return rounds < kRoundsShared && begun > 0.0 && begun < 0.4 && problem.k >= 28 * tile.k;
}

/// The persistent kernels load operands that are not contiguous along k in pieces of 32 of their rows: so in each of
/// 1735 profiled ones. CUTLASS's fp32 kernels are not taken where both are (7 of 239), nor others of 128 x 128 where
/// neither is.
bool suits_layout(const GemmWork& problem, const GemmTile& tile) {
  const bool a_transposed = problem.layout == 2 || problem.layout == 3,
             b_transposed = problem.layout == 1 || problem.layout == 3;
  if (problem.family == GemmWork::Family::wgmma)
    return (!a_transposed || tile.m % 32 == 0) && (b_transposed || tile.n % 32 == 0);
  if (problem.family != GemmWork::Family::simt || problem.batch > 1) return true;
  const bool cutlass = tile.stages >= 4;
  if (!a_transposed && b_transposed) return !cutlass;
  return !a_transposed || cutlass || tile.m * tile.n < 128 * 128;
}

/// Splits of a tiled kernel, ascending: those that fill one or two rounds of the SMs (of 330 profiled splits for a
/// second kernel all but 52); in place few too.
std::span<const int> tiled_splits(double tiles, double sms, bool in_place, std::array<int, kFewSplits + 2>& room) {
  std::size_t count = 0;
  if (in_place)
    for (int splits = 2; splits <= kFewSplits; ++splits) room[count++] = splits;
  for (const double rounds : {1.0, 2.0}) {
    const int splits = static_cast<int>(std::min<double>(kMostSplits, std::floor(rounds * sms / tiles)));
    if (splits >= 2 && (count == 0 || splits > room[count - 1])) room[count++] = splits;
  }
  return {room.data(), count};
}

/// Blocks of each entry of a menu that fit an SM, remembered for the SM asked for last.
class ResidentBlocks {
 public:
  const std::vector<int>& of(std::span<const TileChoice> menu, const SmSpec& sm) {
    const std::array<double, 8> key{static_cast<double>(sm.registers),
                                    static_cast<double>(sm.max_warps),
                                    static_cast<double>(sm.max_blocks),
                                    static_cast<double>(sm.schedulers),
                                    static_cast<double>(sm.register_allocation_unit),
                                    sm.shared_per_sm.value(),
                                    sm.shared_reserved_per_block.value(),
                                    sm.shared_allocation_unit.value()};
    if (menu.data() == menu_ && key == key_) return blocks_;
    blocks_.clear();
    for (const TileChoice& choice : menu)
      blocks_.push_back(occupancy_of(sm, choice.threads, choice.registers, choice.shared_bytes).blocks);
    menu_ = menu.data();
    key_ = key;
    return blocks_;
  }

 private:
  const TileChoice* menu_ = nullptr;
  std::array<double, 8> key_{};
  std::vector<int> blocks_;
};

/// A candidate about as fast as the fastest.
struct Candidate {
  GemmTile tile;
  const TileChoice* choice = nullptr;
  int splits = 1;
  double seconds = 0;
  bool one_round = false;
};

/// Candidates within this of the fastest tie: neither the law nor the library tells them apart for sure, and the
/// library's habits decide. It is also the most that a better chip can lose by a worse choice.
constexpr double kTied = 1.05;

/// What speaks against a tied candidate in the library's choice, in shares of its time.
double dislike(const Candidate& candidate, const GemmConstants& c) {
  const TileChoice& choice = *candidate.choice;
  double sum = c.rank_aspect * choice.log_aspect + c.rank_area * choice.log_area + c.rank_deep * choice.log_deep;
  if (std::max(candidate.tile.m, candidate.tile.n) >= 256) sum += c.rank_wide;
  if (candidate.one_round) sum += c.rank_one_round;
  if (candidate.splits > 1) {
    sum += c.rank_split + c.rank_log_split * kLogSplits[static_cast<std::size_t>(candidate.splits)];
    if (candidate.tile.stream_k) sum += c.rank_in_place;
  }
  return sum;
}

double tensor_rate(const MathRates& rates, DType type) {
  switch (type) {
    case DType::bf16: return rates.tensor_bf16;
    case DType::fp16: return rates.tensor_fp16;
    case DType::tf32: return rates.tensor_tf32;
    default: return 0.0;
  }
}

}  // namespace

GemmWork gemm_problem(const Matmul& op, const Gpu& gpu) {
  GemmWork work{.type = op.type,
                .batch = op.batch,
                .m = op.m,
                .n = op.n,
                .k = op.k,
                .layout = static_cast<int>(op.layout),
                .bias = op.bias};
  const bool a_transposed = op.layout == Layout::tn || op.layout == Layout::tt,
             b_transposed = op.layout == Layout::nt || op.layout == Layout::tt;
  // A single column is contiguous along its rows.
  work.alignment = alignment_of(a_transposed ? op.m : op.k, b_transposed || op.n == 1 ? op.k : op.n,
                                op.n == 1 ? op.m : op.n, bytes_of(op.type));
  if (tensor_rate(gpu.sm.rates, op.type) <= 0.0) {
    work.family = GemmWork::Family::simt;
  } else {
    const bool wgmma = gpu.sm.warpgroup_mma && gpu.sm.tensor_memory_accelerator && work.alignment >= 16;
    work.family = wgmma ? GemmWork::Family::wgmma : GemmWork::Family::mma_sync;
  }
  return work;
}

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants,
                          std::span<const TileChoice> menu) {
  const GemmLaw law(problem, gpu, constants);
  const bool persistent = problem.family == GemmWork::Family::wgmma;
  const GemmConstants& c = constants;
  static thread_local ResidentBlocks resident;
  static thread_local std::vector<Candidate> near;
  near.clear();
  const std::vector<int>* blocks = persistent ? nullptr : &resident.of(menu, gpu.sm);
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < menu.size(); ++i) {
    const TileChoice& choice = menu[i];
    GemmTile tile = choice.tile;
    if (tile.stream_k && !suits_stream_k(law, problem, tile, gpu)) continue;
    if (!suits_layout(problem, tile)) continue;
    if (!persistent) {
      tile.blocks_per_sm = (*blocks)[i];
      if (tile.blocks_per_sm == 0) continue;
    }
    const double whole = law.tiles(tile);
    const auto consider = [&](int splits) {
      const double seconds = law.seconds(tile, splits, fastest * kTied);
      if (seconds > fastest * kTied) return;
      fastest = std::min(fastest, seconds);
      near.push_back({tile, &choice, splits, seconds, whole * splits <= gpu.sm.count});
    };
    const auto split = [&](bool in_place) {
      tile.stream_k = in_place;
      std::array<int, kFewSplits + 2> room{};
      for (const int splits :
           persistent ? std::span<const int>(kPersistentSplits) : tiled_splits(whole, gpu.sm.count, in_place, room)) {
        if (!law.may_split(tile, splits)) break;
        consider(splits);
      }
    };
    consider(1);
    if (persistent && tile.stream_k) continue;
    split(false);
    if (!persistent) split(true);
  }
  GemmSelection best;
  best.fastest = fastest;
  double best_rank = best.seconds = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : near) {
    if (candidate.seconds > fastest * kTied) continue;
    const double rank = candidate.seconds * (1.0 + dislike(candidate, c));
    if (rank >= best_rank) continue;
    best_rank = rank;
    best.tile = candidate.tile;
    best.choice = candidate.choice;
    best.splits = candidate.splits;
    best.seconds = candidate.seconds;
  }
  best.family = problem.family;
  if (best.choice != nullptr) best.clears_counter = law.needs_counter(best.tile, best.splits);
  return best;
}

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu) {
  const auto from_class = [&gpu](const GemmWork& work) {
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    return select_gemm(work, gpu, gemm_constants(kernel_class),
                       tile_menu(kernel_class, gpu.architecture, work.batch > 1));
  };
  const GemmSelection selection = from_class(problem);
  if (problem.family == GemmWork::Family::wgmma && problem.type == DType::tf32) {
    GemmWork older = problem;
    older.family = GemmWork::Family::mma_sync;
    const GemmSelection other = from_class(older);
    // The libraries keep to the kernels of the generation before where those tie: right in nine of ten of 446 profiled
    // products.
    if (other.seconds <= std::min(selection.fastest, other.fastest) * kTied) return other;
  }
  return selection;
}

}  // namespace ridgeline
