#include "sim/report/text/number_words.h"

#include <fmt/format.h>

#include <cmath>

namespace ridgeline {

std::string thousands(double value) {
  std::string text = fmt::format("{}", std::llround(value));
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string four_digits(double value) {
  if (!(value >= 999.95) || !std::isfinite(value)) return fmt::format("{:.4g}", value);
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3.0);
  return thousands(std::round(value / unit) * unit);
}

}  // namespace ridgeline
