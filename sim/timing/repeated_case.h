// One op timed as a benchmark times it: over and over, on several sets of inputs in turn.
#pragma once

#include <span>
#include <vector>

#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Times of an op's launches in the steady state of running it over `input_sets` sets of inputs (its first `inputs`
/// operands) in turn, its outputs going to the same buffers; input_sets 0 = once, with cold and clean caches. `shared`:
/// an input that all sets have in common (-1: none).
std::vector<KernelTime> time_repeated(std::span<const KernelLaunch> launches, int inputs, int input_sets,
                                      double partly_used_bytes, const Gpu& gpu, const TimingEngine& engine,
                                      int shared = -1);

}  // namespace ridgeline
