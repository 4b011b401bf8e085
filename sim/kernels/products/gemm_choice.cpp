// One choice, by branch and bound. Every candidate has a floor that its time is not below (gemm_floor.h), first of all
// splits of an entry together. What looks most promising is looked at more closely, until it is timed by the law; what
// cannot be among the few that count is never timed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "sim/kernels/products/gemm_candidates.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/timing/likely_time.h"
#include "sim/timing/products/four_floats.h"

namespace ridgeline {
namespace {

class Choice {
 public:
  /// `of_interest`: candidates that rank no better do not count.
  Choice(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu,
         double of_interest, const GemmMisses& missed)
      : problem_(problem),
        constants_(constants),
        menu_(menu),
        sms_(gpu.sm.count),
        law_(problem, gpu, constants, missed.read, missed.write),
        floor_(law_),
        persistent_(problem.family == GemmWork::Family::wgmma),
        counted_(menu.often_others ? kTurns.size() : 1),
        limit_of_ranks_(of_interest),
        limit_(static_cast<float>(of_interest * (1.0 + 1e-6))),
        room_(emptied_room()) {
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
    for (std::size_t i = 0, filled = menu.shapes.filled(); i < filled; ++i) floors_[i] *= menu.weights[i];
    std::fill(floors_.begin() + menu.entries.size(), floors_.begin() + menu.shapes.filled(), kNever);
  }

  GemmSelection make() {
    collect();
    for (std::size_t next = lowest(); keys_[next] < limit_; next = lowest()) look_closer(next);
    return selection();
  }

 private:
  static constexpr float kNever = std::numeric_limits<float>::infinity();
  /// A candidate, or all splits of an entry.
  struct Near : Candidate {
    bool all_splits = false;
  };
  struct Ranked : Candidate {
    double rank = std::numeric_limits<double>::infinity(), seconds = 0, weight = 1;
  };

  /// Kept from one choice of a thread to the next: no choice allocates.
  struct Room {
    std::vector<Near> near;
    std::vector<float> keys;
  };
  static Room& emptied_room() {
    static thread_local Room room;
    room.near.clear();
    room.keys.assign(GemmTileShapes::kGroup, kNever);
    return room;
  }

  /// How many of each of some lengths cover a side of the problem.
  static void cut(std::int64_t side, const std::vector<float>& lengths, float* pieces) {
    const auto whole = static_cast<float>(side);
    for (std::size_t i = 0; i < lengths.size(); i += GemmTileShapes::kGroup) {
      const FourFloats four = pieces_of(whole, loaded<FourFloats>(lengths.data() + i));
      std::memcpy(pieces + i, &four, sizeof four);
    }
  }
  [[nodiscard]] bool runs(std::size_t entry, Mode mode) const {
    return menu_.entries[entry].runs.has(mode, problem_.layout);
  }

  [[nodiscard]] double of_splits(int splits, bool in_place) const {
    return menu_.often_others ? dislike_of_splits(splits, in_place, constants_) : 0.0;
  }

  /// All that floors do not rule out once the entry of the lowest floor is timed.
  void collect() {
    if (menu_.entries.size() == 1 && menu_.entries.front().recorded_splits > 0) {
      take(menu_.entries.front());
      return;
    }
    const std::size_t entries = menu_.entries.size();
    const Mode mode = problem_.batch > 1 ? Mode::batched : Mode::whole;
    if (menu_.with_stream_k)
      for (std::size_t i = 0; i < entries; ++i) {
        if (!menu_.entries[i].tile.stream_k) continue;
        floors_[i] = kNever;  // shared k-steps: their floor is not known
        if (runs(i, Mode::in_place) && suits_stream_k(problem_, menu_.entries[i].tile))
          time({&menu_.entries[i], 1, true});
      }
    while (true) {
      const std::size_t first = place_of_least(floors_.data(), entries);
      if (!(floors_[first] < limit_)) break;
      const bool suits = runs(first, mode);
      if (suits) time({&menu_.entries[first], 1, false});
      floors_[first] = kNever;
      if (suits) break;
    }
    for (std::size_t i = 0; i < entries; ++i)
      if (floors_[i] < limit_ && runs(i, mode)) add({{&menu_.entries[i], 1, false}, false}, floors_[i]);
    if (problem_.scaling != Scaling::none) return;  // none of the measured ones was split
    if (persistent_ ? problem_.bias : problem_.batch > 1) return;
    if (is_long_enough(problem_, false)) collect_splits(false);
    if (!persistent_ && is_long_enough(problem_, true)) collect_splits(true);
  }

  /// The one candidate of a recorded kernel, whatever else could be.
  void take(const TileChoice& recorded) {
    const int splits = recorded.recorded_splits;
    Ranked ranked{{&recorded, splits, splits > 1 && !runs(0, Mode::second_kernel)}};
    ranked.seconds = law_.seconds(tile_of(ranked), splits, std::numeric_limits<double>::infinity());
    ranked.rank = ranked.seconds;
    best_[0] = ranked;
    filled_ = 1;
    limit_ = 0.0F;
  }

