#include "sim/workload/compile/padding.h"

#include <algorithm>
#include <numeric>

#include "sim/units/ceil_div.h"

namespace ridgeline::compile {
namespace {

/// Only products with at least this many multiply-adds for each element they touch are considered. A product of 55 is
/// (65 columns, on an H200), one of 2 is not.
constexpr double kLeastIntensity = 50.0;
constexpr double kFlopsOfACopiedByte = 170.0, kLeastGain = 1.1;

/// How much longer rows aligned to so many elements take.
double slowdown(std::int64_t alignment) { return alignment % 4 == 0 ? 1.2 : alignment % 2 == 0 ? 1.45 : 2.2; }

}  // namespace

std::optional<Padding> padding_of(const Matmul& op, MadeBy first, MadeBy second) {
  if (op.batch != 1 || op.type == DType::fp32) return std::nullopt;
  const std::int64_t element = bytes_of(op.type), aligned = 16 / element;
  const auto padded = [&](std::int64_t size) { return ceil_div(size, aligned) * aligned; };
  Padding result{padded(op.m), padded(op.n), padded(op.k)};
  if (result.m == op.m && result.n == op.n && result.k == op.k) return std::nullopt;
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  if (m * n * k <= kLeastIntensity * (m * k + n * k + m * n)) return std::nullopt;

  const bool first_transposed = op.layout == Layout::tn || op.layout == Layout::tt,
             second_transposed = op.layout == Layout::nt || op.layout == Layout::tt;
  const std::int64_t alignment =
      std::gcd(std::gcd(first_transposed ? op.m : op.k, second_transposed ? op.k : op.n), op.n);
  if (alignment % aligned == 0) return std::nullopt;
  result.first = result.m != op.m || result.k != op.k;
  result.second = result.k != op.k || result.n != op.n;
  // Both operands as they lie in memory; a copy that transposes is never free.
  double copied = 0.0;
  if (result.first && (first_transposed || first != MadeBy::generated)) copied += 2.0 * m * k;
  if (result.second && (second_transposed || second != MadeBy::generated)) copied += 2.0 * n * k;
  const double flops = 2.0 * m * n * k;
  const double as_padded = flops + copied * static_cast<double>(element) * kFlopsOfACopiedByte;
  if (flops * slowdown(alignment) <= kLeastGain * as_padded) return std::nullopt;
  return result;
}

std::int64_t length_of_rows(std::int64_t cols, std::int64_t element_bytes) {
  constexpr std::int64_t kLongRow = 1024, kAlignment = 128;
  return cols > kLongRow ? ceil_div(cols * element_bytes, kAlignment) * kAlignment / element_bytes : cols;
}

}  // namespace ridgeline::compile
