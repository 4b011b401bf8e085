// Rows of a table that indices ask for, indices being uniform: how many are different, and how many come from the DRAM.
#pragma once

#include <cstdint>

#include "sim/hardware/chip_shape.h"

namespace ridgeline {

/// Distinct rows that `tokens` uniformly drawn indices touch.
double distinct_rows(std::int64_t tokens, std::int64_t vocabulary);

/// Rows a gather fetches: the distinct ones, and those again that its own traffic has pushed out of the L2 since:
/// `traffic` bytes a token (a row read and, where it is written too, a row written). `w` tokens later a row is still
/// there with the ramp's share; uniform indices come back after an exponential time of mean `vocabulary` tokens.
double fetched_rows(std::int64_t tokens, std::int64_t vocabulary, double traffic, const L2Spec& l2);

/// Bytes of the sectors that a row of so many bytes touches, wherever rows of its size begin.
double sector_bytes(std::int64_t bytes);
/// Share of accesses within a region of so many bytes that the L2 does not hold.
double beyond_l2(double bytes, const L2Spec& l2);

}  // namespace ridgeline
