#include "sim/hardware/chip_distance.h"

#include <cmath>

namespace ridgeline {
namespace {

/// Relative differences below this are rounding: a value written with a unit of its own.
constexpr double kSame = 1e-9;

bool bounds_kernels(std::string_view key) {
  return key == "sm.count" || key == "l2.capacity" || key == "power.limit" || key.starts_with("sm.rates.") ||
         key.starts_with("clock.") || key.ends_with("bandwidth");
}

double difference(const HardwareKey& key, const Gpu& a, const Gpu& b) {
  if (key.key.starts_with("compute_") || !key.is_number()) return key.show(a) == key.show(b) ? 0.0 : kOtherKind;
  const double of_a = key.get(a), of_b = key.get(b);
  if (of_a == of_b) return 0.0;
  if (of_a <= 0.0 || of_b <= 0.0) return 1.0;
  const double apart = std::abs(std::log(of_a / of_b));
  if (apart < kSame) return 0.0;
  return bounds_kernels(key.key) ? apart : kMinorWeight * apart;
}

}  // namespace

double chip_distance(const Gpu& a, const Gpu& b, Laws laws) {
  // The kernels of a what-if menu are no number.
  double sum = holds(laws, Law::choice) && a.gemm.tiles.empty() != b.gemm.tiles.empty() ? kOtherKind * kOtherKind : 0.0;
  for (const HardwareKey& key : hardware_keys()) {
    if ((key.laws & laws) == 0) continue;
    const double apart = difference(key, a, b);
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

}  // namespace ridgeline
