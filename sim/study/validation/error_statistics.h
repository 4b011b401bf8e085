// How far predictions lie from measurements: the figures every error table shows.
#pragma once

#include <cstddef>
#include <vector>

namespace ridgeline {

/// Of ratios predicted / measured. Errors are |ratio − 1| in percent, the bias is the median of 100·ln(ratio).
struct ErrorStatistics {
  std::size_t n = 0;
  double median = 0, mean = 0, p90 = 0, worst = 0, bias = 0;
};
ErrorStatistics error_statistics(const std::vector<double>& ratios);

/// Linear interpolation between order statistics; `values` need not be sorted. 0 for none.
double quantile(std::vector<double> values, double q);

}  // namespace ridgeline
