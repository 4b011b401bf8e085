// What the three matrix products share: square problems, sampled check against the definition.
#pragma once

#include <cmath>
#include <type_traits>

#include "hw/probe/probe.h"

namespace probe {

/// Compares `samples` elements of C = A·B (row-major n x n, A[i] = pattern(i), B[i] = pattern(i + n²)) with double
/// sums. `rounded` turns an operand's value into the one the type can hold.
template <class Rounded>
bool product_is_right(const Buffer<float>& c, int n, int samples, double tolerance, const Rounded& rounded) {
  const auto host = c.to_host(std::size_t(n) * n);
  for (int sample = 0; sample < samples; ++sample) {
    const std::size_t i = (std::size_t(sample) * 7919) % n, j = (std::size_t(sample) * 104729 + 13) % n;
    double sum = 0;
    for (int k = 0; k < n; ++k)
      sum +=
          double(rounded(pattern(i * n + k))) * double(rounded(pattern(std::size_t(n) * n + std::size_t(k) * n + j)));
    if (std::abs(sum - host[i * n + j]) > tolerance * std::sqrt(double(n))) return false;
  }
  return true;
}

inline Point product_point(int n, const Timing& t) {
  const double flops = 2.0 * n * double(n) * n;
  return {{{"n", double(n)}, {"flops", flops}}, flops / t.seconds, t.seconds, t.spread, t.samples};
}

}  // namespace probe
