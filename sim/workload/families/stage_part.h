// The part of a network, or of a stack of blocks, that one stage of a pipeline holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline::families {

/// Blocks [first, last), and whether the input layers before all blocks and the head behind all of them belong to it.
struct StagePart {
  std::int64_t first = 0, last = 0;
  bool embedding = true, head = true;
  bool operator==(const StagePart&) const = default;
};

/// The parts that one rank holds; the whole network without a pipeline. As PyTorch's examples cut: blocks evenly,
/// embedding in the first, head in the last.
std::vector<StagePart> parts_of(const ModelDescription& model, const ParallelDescription& parallel);

/// Why a pipeline cannot cut the network; empty where run_part runs its stages.
std::string why_not_cut(const ModelDescription& model, Framework framework);
/// Numbers of a sequence that a stage hands on, at most.
std::int64_t most_between_stages(const ModelDescription& model, const TrainingDescription& training);
/// A number for each block of a part, equal for blocks that run the same operations.
std::vector<std::int64_t> kinds_of_blocks(const ModelDescription& model, const StagePart& part);
}  // namespace ridgeline::families
