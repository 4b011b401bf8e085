// What a plan says of its best ways: their ranges and parts, how sure their order is, and what would change it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/answer/session.h"
#include "sim/study/comparison.h"
#include "sim/study/plan/plan.h"

namespace ridgeline {

struct PlanRow {
  std::size_t entry = 0;
  ComparedScenario side;
  Difference against_best;  ///< of the first row: nothing
};

/// First and second: whether their ranges leave open which is faster.
struct PlanOrder {
  bool overlap = false;  ///< of the ranges
  double common = 0.0;   ///< share of the first one's step in kernels that the second runs too: they err alike
  double least = 0.0, most = 0.0;  ///< the second's time over the first's, both at the low and at the high ends
  /// Also where all kernels and the host err alike, the first stays the faster one.
  [[nodiscard]] bool holds() const { return least >= 1.0 && most >= 1.0; }
};

/// Another world, and who would be the fastest of the rows there.
struct PlanChange {
  std::string what;       ///< "links half as fast"
  std::size_t row = 0;    ///< of the fastest
  Seconds time, of_best;  ///< its step, and that of the first row
};

/// A way that is faster but does not fit.
struct PlanWithMemory {
  std::size_t entry = 0;
  Seconds time;
  std::int64_t memory = 0;  ///< bytes of a device with which it fits surely
};

struct PlanAnswer {
  std::vector<PlanRow> rows;  ///< one each of PlanSearch::best
  std::optional<PlanOrder> order;
  std::vector<PlanChange> changes;
  std::optional<PlanWithMemory> with_memory;
};

PlanAnswer answer_plan(const PlanQuestion& question, const PlanSearch& search, Session& session, int threads);

}  // namespace ridgeline
