#include "sim/kernels/gemm_selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

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

/// A second kernel adds up splits of long products only: k at least twice the shorter side in 482 of 487 profiled ones.
/// Of fp32 products' splits added up in place it is 127 of 141.
bool is_long(const GemmWork& problem) { return problem.k >= 2 * std::min(problem.m, problem.n); }

using TiledSplits = std::array<int, kFewSplits + 3>;

/// Splits of a tiled kernel, ascending: those that fill half a round, one or two of the SMs (of 330 profiled splits for
/// a second kernel all but 52); in place few too.
std::span<const int> tiled_splits(double tiles, double k, double sms, bool in_place, TiledSplits& room) {
  std::size_t count = 0;
  if (in_place)
    for (int splits = 2; splits <= kFewSplits; ++splits) room[count++] = splits;
  for (const double rounds : {0.5, 1.0, 2.0}) {
    const int splits = static_cast<int>(std::min(
        {static_cast<double>(kMostSplits), std::floor(k / GemmLaw::kLeastSplit), std::floor(rounds * sms / tiles)}));
    if (splits >= 2 && (count == 0 || splits > room[count - 1])) room[count++] = splits;
  }
  return {room.data(), count};
}

/// A candidate about as fast as the fastest. `order` is its place among all: of equals the first wins.
struct Candidate {
  GemmTile tile;
  const TileChoice* choice = nullptr;
  int splits = 1, order = 0;
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

/// What cuSPARSELt asks of a structured operand: both sides multiples of 32 bytes (16 values of 16 bits, 8 of tf32).
void require_sparse_shape(const Matmul& op, const Gpu& gpu) {
  if (op.sparse == SparseOperand::none) return;
  if (tensor_rate(gpu.sm.rates, op.type) <= 0.0 || gpu.sm.rates.sparsity_factor <= 1.0)
    throw std::invalid_argument(
        fmt::format("{} has no sparse tensor cores for {}: 2:4 sparsity needs bf16, fp16 or tf32 and "
                    "sm.rates.sparsity_factor above 1",
                    gpu.name, name_of(op.type)));
  const std::int64_t side = op.sparse == SparseOperand::a ? op.m : op.n, unit = 32 / bytes_of(op.type);
  if (side % unit != 0 || op.k % unit != 0)
    throw std::invalid_argument(fmt::format("a 2:4 sparse operand of {} x {} in {}: both sides must be multiples of {}",
                                            side, op.k, name_of(op.type), unit));
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
  // A single column is contiguous along its rows, a single row along its columns.
  work.alignment = alignment_of(a_transposed && op.m > 1 ? op.m : op.k, b_transposed || op.n == 1 ? op.k : op.n,
                                op.n == 1 ? op.m : op.n, bytes_of(op.type));
  require_sparse_shape(op, gpu);
  work.sparse = op.sparse;
  if (tensor_rate(gpu.sm.rates, op.type) <= 0.0) {
    work.family = GemmWork::Family::simt;
  } else {
    const bool wgmma = gpu.sm.warpgroup_mma && gpu.sm.tensor_memory_accelerator && work.alignment >= 16;
    work.family = wgmma ? GemmWork::Family::wgmma : GemmWork::Family::mma_sync;
  }
  return work;
}

namespace {

/// One choice: floors of the whole menu first, the entry of the lowest one in full, then all that its time does not
/// rule out.
class Choice {
 public:
  Choice(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu)
      : problem_(problem),
        gpu_(gpu),
        constants_(constants),
        menu_(menu),
        law_(problem, gpu, constants),
        floor_(law_),
        persistent_(problem.family == GemmWork::Family::wgmma),
        splittable_(!problem.bias && (persistent_ || problem.batch == 1)) {
    near_.reserve(32);
    const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n);
    std::array<double, GpuMenu::kMostLengths> in_m, in_n, in_k;  // pieces of each of the menu's lengths
    for (std::size_t i = 0; i < menu.lengths.size(); ++i) {
      in_m[i] = pieces_of(m, menu.lengths[i]);
      in_n[i] = pieces_of(n, menu.lengths[i]);
      in_k[i] = pieces_of(static_cast<double>(problem.k), menu.lengths[i]);
    }
    const double batch = static_cast<double>(problem.batch);
    for (std::size_t i = 0; i < menu.entries.size(); ++i) {
      const GpuMenu::Place& place = menu.places[i];
      counts_[i] = in_m[place.m] * in_n[place.n] * batch;
      steps_[i] = in_k[place.k];
      rows_[i] = in_m[place.m];
      columns_[i] = in_n[place.n];
    }
    if (!persistent_)  // only their loads depend on how much of a tile lies in the matrix
      for (std::size_t i = 0; i < menu.entries.size(); ++i) {
        rows_[i] = m / rows_[i];
        columns_[i] = n / columns_[i];
      }
    floor_.whole(menu.shapes, tilings_, floors_.data());
  }

