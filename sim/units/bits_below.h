// Width of the numbers below a bound, as radix sorts of indices ask for it.
#pragma once

#include <cstdint>

namespace ridgeline {

/// Bits in which whole numbers of 0 … count - 1 differ; at least 1.
constexpr std::int64_t bits_below(std::int64_t count) {
  std::int64_t bits = 1;
  while ((std::int64_t{1} << bits) < count) ++bits;
  return bits;
}

}  // namespace ridgeline
