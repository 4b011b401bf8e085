// Whether a stretch of records is a micro-batch that further ones are equal to.
#pragma once

#include "sim/workload/op_trace.h"

namespace ridgeline {

/// `range` does what `before`, which it follows, does: the same records on storages that live on, and of its own on
/// ones of equal size. What it allocates it frees, so that each further run finds what this one found. What waits for
/// events waits for those of its own stretch or of the one before, in the same places, or for one from before both.
bool runs_again(const OpTrace& trace, StepRange before, StepRange range);

/// Every repeated range of the trace runs again after the records in front of it.
bool repeats_are_steady(const OpTrace& trace);

/// Entries [begin, end) of `calls` that the last step's repeated records run, and how often.
struct RepeatedCalls {
  std::uint32_t begin = 0, end = 0;
  std::int64_t times = 1;
  [[nodiscard]] std::int64_t times_of(std::size_t call) const { return call >= begin && call < end ? times : 1; }
};
RepeatedCalls repeated_calls(const OpTrace& trace);

}  // namespace ridgeline
