#include "sim/kernels/products/gemm_candidates.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

/// Logarithms of numbers of splits.
const std::array<double, kSummedSplits.back() + 1> kLogSplits = [] {
  std::array<double, kSummedSplits.back() + 1> table{};
  for (std::size_t z = 1; z < table.size(); ++z) table[z] = std::log(static_cast<double>(z));
  return table;
}();

bool is_persistent(const GemmWork& problem) { return problem.family == GemmWork::Family::wgmma; }

}  // namespace

std::span<const int> splits_of(const GemmWork& problem, bool in_place) {
  if (is_persistent(problem)) return kPersistentSplits;
  return in_place ? std::span<const int>(kInPlaceSplits) : kSummedSplits;
}

bool is_long_enough(const GemmWork& problem, bool in_place) {
  if (in_place && problem.family != GemmWork::Family::simt) return true;
  return problem.k >= (is_persistent(problem) ? 8 : 2) * std::min(problem.m, problem.n);
}

bool may_fill(const GemmWork& problem, const GemmTile& tile, double tiles, int splits, bool in_place, double sms) {
  constexpr int kMostRounds = 3;
  return is_persistent(problem) || in_place || tiles * splits <= sms * std::min(kMostRounds, tile.blocks_per_sm);
}

bool suits_stream_k(const GemmWork& problem, const GemmTile& tile) {
  constexpr int kLeastSteps = 28;
  return problem.batch == 1 && !problem.bias && problem.k >= kLeastSteps * tile.k;
}

double dislike_of_splits(int splits, bool in_place, const GemmConstants& c) {
  if (splits == 1) return in_place ? c.rank_stream : 0.0;
  return c.rank_split + c.rank_log_split * kLogSplits[static_cast<std::size_t>(splits)] +
         (in_place ? c.rank_in_place : 0.0);
}

double dislike_of_tile(const TileChoice& choice, const GemmConstants& c) {
  return c.rank_aspect * choice.log_aspect + c.rank_area * choice.log_area + c.rank_deep * choice.log_deep +
         (std::max(choice.tile.m, choice.tile.n) >= 256 ? c.rank_wide : 0.0);
}

}  // namespace ridgeline
