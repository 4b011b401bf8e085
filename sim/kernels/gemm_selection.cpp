#include "sim/kernels/gemm_selection.h"

#include <algorithm>
#include <array>
#include <bitset>
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
/// too low. On architectures whose products were not profiled nothing is known of it, and the choice's time is taken.
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

/// One choice, by branch and bound. Every candidate has a floor that its time is not below (gemm_floor.h), first of all
/// splits of an entry together and roughly. What looks most promising is looked at more closely, until it is timed by
/// the law: first what may be the fastest, then, of what may tie with it, what may rank best, last what the library may
/// take instead.
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
        doubted_(menu.profiled && !by_time_),
        work_(static_cast<double>(problem.batch) * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
              static_cast<double>(problem.k) / gpu.sm.count),
        room_(emptied_room()),
        fastest_(of_interest) {
    std::array<float, GpuMenu::kMostLengths> in_m, in_n, in_k;
    cut(problem.m, menu.sides, in_m.data());
    cut(problem.n, menu.sides, in_n.data());
    cut(problem.k, menu.depths, in_k.data());
    const GpuMenu::Place* const places = menu.places.data();
    for (std::size_t i = 0, filled = menu.shapes.filled(); i < filled; ++i) {
      rows_[i] = in_m[places[i].m];
      columns_[i] = in_n[places[i].n];
      steps_[i] = in_k[places[i].k];
    }
    floor_.whole(menu.shapes, tilings_, floors_.data());
    std::fill(floors_.begin() + menu.entries.size(), floors_.begin() + menu.shapes.filled(), kNever);
  }

  GemmSelection make() {
    collect();
    for (std::size_t next = lowest(); keys_[next] < kNever && keys_[next] <= fastest_; next = lowest())
      look_closer(next);
    if (found_) return preferred();
    GemmSelection none;
    none.fastest = none.seconds = kInfinite;
    return none;
  }

 private:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  static constexpr float kNever = std::numeric_limits<float>::infinity();
  enum class Known : std::uint8_t {
    some_splits,  ///< the least that any number of splits may take
    roughly,
    closely,
    timed,
    out  ///< slower than what counts, or replaced by its single numbers of splits
  };
  /// A candidate, or all splits of an entry, with what is known of its time.
  struct Near : Candidate {
    int order = 0;  ///< place among all candidates: of equals the first wins
    Known known = Known::closely;
    float floor = 0;
    double seconds = 0;  ///< once timed, infinite where it is more than counts
    double rank = 0;     ///< of `seconds` once timed, else not more than it
  };

  /// Kept from one choice of a thread to the next: no choice allocates.
  struct Room {
    std::vector<Near> near;
    std::vector<float> keys;
    std::vector<std::size_t> slower;
  };
  static Room& emptied_room() {
    static thread_local Room room;
    room.near.clear();
    room.keys.assign(GemmTileShapes::kGroup, kNever);
    room.slower.clear();
    return room;
  }

  /// Slower candidates do not count.
  [[nodiscard]] double limit() const { return fastest_ * (doubted_ ? kTaken : kTied); }
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

  /// All that floors do not rule out once the entry of the lowest floor is timed.
  void collect() {
    const std::size_t entries = menu_.entries.size();
    if (menu_.with_stream_k)
      for (std::size_t i = 0; i < entries; ++i)
        if (menu_.entries[i].tile.stream_k) floors_[i] = kNever;  // shared k-steps: their floor is not known
    const std::size_t first = lowest_floor();
    if (first < entries) time(add(first, 1, false, 0, floors_[first], Known::closely));
    const float most = limit_of_floors();
    for (std::size_t i = 0; i < entries; ++i) {
      if (floors_[i] <= most && i != first && suits(i))
        add(i, 1, false, 0, floors_[i], persistent_ ? Known::roughly : Known::closely);
    }
    if (menu_.with_stream_k)
      for (std::size_t i = 0; i < entries; ++i) {
        const GemmTile& tile = menu_.entries[i].tile;
        if (tile.stream_k && runs(i, Mode::in_place) && suits_stream_k(law_, problem_, tile, gpu_))
          add(i, 1, true, 0, 0.0F, Known::closely);
      }
    if (!splittable_) return;
    const bool lengthy = menu_.changed || is_long(problem_);
    if (persistent_) {
      if (lengthy)
        collect_splits(false, {.most = kPersistentSplits.back(), .least_steps = GemmLaw::kLeastStepsOfSplit});
      return;
    }
    const auto fits = static_cast<float>(std::min<std::int64_t>(kMostSplits, problem_.k / GemmLaw::kLeastSplit));
    if (fits < 2.0F) return;
    if (lengthy) collect_splits(false, {.most = fits, .rounds = kMostRounds});
    if (lengthy || problem_.family != GemmWork::Family::simt)
      collect_splits(true, {.few = kFewSplits, .most = fits, .rounds = 0.0F});
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

  void collect_splits(bool in_place, const GemmFloor::SplitLimits& limits) {
    std::array<float, GpuMenu::kMostEntries> least;
    floor_.splits(menu_.shapes, tilings_, limits, in_place, least.data());
    const float most = limit_of_floors();
    for (std::size_t i = 0; i < menu_.entries.size(); ++i)
      if (least[i] <= most && !menu_.entries[i].tile.stream_k &&
          runs(i, in_place ? Mode::in_place : Mode::second_kernel))
        add(i, kMostSplits, in_place, in_place ? 1 + kMostTiledSplits : 1, least[i], Known::some_splits);
  }

  /// The candidates that `all` splits of an entry stand for.
  void add_splits_of(const Near& all) {
    constexpr std::size_t kGroup = GemmTileShapes::kGroup;
    const std::size_t entry = entry_of(all);
    const GemmTile tile = tile_of(all);
    const double count = law_.tiles(tile);
    TiledSplits room{};
    std::span<const int> splits = kPersistentSplits;
    if (!persistent_)
      splits =
          tiled_splits(count, static_cast<double>(problem_.k), gpu_.sm.count, tile.blocks_per_sm, all.in_place, room);
    // What is too many splits is too many for more, too.
    while (!splits.empty() && !law_.may_split(tile, splits.back(), count)) splits = splits.first(splits.size() - 1);
    std::array<float, kGroup> group, least;
    const float most = limit_of_floors();
    float best = kNever;
    std::size_t place_of_best = 0;
    for (std::size_t begin = 0; begin < splits.size(); begin += kGroup) {
      for (std::size_t i = 0; i < kGroup; ++i)
        group[i] = static_cast<float>(splits[std::min(begin + i, splits.size() - 1)]);
      floor_.split(menu_.shapes, tilings_, entry, group.data(), all.in_place, least.data());
      for (std::size_t i = 0, left = std::min(kGroup, splits.size() - begin); i < left; ++i) {
        if (least[i] > most) continue;
        const int order = all.order % kOrders + static_cast<int>(begin + i);
        const std::size_t place = add(entry, splits[begin + i], all.in_place, order, least[i], Known::closely);
        if (least[i] >= best) continue;
        best = least[i];
        place_of_best = place;
      }
    }
    // What it takes rules out many of the others at once.
    if (best < fastest_) time(place_of_best);
  }

  std::size_t add(std::size_t entry, int splits, bool in_place, int order, float floor, Known known) {
    const std::size_t place = near_.size();
    near_.push_back(
        {{&menu_.entries[entry], splits, in_place}, static_cast<int>(entry) * kOrders + order, known, floor});
    if (place == keys_.size()) keys_.resize(place + GemmTileShapes::kGroup, kNever);
    keys_[place] = floor;
    return place;
  }
  [[nodiscard]] std::size_t entry_of(const Candidate& candidate) const {
    return static_cast<std::size_t>(candidate.choice - menu_.entries.data());
  }

  /// The one to look at next.
  [[nodiscard]] std::size_t lowest() const { return place_of_least(keys_.data(), keys_.size()); }

  void look_closer(std::size_t place) {
    Near& near = near_[place];
    keys_[place] = kNever;
    if (near.known == Known::closely) {
      time(place);
    } else if (near.known == Known::roughly) {
      const std::size_t entry = entry_of(near), group = entry / GemmTileShapes::kGroup;
      if (!raised_[group]) floor_.raise(menu_.shapes, tilings_, group * GemmTileShapes::kGroup, floors_.data());
      raised_[group] = true;
      keys_[place] = near.floor = floors_[entry];
      near.known = Known::closely;
    } else {
      near.known = Known::out;
      add_splits_of(Near(near));
    }
  }

  static GemmTile tile_of(const Candidate& candidate) {
    GemmTile tile = candidate.choice->tile;
    tile.stream_k = candidate.in_place;
    return tile;
  }

  void time(std::size_t place) {
    Near& near = near_[place];
    keys_[place] = kNever;
    near.known = Known::timed;
    near.seconds = law_.seconds(tile_of(near), near.splits, limit());
    if (near.seconds >= fastest_) return;
    fastest_ = near.seconds;
    found_ = true;
  }

  /// The rank of a candidate that takes `seconds`; of all splits of an entry not more than theirs.
  [[nodiscard]] double rank(const Near& near, double seconds) const {
    if (by_time_) return seconds;
    Candidate candidate = near;
    if (near.known == Known::some_splits) {
      candidate.one_round = constants_.rank_one_round < 0.0;
      candidate.waste = constants_.rank_waste < 0.0 ? 1.0 : 0.0;
      if (constants_.rank_log_split > 0.0) candidate.splits = 2;
    } else {
      // Whole numbers, exact in single precision as long as they can be so few.
      const std::size_t entry = entry_of(near);
      const auto blocks = static_cast<double>(rows_[entry] * columns_[entry] * static_cast<float>(problem_.batch) *
                                              static_cast<float>(near.splits));
      const double sms = gpu_.sm.count;
      candidate.one_round = blocks <= sms;
      const GemmTile& tile = near.choice->tile;
      const double steps = pieces_of(static_cast<double>(problem_.k), static_cast<double>(near.splits) * tile.k);
      candidate.waste = 1.0 - work_ / (pieces_of(blocks / sms, 1.0) * steps * tile.m * tile.n * tile.k);
    }
    return seconds * (1.0 + dislike(candidate, constants_));
  }

  /// What is known of the rank of a candidate that counts: of one not timed yet not more than it, and its key.
  void rank(std::size_t place) {
    constexpr float kLess = 1.0F - 1e-6F;  // room for single precision
    Near& near = near_[place];
    keys_[place] = kNever;
    const bool timed = near.known == Known::timed;
    const double seconds = timed ? near.seconds : near.floor;
    if (near.known == Known::out || seconds > limit()) {
      near.known = Known::out;
      return;
    }
    near.rank = rank(near, seconds);
    if (!timed) keys_[place] = static_cast<float>(near.rank) * kLess;
  }
  /// Looks at one more closely and ranks what comes of it.
  void look_closer_and_rank(std::size_t place) {
    const std::size_t before = near_.size();
    look_closer(place);
    rank(place);
    for (std::size_t i = before; i < near_.size(); ++i) rank(i);
  }

  /// Of the candidates that tie the one that ranks best.
  GemmSelection preferred() {
    const double tied = fastest_ * kTied;
    for (std::size_t i = 0; i < near_.size(); ++i) rank(i);
    std::size_t best = near_.size();
    for (std::size_t i = 0; i < near_.size(); ++i) best = better(best, i, tied);
    // Those that rank best first, in so far as they may tie.
    while (true) {
      const std::size_t next = lowest();
      if (keys_[next] == kNever || keys_[next] > near_[best].rank) break;
      if (near_[next].floor > tied) {
        slower_.push_back(next);
        keys_[next] = kNever;
        continue;
      }
      const std::size_t before = near_.size();
      look_closer_and_rank(next);
      best = better(best, next, tied);
      for (std::size_t i = before; i < near_.size(); ++i) best = better(best, i, tied);
    }
    GemmSelection selection;
    selection.family = problem_.family;
    selection.fastest = fastest_;
    selection.tile = tile_of(near_[best]);
    selection.choice = near_[best].choice;
    selection.splits = near_[best].splits;
    selection.seconds = near_[best].seconds;
    selection.expected = doubted_ ? expected(near_[best].rank) : selection.seconds;
    selection.clears_counter = law_.needs_counter(selection.tile, selection.splits);
    return selection;
  }
  /// The better one of the best so far and a candidate, if that is timed and ties.
  [[nodiscard]] std::size_t better(std::size_t best, std::size_t other, double tied) const {
    const Near& near = near_[other];
    if (near.known != Known::timed || near.seconds > tied) return best;
    if (best == near_.size()) return other;
    const bool before =
        near.rank < near_[best].rank || (near.rank == near_[best].rank && near.order < near_[best].order);
    return before ? other : best;
  }

  /// Seconds expected where the choice ranks `best`; of candidates that are not timed the floor will do, which is
  /// mostly a hundredth less at most.
  double expected(double best) {
    const double last = best * (1.0 + kDoubt);
    for (const std::size_t place : slower_) rank(place);
    double sum = 0.0, weights = 0.0;
    for (std::size_t i = 0; i < near_.size(); ++i) {
      if (near_[i].known < Known::closely && near_[i].rank < last) look_closer_and_rank(i);
      const Near& near = near_[i];
      if (near.known == Known::out || near.rank >= last) continue;
      const double sure = std::max(0.0, 1.0 - std::max(0.0, near.rank / best - 1.0) / kDoubt);
      sum += sure * sure * (near.known == Known::timed ? near.seconds : near.floor);
      weights += sure * sure;
    }
    return sum / weights;
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
  bool persistent_, splittable_, by_time_, doubted_;
  double work_;  ///< multiply-adds of an SM, were they shared out evenly
  std::array<float, GpuMenu::kMostEntries> rows_, columns_, steps_, floors_;
  std::bitset<GpuMenu::kMostEntries / GemmTileShapes::kGroup> raised_;  ///< groups of entries known closely
  GemmTilings tilings_{rows_.data(), columns_.data(), steps_.data()};
  Room& room_;
  std::vector<Near>& near_ = room_.near;
  /// By which what is not timed yet is looked at next, lowest first: its floor, then not more than its rank. Filled up
  /// to groups of four, infinite for what has been looked at.
  std::vector<float>& keys_ = room_.keys;
  std::vector<std::size_t>& slower_ = room_.slower;  ///< places of those that rank well and do not tie
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
