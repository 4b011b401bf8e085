// Keys of training.parallel that say something and change nothing: those of another wrapper than the one described.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/training.h"

namespace ridgeline {

/// Names of keys whose value is not the default and which nothing reads under this strategy, framework and degrees:
/// buckets under fully_shard, resharding under DistributedDataParallel, a split of sequences without tensor ranks.
std::vector<std::string> unread_parallel_keys(const TrainingDescription& training);

}  // namespace ridgeline
