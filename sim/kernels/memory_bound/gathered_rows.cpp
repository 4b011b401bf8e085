#include "sim/kernels/memory_bound/gathered_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ridgeline {

double distinct_rows(std::int64_t tokens, std::int64_t vocabulary) {
  const auto t = static_cast<double>(tokens), v = static_cast<double>(vocabulary);
  return std::min({t, v, v * -std::expm1(-t / v)});
}

double fetched_rows(std::int64_t tokens, std::int64_t vocabulary, double traffic, const L2Spec& l2) {
  const auto t = static_cast<double>(tokens), v = static_cast<double>(vocabulary);
  const auto found_within = [&](double window) {  // share of the tokens whose row was used at most `window` before
    const double w = std::min(window, t);
    const double young = w + v * std::expm1(-w / v);  // the first `w` tokens look back to the start
    return (young - (t - w) * std::expm1(-w / v)) / t;
  };
  constexpr int kSteps = 8;  // of the ramp
  const double full = l2.resident_full * l2.capacity.value(), none = l2.resident_none * l2.capacity.value();
  double found = 0.0;
  for (int i = 0; i < kSteps; ++i)
    found += found_within((full + (none - full) * (i + 0.5) / kSteps) / traffic) / kSteps;
  return t * (1.0 - found);
}

double sector_bytes(std::int64_t bytes) {
  constexpr std::int64_t kSector = 32;
  const auto aligned = static_cast<double>(std::gcd(bytes, kSector)), sector = static_cast<double>(kSector);
  return sector * ((static_cast<double>(bytes) - aligned) / sector + 1.0);
}

double beyond_l2(double bytes, const L2Spec& l2) {
  const double share = bytes / l2.capacity.value();
  return std::clamp((share - l2.resident_full) / (l2.resident_none - l2.resident_full), 0.0, 1.0);
}

}  // namespace ridgeline
