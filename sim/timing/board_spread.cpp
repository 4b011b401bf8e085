#include "sim/timing/board_spread.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

namespace ridgeline {
namespace {

constexpr double kLeast = 0.1;  ///< of the described board's energy

double normal_quantile(double probability) { return boost::math::quantile(boost::math::normal(), probability); }

}  // namespace

double mean_of_largest(std::int64_t count) {
  if (count < 2) return 0.0;
  const auto n = static_cast<double>(count);
  return normal_quantile((n - 0.375) / (n + 0.25));
}

double quantile_of_largest(double probability, std::int64_t count) {
  const double each = std::pow(probability, 1.0 / static_cast<double>(std::max<std::int64_t>(count, 1)));
  return normal_quantile(each);
}

double hungriest_board(const PowerSpec& power, std::int64_t count) {
  return std::max(kLeast, 1.0 + power.board_spread * mean_of_largest(count));
}

double hungriest_board(const PowerSpec& power, std::int64_t count, double probability) {
  return std::max(kLeast, 1.0 + power.board_spread * quantile_of_largest(probability, count));
}

}  // namespace ridgeline
