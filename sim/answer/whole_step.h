// A step whose equal micro-batches are held once, written out: every kernel with its own times.
#pragma once

#include <optional>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/timeline/every_run.h"

namespace ridgeline {

struct WholeStep {
  UnrolledStep step;
  std::vector<KernelTime> times;  ///< one a launch
  Timeline timeline;
  /// Samples of the memory's run, in the order of `step`; further micro-batches have those of the one that is held.
  std::vector<MemorySample> memory;
};

/// Nothing where the run holds nothing once, or is of a pipeline, whose ranks repeat by their schedule. Throws
/// UserError where there are more kernels than are worth writing out one by one.
std::optional<WholeStep> whole_step(const StepRun& run);

}  // namespace ridgeline
