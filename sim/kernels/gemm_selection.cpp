#include "sim/kernels/gemm_selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "sim/timing/four_floats.h"

namespace ridgeline {
namespace {

constexpr std::array kPersistentSplits{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr int kMostSplits = 64, kFewSplits = 9, kMostRounds = 3;

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

/// A second kernel adds up splits of long products only: of tiled kernels k is at least twice the shorter side in
/// 1,690 of 1,730 profiled ones, of persistent ones eight times in all of 650.
bool is_long(const GemmWork& problem) {
  const int least = problem.family == GemmWork::Family::wgmma ? 8 : 2;
  return problem.k >= least * std::min(problem.m, problem.n);
}

constexpr int kMostTiledSplits = kFewSplits - 1;
using TiledSplits = std::array<int, kMostTiledSplits>;

/// Splits of a tiled kernel, ascending. Those for a second kernel fill whole rounds of the SMs, up to three and no more
/// than are resident at once (of 1,080 profiled ones all but 60); in place few.
std::span<const int> tiled_splits(double tiles, double k, double sms, int blocks_per_sm, bool in_place,
                                  TiledSplits& room) {
  std::size_t count = 0;
  if (in_place) {
    for (int splits = 2; splits <= kFewSplits; ++splits) room[count++] = splits;
    return {room.data(), count};
  }
  const double most = std::min(static_cast<double>(kMostSplits), k / GemmLaw::kLeastSplit);
  for (int rounds = 1; rounds <= std::min(kMostRounds, blocks_per_sm); ++rounds) {
    const int splits = static_cast<int>(std::min(most, rounds * sms / tiles));
    if (splits >= 2 && (count == 0 || splits > room[count - 1])) room[count++] = splits;
  }
  return {room.data(), count};
}

/// Candidates within this of the fastest tie: neither the law nor the library tells them apart for sure, and the
/// library's habits decide. It is also the most that a better chip can lose by a worse choice.
constexpr double kTied = 1.05;

/// The library does take slower kernels: its estimate is another than this law. The time of a product is expected over
/// all candidates within kTaken of the fastest, each weighted by (1 - d/kDoubt)², d being how much worse than the
/// choice it ranks. Without, products come out 2 to 4 % too fast: the fastest of many estimates is mostly one that is
/// too low.
constexpr double kTaken = 1.2, kDoubt = 0.16;

/// One of a menu's kernels on the problem.
struct Candidate {
  const TileChoice* choice = nullptr;
  int splits = 1;
  bool in_place = false;  ///< splits or k-steps added up by the kernel itself
  bool one_round = false;
  double waste = 0;  ///< share of the fullest SM's tiles, times SMs, that is none of the product
};

/// What speaks against a tied candidate in the library's choice, in shares of its time.
double dislike(const Candidate& candidate, const GemmConstants& c) {
  const TileChoice& choice = *candidate.choice;
  double sum = c.rank_aspect * choice.log_aspect + c.rank_area * choice.log_area + c.rank_deep * choice.log_deep;
  if (std::max(choice.tile.m, choice.tile.n) >= 256) sum += c.rank_wide;
  if (candidate.one_round) sum += c.rank_one_round;
  sum += c.rank_waste * candidate.waste;
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
  /// `of_interest`: seconds; where no candidate is faster the choice is empty.
  Choice(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu,
         double of_interest)
      : problem_(problem),
        gpu_(gpu),
        constants_(constants),
        menu_(menu),
        law_(problem, gpu, constants),
        floor_(law_),
        persistent_(problem.family == GemmWork::Family::wgmma),
        splittable_(persistent_ ? !problem.bias : problem.batch == 1),
        by_time_(menu.changed || problem.sparse != SparseOperand::none),
        work_(static_cast<double>(problem.batch) * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
              static_cast<double>(problem.k) / gpu.sm.count),
        near_(emptied_candidates()),
        fastest_(of_interest) {
    std::array<float, GpuMenu::kMostLengths> in_m, in_n, in_k;
    cut(problem.m, menu.sides, in_m.data());
    cut(problem.n, menu.sides, in_n.data());
    cut(problem.k, menu.depths, in_k.data());
    const std::span<const GpuMenu::Place> places = menu.places;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const GpuMenu::Place place = places[i];
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
    if (found_) return preferred();
    GemmSelection none;
    none.fastest = none.seconds = kInfinite;
    return none;
  }

 private:
  /// A candidate with what is known of its time; `order` is its place among all: of equals the first wins.
  struct Near : Candidate {
    int order = 0;
    bool timed = false;
    double floor = 0, seconds = 0;  ///< `seconds` once timed, infinite where it is more than counts
    double rank = 0;                ///< of `seconds` once timed, of `floor` before
  };

  /// Kept from one choice of a thread to the next: no choice allocates.
  static std::vector<Near>& emptied_candidates() {
    static thread_local std::vector<Near> candidates;
    candidates.clear();
    return candidates;
  }

  /// Slower candidates do not count.
  [[nodiscard]] double limit() const { return fastest_ * (by_time_ ? kTied : kTaken); }
  /// In single precision, not less.
  [[nodiscard]] float limit_of_floors() const { return static_cast<float>(limit() * (1.0 + 1e-6)); }
  /// How many of each of some lengths cover a side of the problem.
  static void cut(std::int64_t side, const std::vector<float>& lengths, float* pieces) {
    const auto whole = static_cast<float>(side);
    for (std::size_t i = 0; i < lengths.size(); i += GemmTileShapes::kGroup) {
      const FourFloats four = pieces_of(whole, loaded<FourFloats>(lengths.data() + i));
      std::memcpy(pieces + i, &four, sizeof four);
    }
  }
  [[nodiscard]] bool runs(std::size_t entry, Mode mode) const {
    return menu_.changed || menu_.entries[entry].runs.has(mode, problem_.layout);
  }
  [[nodiscard]] bool suits(std::size_t entry) const {
    return runs(entry, problem_.batch > 1 ? Mode::batched : Mode::whole);
  }

  /// All candidates that their floors do not rule out once the entry of the lowest floor is timed.
  void collect() {
    const std::size_t entries = menu_.entries.size();
    if (menu_.with_stream_k)
      for (std::size_t i = 0; i < entries; ++i)
        if (menu_.entries[i].tile.stream_k) floors_[i] = kNever;  // shared k-steps: their floor is not known
    const std::size_t lowest = lowest_floor();
    if (lowest < entries) time(add(lowest, 1, false, 0, floors_[lowest]));
    if (menu_.with_stream_k)
      for (std::size_t i = 0; i < entries; ++i) {
        const GemmTile& tile = menu_.entries[i].tile;
        if (tile.stream_k && runs(i, Mode::in_place) && suits_stream_k(law_, problem_, tile, gpu_))
          time(add(i, 1, true, 0, 0.0));
      }
    const float most = limit_of_floors();
    for (std::size_t i = 0, raised = 0; i < entries; ++i) {
      if (floors_[i] > most || i == lowest || menu_.entries[i].tile.stream_k) continue;
      if (i >= raised) {
        raised = (i / GemmTileShapes::kGroup + 1) * GemmTileShapes::kGroup;
        floor_.raise(menu_.shapes, tilings_, raised - GemmTileShapes::kGroup, floors_.data());
      }
      if (floors_[i] <= most && suits(i)) add(i, 1, false, 0, floors_[i]);
    }
    if (!splittable_) return;
    const bool lengthy = menu_.changed || is_long(problem_);
    if (persistent_) {
      if (lengthy)
        collect_splits(false, {.most = kPersistentSplits.back(), .least_steps = GemmLaw::kLeastStepsOfSplit}, 1);
      return;
    }
    const auto fits = static_cast<float>(std::min<std::int64_t>(kMostSplits, problem_.k / GemmLaw::kLeastSplit));
    if (fits < 2.0F) return;
    if (lengthy) collect_splits(false, {.most = fits, .rounds = kMostRounds}, 1);
    if (lengthy || problem_.family != GemmWork::Family::simt)
      collect_splits(true, {.few = kFewSplits, .most = fits, .rounds = 0.0F}, 1 + kMostTiledSplits);
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
    float limit = limit_of_floors();
    const auto consider = [&](std::size_t i) {
      if (least[i] <= limit && !menu_.entries[i].tile.stream_k &&
          runs(i, in_place ? Mode::in_place : Mode::second_kernel))
        collect_splits_of(i, in_place, order);
    };
    const std::size_t known = near_.size();
    consider(first);
    Near* best = nullptr;
    for (std::size_t i = known; i < near_.size(); ++i)
      if (best == nullptr || near_[i].floor < best->floor) best = &near_[i];
    if (best != nullptr && best->floor < fastest_) time(*best);
    limit = limit_of_floors();
    for (std::size_t i = 0; i < menu_.entries.size(); ++i)
      if (i != first) consider(i);
  }
  void collect_splits_of(std::size_t entry, bool in_place, int order) {
    GemmTile tile = menu_.entries[entry].tile;
    tile.stream_k = in_place;
    const double count = law_.tiles(tile);
    TiledSplits room{};
    std::span<const int> all = kPersistentSplits;
    if (!persistent_)
      all = tiled_splits(count, static_cast<double>(problem_.k), gpu_.sm.count, tile.blocks_per_sm, in_place, room);
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
    if (near.seconds >= fastest_) return;
    fastest_ = near.seconds;
    found_ = true;
  }

  [[nodiscard]] double rank(const Near& near, double seconds) const {
    if (by_time_) return seconds;
    Candidate candidate = near;
    // Whole numbers, exact in single precision as long as they can be so few.
    const auto entry = static_cast<std::size_t>(near.choice - menu_.entries.data());
    const auto blocks = static_cast<double>(rows_[entry] * columns_[entry] * static_cast<float>(problem_.batch) *
                                            static_cast<float>(near.splits));
    const double sms = gpu_.sm.count;
    candidate.one_round = blocks <= sms;
    const GemmTile& tile = near.choice->tile;
    const double steps = pieces_of(static_cast<double>(problem_.k), static_cast<double>(near.splits) * tile.k);
    candidate.waste = 1.0 - work_ / (pieces_of(blocks / sms, 1.0) * steps * tile.m * tile.n * tile.k);
    return seconds * (1.0 + dislike(candidate, constants_));
  }

  /// Of the candidates that tie the one that ranks best.
  GemmSelection preferred() {
    const double tied = fastest_ * kTied;
    const Near* best = nullptr;
    const auto consider = [&](const Near& near) {
      if (near.seconds > tied) return;
      if (best == nullptr || near.rank < best->rank || (near.rank == best->rank && near.order < best->order))
        best = &near;
    };
    for (Near& near : near_) {
      near.rank = rank(near, near.timed ? near.seconds : near.floor);
      if (near.timed) consider(near);
    }
    const auto most_promising = [&] {
      Near* first = nullptr;
      for (Near& near : near_)
        if (!near.timed && near.floor <= tied && (best == nullptr || near.rank <= best->rank) &&
            (first == nullptr || near.rank < first->rank))
          first = &near;
      return first;
    };
    for (Near* next = most_promising(); next != nullptr; next = most_promising()) {
      time(*next);
      next->rank = rank(*next, next->seconds);
      consider(*next);
    }
    GemmSelection selection;
    selection.family = problem_.family;
    selection.fastest = fastest_;
    selection.tile = tile_of(*best);
    selection.choice = best->choice;
    selection.splits = best->splits;
    selection.seconds = best->seconds;
    selection.expected = by_time_ ? best->seconds : expected(best->rank);
    selection.clears_counter = law_.needs_counter(selection.tile, selection.splits);
    return selection;
  }

  /// Seconds expected where the choice ranks `best`.
  double expected(double best) {
    double sum = 0.0, weights = 0.0;
    for (Near& near : near_) {
      if (near.rank >= best * (1.0 + kDoubt) || (!near.timed && near.floor > limit())) continue;
      if (!near.timed) {
        time(near);
        near.rank = rank(near, near.seconds);
      }
      if (near.seconds > limit()) continue;
      const double sure = std::max(0.0, 1.0 - std::max(0.0, near.rank / best - 1.0) / kDoubt);
      sum += sure * sure * near.seconds;
      weights += sure * sure;
    }
    return sum / weights;
  }

  /// More candidates than an entry can have.
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
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
  double work_;  ///< multiply-adds of an SM, were they shared out evenly
  std::vector<Near>& near_;
  double fastest_;
  bool found_ = false;  ///< a candidate as fast as fastest_
};

}  // namespace

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu,
                          double of_interest) {
  return Choice(problem, gpu, constants, menu, of_interest).make();
}

namespace {

/// The library keeps to the kernels of the generation before for small products, and where operands are transposed,
/// also where they are slower. Right in 92 of 100 of 2,690 profiled products.
class OlderKernels {
 public:
  explicit OlderKernels(const GemmWork& problem) {
    constexpr double kWork = 29.4, kPerDoubling = 0.078, kNn = 0.269, kTn = 0.261;
    const double work = static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                        static_cast<double>(problem.n) * static_cast<double>(problem.k);
    even_ = 1.0 + kPerDoubling * (kWork - std::log2(work));
    if (problem.layout == 0) even_ += kNn;
    if (problem.layout >= 2) even_ += kTn;
  }
  /// How surely they are taken where they need `ratio` of the newer ones' time.
  [[nodiscard]] double share(double ratio) const {
    return std::clamp(0.5 - (ratio - even_) / (2.0 * kUncertain), 0.0, 1.0);
  }
  /// Ratio from which on they are not taken.
  [[nodiscard]] double slowest() const { return even_ + kUncertain; }

