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

std::vector<double> chip_distances(const Gpu& a, const Gpu& b, std::span<const Laws> laws) {
  // The kernels of a what-if menu are no number.
  const bool other_menu = a.gemm.tiles.empty() != b.gemm.tiles.empty();
  Laws any = 0;
  std::vector<double> sums;
  for (const Laws one : laws) {
    any |= one;
    sums.push_back(holds(one, Law::choice) && other_menu ? kOtherKind * kOtherKind : 0.0);
  }
  for (const HardwareKey& key : hardware_keys()) {
    if ((key.laws & any) == 0) continue;
    const double apart = difference(key, a, b);
    for (std::size_t i = 0; i < laws.size(); ++i)
      if ((key.laws & laws[i]) != 0) sums[i] += apart * apart;
  }
  for (double& sum : sums) sum = std::sqrt(sum);
  return sums;
}

double chip_distance(const Gpu& a, const Gpu& b, Laws laws) { return chip_distances(a, b, {&laws, 1}).front(); }

}  // namespace ridgeline
