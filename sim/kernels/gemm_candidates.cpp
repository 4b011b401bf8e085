#include "sim/kernels/gemm_candidates.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

/// Logarithms of numbers of splits.
const std::array<double, kMostSplits + 1> kLogSplits = [] {
  std::array<double, kMostSplits + 1> table{};
  for (std::size_t z = 1; z < table.size(); ++z) table[z] = std::log(static_cast<double>(z));
  return table;
}();

}  // namespace

std::span<const int> tiled_splits(double tiles, double k, double sms, int blocks_per_sm, bool in_place,
                                  TiledSplits& room) {
  std::size_t count = 0;
  if (in_place) {
    for (int splits = 2; splits <= kFewSplits; ++splits) room[count++] = splits;
    return {room.data(), count};
  }
  const double most = std::min(static_cast<double>(kMostSplits), k / GemmLaw::kLeastSplit);
  for (const double rounds : {0.5, 1.0, 2.0, static_cast<double>(kMostRounds)}) {
    if (rounds > std::max(2, blocks_per_sm)) break;
    const int splits = static_cast<int>(std::min(most, rounds * sms / tiles));
    if (splits >= 2 && (count == 0 || splits > room[count - 1])) room[count++] = splits;
  }
  return {room.data(), count};
}

bool is_long(const GemmWork& problem) {
  const int least = problem.family == GemmWork::Family::wgmma ? 8 : 2;
  return problem.k >= least * std::min(problem.m, problem.n);
}

bool suits_stream_k(const GemmLaw& law, const GemmWork& problem, const GemmTile& tile, const Gpu& gpu) {
  constexpr double kRoundsShared = 9.0;
  if (problem.batch > 1 || problem.bias) return false;
  const double rounds = law.tiles(tile) / gpu.sm.count, begun = rounds - std::floor(rounds);
  if (rounds <= 1.0) return rounds <= 0.42 && problem.k >= 80 * tile.k;
  return rounds < kRoundsShared && begun > 0.0 && begun < 0.4 && problem.k >= 28 * tile.k;
}

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

}  // namespace ridgeline
