#include "sim/timing/likely_time.h"

#include <algorithm>
#include <limits>

namespace ridgeline {

double likely_of(std::span<const double> ranks, bool often_others) {
  if (ranks.empty()) return std::numeric_limits<double>::infinity();
  if (!often_others) return ranks.front();
  const double most = kMostSlower * ranks.front();
  double sum = 0.0;
  for (std::size_t i = 0; i < kTurns.size(); ++i)
    sum += kTurns[i] * (i < ranks.size() ? std::min(ranks[i], most) : most);
  return sum;
}

}  // namespace ridgeline