 private:
  static constexpr double kUncertain = 0.2;
  double even_;
};

}  // namespace

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GpuMenus& menus) {
  const auto from_class = [&](const GemmWork& work, double of_interest) {
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    return select_gemm(work, gpu, gemm_constants(kernel_class), menus.of(kernel_class, work.batch > 1), of_interest);
  };
  constexpr double kAny = std::numeric_limits<double>::infinity();
  GemmSelection selection = from_class(problem, kAny);
  if (problem.family != GemmWork::Family::wgmma || problem.type != DType::tf32) return selection;
  GemmWork older = problem;
  older.family = GemmWork::Family::mma_sync;
  // Of kernels that nobody profiled the fastest is taken.
  const bool profiled = problem.sparse == SparseOperand::none && gpu.gemm.tiles.empty();
  const OlderKernels habit(problem);
  const double fast_enough = selection.seconds * (profiled ? std::max(1.0, habit.slowest()) : 1.0);
  const GemmSelection other = from_class(older, std::nextafter(fast_enough, kAny));
  if (other.choice == nullptr) return selection;
  if (!profiled) return other.seconds <= selection.seconds ? other : selection;
  const double share = habit.share(other.seconds / selection.seconds);
  const double expected = share * other.expected + (1.0 - share) * selection.expected;
  const double most = std::min(selection.fastest, other.fastest) * kTied;
  if (share >= 0.5 ? other.seconds <= most : selection.seconds > most) selection = other;
  selection.expected = expected;
  return selection;
}

}  // namespace ridgeline