  void collect_splits(bool in_place) {
    const std::span<const int> splits = splits_of(problem_, in_place);
    const auto longest = static_cast<float>(std::min<std::int64_t>(splits.back(), problem_.k / GemmLaw::kLeastSplit));
    if (!persistent_ && longest < 2.0F) return;
    GemmFloor::SplitLimits limits{.most = longest, .rounds = 3.0F};
    if (persistent_) limits = {.most = static_cast<float>(splits.back()), .least_steps = GemmLaw::kLeastStepsOfSplit};
    else if (in_place) limits = {.few = static_cast<float>(splits.back()), .most = longest, .rounds = 0.0F};
    std::array<float, GpuMenu::kMostEntries> least;
    floor_.splits(menu_.shapes, tilings_, limits, in_place, least.data());
    const auto weight = static_cast<float>(std::min(of_splits(2, in_place), of_splits(splits.back(), in_place)));
    for (std::size_t i = 0; i < menu_.entries.size(); ++i) {
      const float key = least[i] * (menu_.weights[i] + weight);
      if (key < limit_ && !menu_.entries[i].tile.stream_k && runs(i, in_place ? Mode::in_place : Mode::second_kernel))
        add({{&menu_.entries[i], 0, in_place}, true}, key);
    }
  }

  /// The candidates that `all` splits of an entry stand for.
  void add_splits_of(const Candidate& all) {
    constexpr std::size_t kGroup = GemmTileShapes::kGroup;
    const auto entry = static_cast<std::size_t>(all.choice - menu_.entries.data());
    const GemmTile tile = tile_of(all);
    const double count = law_.tiles(tile);
    std::span<const int> splits = splits_of(problem_, all.in_place);
    const auto possible = [&](int number) {
      return law_.may_split(tile, number, count) && may_fill(problem_, tile, count, number, all.in_place, sms_);
    };
    // What is too many splits is too many for more, too.
    while (!splits.empty() && !possible(splits.back())) splits = splits.first(splits.size() - 1);
    std::array<float, kGroup> group, least;
    for (std::size_t begin = 0; begin < splits.size(); begin += kGroup) {
      for (std::size_t i = 0; i < kGroup; ++i)
        group[i] = static_cast<float>(splits[std::min(begin + i, splits.size() - 1)]);
      floor_.split(menu_.shapes, tilings_, entry, group.data(), all.in_place, least.data());
      for (std::size_t i = 0, left = std::min(kGroup, splits.size() - begin); i < left; ++i) {
        const int number = splits[begin + i];
        const float key = least[i] * (menu_.weights[entry] + static_cast<float>(of_splits(number, all.in_place)));
        if (key < limit_) add({{all.choice, number, all.in_place}, false}, key);
      }
    }
  }

  void add(const Near& near, float key) {
    const std::size_t place = near_.size();
    near_.push_back(near);
    if (place == keys_.size()) keys_.resize(place + GemmTileShapes::kGroup, kNever);
    keys_[place] = key;
  }
  /// The one to look at next.
  [[nodiscard]] std::size_t lowest() const { return place_of_least(keys_.data(), keys_.size()); }

  void look_closer(std::size_t place) {
    keys_[place] = kNever;
    const Near near = near_[place];
    if (near.all_splits) add_splits_of(near);
    else time(near);
  }

  static GemmTile tile_of(const Candidate& candidate) {
    GemmTile tile = candidate.choice->tile;
    tile.stream_k = candidate.in_place;
    return tile;
  }

  void time(const Candidate& candidate) {
    Ranked ranked{candidate};
    const auto entry = static_cast<std::size_t>(candidate.choice - menu_.entries.data());
    ranked.weight =
        static_cast<double>(menu_.weights[entry] + static_cast<float>(of_splits(candidate.splits, candidate.in_place)));
    ranked.seconds = law_.seconds(tile_of(candidate), candidate.splits, limit_of_ranks_ / ranked.weight);
    ranked.rank = ranked.seconds * ranked.weight;
    if (!(ranked.rank < limit_of_ranks_)) return;
    std::size_t at = std::min(filled_, counted_ - 1);
    for (; at > 0 && best_[at - 1].rank > ranked.rank; --at) best_[at] = best_[at - 1];
    best_[at] = ranked;
    filled_ = std::min(filled_ + 1, counted_);
    limit_of_ranks_ = std::min({limit_of_ranks_, best_[counted_ - 1].rank, kMostSlower * best_[0].rank});
    limit_ = static_cast<float>(limit_of_ranks_ * (1.0 + 1e-6));
  }

  [[nodiscard]] GemmSelection selection() const {
    GemmSelection made;
    made.family = problem_.family;
    if (filled_ == 0) return made;
    const Ranked& first = best_[0];
    made.tile = tile_of(first);
    made.choice = first.choice;
    made.splits = first.splits;
    made.seconds = first.seconds;
    made.clears_counter = law_.needs_counter(made.tile, made.splits);
    std::array<double, kTurns.size()> ranks{};
    for (std::size_t i = 0; i < filled_; ++i) ranks[i] = best_[i].rank;
    made.expected = likely_of({ranks.data(), filled_}, menu_.often_others);
    return made;
  }

  const GemmWork& problem_;
  const GemmConstants& constants_;
  const GpuMenu& menu_;
  double sms_;
  GemmLaw law_;
  GemmFloor floor_;
  bool persistent_;
  std::size_t counted_, filled_ = 0;
  std::array<Ranked, kTurns.size()> best_;  ///< by rank
  double limit_of_ranks_;
  float limit_;  ///< not less, in single precision
  std::array<float, GpuMenu::kMostEntries> rows_, columns_, steps_, floors_;
  GemmTilings tilings_{rows_.data(), columns_.data(), steps_.data()};
  Room& room_;
  std::vector<Near>& near_ = room_.near;
  /// Not more than the rank of each that is not timed yet. Filled up to groups of four, infinite for what has been
  /// looked at.
  std::vector<float>& keys_ = room_.keys;
};

}  // namespace

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GemmConstants& constants, const GpuMenu& menu,
                          double of_interest, const GemmMisses& missed) {
  if (menu.entries.empty()) return {};  // nothing of it fits an SM
  return Choice(problem, gpu, constants, menu, of_interest, missed).make();
}

}  // namespace ridgeline
