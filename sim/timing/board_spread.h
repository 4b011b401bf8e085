// Boards of one model need different energies for the same work, so that under one power limit some are slower.
//
// Energies are taken to be normally distributed about the described board's, with power.board_spread as the standard
// deviation. Ranks that wait for each other go at the pace of the board that needs most: of n boards that is, in the
// mean, the normal quantile of (n - 0.375) / (n + 0.25) (G. Blom, Statistical Estimates and Transformed Beta-Variables,
// 1958; within 0.03 standard deviations from two boards on). Tested by tests/timing/board_spread_test.cpp.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"

namespace ridgeline {

/// By how many standard deviations the largest of `count` normal numbers lies above their mean, on average. 0 for one.
double mean_of_largest(std::int64_t count);
/// What the largest of `count` normal numbers stays below with this probability (0 to 1), in standard deviations.
double quantile_of_largest(double probability, std::int64_t count);

/// Energies over the described board's of the one among `count` that needs most: in the mean, and with this
/// probability at most. At least a tenth.
double hungriest_board(const PowerSpec& power, std::int64_t count);
double hungriest_board(const PowerSpec& power, std::int64_t count, double probability);

}  // namespace ridgeline
