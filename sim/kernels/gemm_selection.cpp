#include "sim/kernels/gemm_selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "sim/timing/four_floats.h"

namespace ridgeline {
namespace {

constexpr std::array kPersistentSplits{2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16};
constexpr int kMostSplits = 64, kFewSplits = 9;
constexpr float kMostRounds = 2.0F;

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

constexpr int kMostTiledSplits = kFewSplits + 3;
using TiledSplits = std::array<int, kMostTiledSplits>;

/// Splits of a tiled kernel, ascending: those that fill half a round, one or two of the SMs (of 330 profiled splits for
/// a second kernel all but 52); in place few too.
std::span<const int> tiled_splits(double tiles, double k, double sms, bool in_place, TiledSplits& room) {
  std::size_t count = 0;
  if (in_place)
    for (int splits = 2; splits <= kFewSplits; ++splits) room[count++] = splits;
  const double most = std::min(static_cast<double>(kMostSplits), k / GemmLaw::kLeastSplit);
  for (const double rounds : {0.5, 1.0, static_cast<double>(kMostRounds)}) {
    const int splits = static_cast<int>(std::min(most, rounds * sms / tiles));
    if (splits >= 2 && (count == 0 || splits > room[count - 1])) room[count++] = splits;
  }
  return {room.data(), count};
}

/// Candidates within this of the fastest tie: neither the law nor the library tells them apart for sure, and the
/// library's habits decide. It is also the most that a better chip can lose by a worse choice.
constexpr double kTied = 1.05;

/// One of a menu's kernels on the problem.
struct Candidate {
  const TileChoice* choice = nullptr;
  int splits = 1;
  bool in_place = false;  ///< splits or k-steps added up by the kernel itself
  bool one_round = false;
};

/// What speaks against a tied candidate in the library's choice, in shares of its time.
double dislike(const Candidate& candidate, const GemmConstants& c) {
  const TileChoice& choice = *candidate.choice;
  double sum = c.rank_aspect * choice.log_aspect + c.rank_area * choice.log_area + c.rank_deep * choice.log_deep;
  if (std::max(choice.tile.m, choice.tile.n) >= 256) sum += c.rank_wide;
  if (candidate.one_round) sum += c.rank_one_round;
  if (candidate.splits > 1) {
    sum += c.rank_split + c.rank_log_split * kLogSplits[static_cast<std::size_t>(candidate.splits)];
    if (candidate.in_place) sum += c.rank_in_place;
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

/// One choice. Every candidate has a floor that its time is not below (gemm_floor.h); which are timed in full follows
/// from it: first those that may be the fastest, then, of those that may tie with it, those that may rank best.
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
        splittable_(persistent_ ? !problem.bias : problem.batch == 1),
        by_time_(menu.changed || problem.sparse != SparseOperand::none),
        near_(emptied_candidates()) {
    std::array<float, GpuMenu::kMostLengths> in_m, in_n, in_k;  // pieces of each of the menu's lengths
    for (std::size_t i = 0; i < menu.lengths.size(); ++i) {
      in_m[i] = static_cast<float>(pieces_of(static_cast<double>(problem.m), menu.lengths[i]));
      in_n[i] = static_cast<float>(pieces_of(static_cast<double>(problem.n), menu.lengths[i]));
      in_k[i] = static_cast<float>(pieces_of(static_cast<double>(problem.k), menu.lengths[i]));
    }
    for (std::size_t i = 0; i < menu.shapes.filled(); ++i) {
      const GpuMenu::Place& place = menu.places[std::min(i, menu.entries.size() - 1)];
      rows_[i] = in_m[place.m];
      columns_[i] = in_n[place.n];
      steps_[i] = in_k[place.k];
    }
    floor_.whole(menu.shapes, tilings_, floors_.data());
    std::fill(floors_.begin() + menu.entries.size(), floors_.begin() + menu.shapes.filled(), kNever);
  }

  GemmSelection make() {
    collect();
    for (Near& near : near_)
      if (!near.timed && near.floor < fastest_) time(near);
    return preferred();
  }

 private:
  /// A candidate with what is known of its time; `order` is its place among all: of equals the first wins.
  struct Near : Candidate {
    int order = 0;
    bool timed = false;
    double floor = 0, seconds = 0;  ///< `seconds` once timed, infinite where it is more than ties
  };

  /// Kept from one choice of a thread to the next: no choice allocates.
  static std::vector<Near>& emptied_candidates() {
    static thread_local std::vector<Near> candidates;
    candidates.clear();
    return candidates;
  }

  [[nodiscard]] double limit() const { return fastest_ * kTied; }
  [[nodiscard]] bool suits(std::size_t entry) const {
    return menu_.changed || suits_layout(problem_, menu_.entries[entry].tile);
  }

  /// All candidates that their floors do not rule out once the entry of the lowest floor is timed.
  void collect() {
    const std::size_t entries = menu_.entries.size();
    for (std::size_t i = 0; i < entries; ++i)
      if (menu_.entries[i].tile.stream_k) floors_[i] = kNever;  // shared k-steps: their floor is not known
    const std::size_t lowest = lowest_floor();
    if (lowest < entries) time(add(lowest, 1, false, 0, floors_[lowest]));
    if (menu_.with_stream_k)
      for (std::size_t i = 0; i < entries; ++i) {
        const GemmTile& tile = menu_.entries[i].tile;
        if (tile.stream_k && suits(i) && suits_stream_k(law_, problem_, tile, gpu_)) time(add(i, 1, true, 0, 0.0));
      }
    for (std::size_t i = 0, raised = 0; i < entries; ++i) {
      if (floors_[i] > limit() || i == lowest || menu_.entries[i].tile.stream_k) continue;
      if (i >= raised) {
        raised = (i / GemmTileShapes::kGroup + 1) * GemmTileShapes::kGroup;
        floor_.raise(menu_.shapes, tilings_, raised - GemmTileShapes::kGroup, floors_.data());
      }
      if (floors_[i] <= limit() && suits(i)) add(i, 1, false, 0, floors_[i]);
    }
    if (!splittable_) return;
    const bool lengthy = menu_.changed || is_long(problem_);
    if (persistent_) {
      if (lengthy)
        collect_splits(false, {.most = kPersistentSplits.back(), .least_steps = GemmLaw::kLeastStepsOfSplit}, 1);
      return;
    }
    const auto most = static_cast<float>(std::min<std::int64_t>(kMostSplits, problem_.k / GemmLaw::kLeastSplit));
    if (most < 2.0F) return;
    if (lengthy) collect_splits(false, {.most = most, .rounds = kMostRounds}, 1);
    if (lengthy || problem_.family != GemmWork::Family::simt)
      collect_splits(true, {.few = kFewSplits, .most = most, .rounds = kMostRounds}, 1 + kMostTiledSplits);
  }

  /// The suitable entry of the lowest floor; the number of entries where there is none.
  std::size_t lowest_floor() {
    while (true) {
      const std::size_t entry = place_of_least(floors_.data(), menu_.entries.size());
      if (floors_[entry] == kNever) return menu_.entries.size();
      if (suits(entry)) return entry;
      floors_[entry] = kNever;
    }
  }

  void collect_splits(bool in_place, const GemmFloor::SplitLimits& limits, int order) {
    std::array<float, GpuMenu::kMostEntries> least;
    floor_.splits(menu_.shapes, tilings_, limits, in_place, least.data());
    // The most promising entry first: what its best split takes rules out most of the others.
    const std::size_t first = place_of_least(least.data(), menu_.entries.size());
    const auto consider = [&](std::size_t i) {
      if (least[i] <= limit() && !menu_.entries[i].tile.stream_k && suits(i)) collect_splits_of(i, in_place, order);
    };
    const std::size_t known = near_.size();
    consider(first);
    Near* best = nullptr;
    for (std::size_t i = known; i < near_.size(); ++i)
      if (best == nullptr || near_[i].floor < best->floor) best = &near_[i];
    if (best != nullptr && best->floor < fastest_) time(*best);
    for (std::size_t i = 0; i < menu_.entries.size(); ++i)
      if (i != first) consider(i);
  }
  void collect_splits_of(std::size_t entry, bool in_place, int order) {
    GemmTile tile = menu_.entries[entry].tile;
    tile.stream_k = in_place;
    const double count = law_.tiles(tile);
    TiledSplits room{};
    std::span<const int> all = kPersistentSplits;
    if (!persistent_) all = tiled_splits(count, static_cast<double>(problem_.k), gpu_.sm.count, in_place, room);
    // What is too many splits is too many for more, too.
    while (!all.empty() && !law_.may_split(tile, all.back(), count)) all = all.first(all.size() - 1);
    add_splits(entry, all, in_place, order);
  }
  void add_splits(std::size_t entry, std::span<const int> splits, bool in_place, int order) {
    constexpr std::size_t kGroup = GemmTileShapes::kGroup;
    std::array<float, kGroup> group, least;
    for (std::size_t begin = 0; begin < splits.size(); begin += kGroup) {
      for (std::size_t i = 0; i < kGroup; ++i)
        group[i] = static_cast<float>(splits[std::min(begin + i, splits.size() - 1)]);
      floor_.split(menu_.shapes, tilings_, entry, group.data(), in_place, least.data());
      for (std::size_t i = 0; i < kGroup && begin + i < splits.size(); ++i)
        if (least[i] <= limit()) add(entry, splits[begin + i], in_place, order + static_cast<int>(begin + i), least[i]);
    }
  }

  Near& add(std::size_t entry, int splits, bool in_place, int order, double floor) {
    near_.push_back(
        {{&menu_.entries[entry], splits, in_place}, static_cast<int>(entry) * kOrders + order, false, floor});
    return near_.back();
  }

  static GemmTile tile_of(const Candidate& candidate) {
    GemmTile tile = candidate.choice->tile;
    tile.stream_k = candidate.in_place;
    return tile;
  }

  void time(Near& near) {
    near.timed = true;
    near.seconds = law_.seconds(tile_of(near), near.splits, limit());
    fastest_ = std::min(fastest_, near.seconds);
  }

  [[nodiscard]] double rank(const Near& near, double seconds) const {
    if (by_time_) return seconds;
    Candidate candidate = near;
    candidate.one_round = law_.tiles(near.choice->tile) * near.splits <= gpu_.sm.count;
    return seconds * (1.0 + dislike(candidate, constants_));
  }

  /// Of the candidates that tie the one that ranks best.
  GemmSelection preferred() {
    double best_rank = std::numeric_limits<double>::infinity();
    const Near* best = nullptr;
    const auto consider = [&](const Near& near) {
      if (near.seconds > limit()) return;
      const double its = rank(near, near.seconds);
      if (its > best_rank || (its == best_rank && near.order > best->order)) return;
      best_rank = its;
      best = &near;
    };
    for (Near& near : near_) {
      if (near.timed) consider(near);
      else near.floor = near.floor <= limit() ? rank(near, near.floor) : std::numeric_limits<double>::infinity();
    }
    // The floors of those not timed yet have become floors of their ranks.
    const auto most_promising = [&] {
      Near* first = nullptr;
      for (Near& near : near_)
        if (!near.timed && near.floor <= best_rank && (first == nullptr || near.floor < first->floor)) first = &near;
      return first;
    };
    for (Near* next = most_promising(); next != nullptr; next = most_promising()) {
      time(*next);
      consider(*next);
    }
    GemmSelection selection;
    selection.family = problem_.family;
    selection.fastest = fastest_;
    selection.seconds = std::numeric_limits<double>::infinity();
    if (best == nullptr) return selection;
    selection.tile = tile_of(*best);
    selection.choice = best->choice;
    selection.splits = best->splits;
    selection.seconds = best->seconds;
    selection.clears_counter = law_.needs_counter(selection.tile, selection.splits);
    return selection;
  }

  /// More candidates than an entry can have.
  static constexpr float kNever = std::numeric_limits<float>::infinity();
  static constexpr int kOrders = 64;
  static_assert(kOrders > 1 + 2 * std::tuple_size_v<TiledSplits> && kOrders > 1 + kPersistentSplits.size());

  const GemmWork& problem_;
  const Gpu& gpu_;
  const GemmConstants& constants_;
  const GpuMenu& menu_;
  GemmLaw law_;
  GemmFloor floor_;
  bool persistent_, splittable_, by_time_;
  std::array<float, GpuMenu::kMostEntries> rows_, columns_, steps_, floors_;
  GemmTilings tilings_{rows_.data(), columns_.data(), steps_.data()};
  std::vector<Near>& near_;
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
