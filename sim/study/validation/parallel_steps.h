// Steps of one and several GPUs of one server as they were timed (files of kind "parallel-steps").
#pragma once

#include <cstdint>
#include <vector>

#include "sim/study/validation/measured_files.h"
#include "sim/study/validation/step_validation.h"

namespace ridgeline {

struct ParallelStep {
  MeasuredStep measured;
  Scenario scenario;                                              ///< with the speed that its host had then
  double busy_share = 0;                                          ///< of the step, that a kernel ran in its profile
  std::vector<std::int64_t> allocated_by_rank, reserved_by_rank;  ///< peaks of a pipeline's ranks
  bool held_out = false;                                          ///< no fit sees it
  std::uint64_t name_hash = 0, row = 0;                           ///< of the scenario's name; of the line
};

/// In the order of the file. In the second step a rank of DistributedDataParallel may still hold the buckets of the
/// first, others do not: memory is that of a rank that does not.
std::vector<ParallelStep> load_parallel_steps(const MeasuredFile& file);

}  // namespace ridgeline
