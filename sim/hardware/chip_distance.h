// How far one chip is from another, as far as given laws read it.
//
// The root of the sum of squares of ln(number / number): twice the DRAM bandwidth is ln 2 = 0.69 away. Numbers that
// bound kernels (units, rates, clocks, bandwidths, L2 capacity, power limit) count in full, others (limits of
// occupancy, latencies, launch times, efficiencies, energies) with a weight of kMinorWeight; a unit that one of them
// lacks counts 1, a flag, a choice or another architecture kOtherKind. Names and sources do not count.
#pragma once

#include <span>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/keys.h"

namespace ridgeline {

inline constexpr double kMinorWeight = 0.3, kOtherKind = 0.5;

/// Of the keys that any of `laws` reads. 0 for chips that these laws cannot tell apart.
double chip_distance(const Gpu& a, const Gpu& b, Laws laws);
/// As chip_distance, by each of `laws`.
std::vector<double> chip_distances(const Gpu& a, const Gpu& b, std::span<const Laws> laws);

}  // namespace ridgeline
