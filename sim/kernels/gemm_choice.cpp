// One choice, by branch and bound. Every candidate has a floor that its time is not below (gemm_floor.h), first of all
// splits of an entry together and roughly. What looks most promising is looked at more closely, until it is timed by
// the law: first what may be the fastest, then, of what may tie with it, what may rank best, last what the library may
// take instead.
#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "sim/kernels/gemm_candidates.h"
#include "sim/kernels/gemm_selection.h"
#include "sim/timing/four_floats.h"

namespace ridgeline {
namespace {

/// The library does take slower kernels: its estimate is another than this law. The time of a product is expected over
/// all candidates within kTaken of the fastest, each weighted by (1 - d/kDoubt)², d being how much worse than the
/// choice it ranks. Without, products come out 2 to 4 % too fast: the fastest of many estimates is mostly one that is
/// too low. On architectures whose products were not profiled nothing is known of it, and the choice's time is taken.
constexpr double kTaken = 1.2, kDoubt = 0.2;

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
  if (menu.entries.empty()) {  // nothing of it fits an SM
    GemmSelection none;
    none.fastest = none.seconds = std::numeric_limits<double>::infinity();
    return none;
  }
  return Choice(problem, gpu, constants, menu, of_interest).make();
}

}  // namespace ridgeline
