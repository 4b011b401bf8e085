#include "sim/study/validation/error_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ridgeline {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

ErrorStatistics error_statistics(const std::vector<double>& ratios) {
  ErrorStatistics s;
  s.n = ratios.size();
  if (ratios.empty()) return s;
  std::vector<double> errors, logs;
  for (const double ratio : ratios) {
    errors.push_back(100.0 * std::abs(ratio - 1.0));
    logs.push_back(100.0 * std::log(ratio));
  }
  s.median = quantile(errors, 0.5);
  s.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  s.p90 = quantile(errors, 0.9);
  s.worst = *std::max_element(errors.begin(), errors.end());
  s.bias = quantile(logs, 0.5);
  return s;
}

}  // namespace ridgeline
