#include "sim/timing/fullest_sm.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

/// Share of SMs on which two blocks that started together also end together; the others hand back one place first. By
/// time stamps (ends within a microsecond, 12 launches each) 0.54 on an H200 and 0.53 on an H100.
constexpr double kEndTogether = 0.55;
/// Scatter of the point where second turns begin, as a share of the SMs.
constexpr double kTurnScatter = 0.06;
/// SMs, of those that have not yet had their last turn, when the first has one too many, and the scatter of that
/// number: as shares of the SMs, for two blocks an SM.
constexpr double kStillToCome = 0.042, kTailScatter = 0.036;
// The four were set with 154 grids of an H200 in view (two and four blocks to an SM, up to six and eight for each).
// Held out, an H100: 153 of the grids within 4 %; at the other the outcomes of one GPU differ by more.

double normal_share(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

// V blocks, the last set after k full ones, R to an SM. An SM has its (j+1)-th turn of the set once V exceeds
//   T_j = j·S·(1 − u^((R−1)(2k−1)))     1 ≤ j < R: R ends rarely meet, and drift further apart with every set
//   T_R = R·S + 1 − late·S·m,  m = min(k, 2)·u^(2(R−2)): an SM that is ahead has one more than its share when one that
//         is behind still lacks one; both must have met
// and launches scatter about these points normally.
double fullest_sm(double blocks, double sms, double resident) {
  const double capacity = std::max(1.0, resident);
  const double sets = std::max(0.0, std::ceil(blocks / (sms * capacity) - 1e-9) - 1.0);
  const double rest = blocks - sets * sms * capacity, even = std::ceil(rest / sms - 1e-9);
  if (sets < 1.0 || capacity < 2.0) return sets * capacity + even;
  const double together = std::pow(kEndTogether, (capacity - 1.0) * (2.0 * sets - 1.0));
  const double meet = std::min(sets, 2.0) * std::pow(kEndTogether, 2.0 * (capacity - 2.0));
  double turns = 1.0;
  for (double j = 1.0; j < capacity; ++j)
    turns += normal_share((rest - j * sms * (1.0 - together)) / (kTurnScatter * sms));
  const double too_many =
      normal_share((rest - capacity * sms + kStillToCome * sms * meet - 1.0) / (kTailScatter * sms * meet));
  return sets * capacity + std::clamp(turns, even, capacity) + too_many;
}

}  // namespace ridgeline
