// Predicts the points of a sweep on all cores. Points that share a trace, lowered ops or allocations share their work;
// all of that is pure, so the result is the same to the bit for any number of threads and any order.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "sim/study/sweep/sweep.h"
#include "sim/study/sweep/sweep_point.h"

namespace ridgeline {

class Session;

struct SweepRunOptions {
  int threads = 0;                          ///< 0: all cores
  const std::atomic<bool>* stop = nullptr;  ///< set, or the budget stopped: points that are not done are left out
  /// Called now and then with points that are done, one call at a time, from any thread.
  std::function<void(std::span<const SweepPoint>)> on_points;
  Session* session = nullptr;  ///< what several runs share; null: each has its own
};

/// One result an index, in their order; with `stop` set in between, those that were done.
std::vector<SweepPoint> run_sweep(const Sweep& sweep, std::span<const std::uint64_t> indices,
                                  const SweepRunOptions& options);

}  // namespace ridgeline