  GemmSelection make() {
    const std::size_t entries = menu_.entries.size();
    std::size_t lowest = entries;
    // Shared k-steps are few entries of few products: their floor is not known.
    for (std::size_t i = 0; i < entries; ++i)
      if (!menu_.entries[i].tile.stream_k && suits(i) && (lowest == entries || floors_[i] < floors_[lowest]))
        lowest = i;
    if (lowest < entries) consider(lowest, menu_.entries[lowest].tile, 1, 0);
    for (std::size_t i = 0; i < entries; ++i) {
      if (!suits(i)) continue;
      if (menu_.entries[i].tile.stream_k) {
        if (suits_stream_k(law_, problem_, menu_.entries[i].tile, gpu_)) consider(i, menu_.entries[i].tile, 1, 0);
        continue;
      }
      if (i != lowest && floors_[i] <= limit() && floor_.raised(menu_.shapes, tilings_, i) <= limit())
        consider(i, menu_.entries[i].tile, 1, 0);
      if (!splittable_) continue;
      const bool lengthy = menu_.changed || is_long(problem_);
      if (persistent_) {
        if (lengthy && counts_[i] * 2.0 <= gpu_.sm.count) try_splits(i, kPersistentSplits, false, 1);
      } else {
        TiledSplits room{};
        if (lengthy)
          try_splits(i, tiled_splits(counts_[i], static_cast<double>(problem_.k), gpu_.sm.count, false, room), false,
                     1);
        if (lengthy || problem_.family != GemmWork::Family::simt)
          try_splits(i, tiled_splits(counts_[i], static_cast<double>(problem_.k), gpu_.sm.count, true, room), true,
                     1 + static_cast<int>(room.size()));
      }
    }
    return preferred();
  }

 private:
  [[nodiscard]] bool suits(std::size_t entry) const {
    return menu_.changed || suits_layout(problem_, menu_.entries[entry].tile);
  }
  [[nodiscard]] double limit() const { return fastest_ * kTied; }

  void consider(std::size_t entry, const GemmTile& tile, int splits, int order) {
    const double seconds = law_.seconds(tile, splits, limit(), counts_[entry]);
    if (seconds > limit()) return;
    fastest_ = std::min(fastest_, seconds);
    near_.push_back({tile, &menu_.entries[entry], splits, static_cast<int>(entry) * kOrders + order, seconds,
                     counts_[entry] * splits <= gpu_.sm.count});
  }

  void try_splits(std::size_t entry, std::span<const int> all, bool in_place, int order) {
    GemmTile tile = menu_.entries[entry].tile;
    if (all.empty()) return;
    tile.stream_k = in_place;
    const double count = counts_[entry];
    if (!law_.may_split(tile, all.front(), count)) return;
    const auto least = [&](int fewest, int most) {
      return floor_.split(menu_.shapes, tilings_, entry, fewest, most, in_place);
    };
    if (least(all.front(), all.back()) > limit()) return;
    for (const int splits : all) {
      if (!law_.may_split(tile, splits, count)) return;
      if (least(splits, splits) <= limit()) consider(entry, tile, splits, order);
      ++order;
    }
  }

  [[nodiscard]] GemmSelection preferred() const {
    GemmSelection best;
    best.fastest = fastest_;
    double best_rank = best.seconds = std::numeric_limits<double>::infinity();
    // Nobody profiled what a library prefers of kernels that do not exist: those are chosen by time alone.
    const bool by_time = menu_.changed || problem_.sparse != SparseOperand::none;
    int order = 0;
    for (const Candidate& candidate : near_) {
      if (candidate.seconds > fastest_ * kTied) continue;
      const double rank = candidate.seconds * (by_time ? 1.0 : 1.0 + dislike(candidate, constants_));
      if (rank > best_rank || (rank == best_rank && candidate.order > order)) continue;
      best_rank = rank;
      order = candidate.order;
      best.tile = candidate.tile;
      best.choice = candidate.choice;
      best.splits = candidate.splits;
      best.seconds = candidate.seconds;
    }
    best.family = problem_.family;
    if (best.choice != nullptr) best.clears_counter = law_.needs_counter(best.tile, best.splits);
    return best;
  }

  /// More candidates than an entry can have.
  static constexpr int kOrders = 64;
  static_assert(kOrders > 1 + 2 * std::tuple_size_v<TiledSplits> && kOrders > 1 + kPersistentSplits.size());

  const GemmWork& problem_;
  const Gpu& gpu_;
  const GemmConstants& constants_;
  const GpuMenu& menu_;
  GemmLaw law_;
  GemmFloor floor_;
  bool persistent_, splittable_;
  std::array<double, GpuMenu::kMostEntries> counts_, steps_, rows_, columns_, floors_;
  GemmTilings tilings_{counts_.data(), steps_.data(), rows_.data(), columns_.data()};
  std::vector<Candidate> near_;
  double fastest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants,
                          const GpuMenu& menu) {
  return Choice(problem, gpu, constants, menu).make();
}

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GpuMenus& menus) {
  const auto from_class = [&](const GemmWork& work) {
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    return select_gemm(work, gpu, gemm_constants(kernel_class), menus.of(kernel_class, work.batch > 1));
  };
  const GemmSelection selection = from_class(problem);
  if (problem.family == GemmWork::Family::wgmma && problem.type == DType::tf32) {
    GemmWork older = problem;
    older.family = GemmWork::Family::mma_sync;
    const GemmSelection other = from_class(older);
    // The libraries keep to the kernels of the generation before where those tie: right in nine of ten of 446 profiled
    // products. Of kernels that nobody profiled the fastest is taken.
    const bool profiled = problem.sparse == SparseOperand::none && gpu.gemm.tiles.empty();
    const double most = profiled ? std::min(selection.fastest, other.fastest) * kTied : selection.seconds;
    if (other.seconds <= most) return other;
  }
  return selection;
}

}  // namespace ridgeline
