// The `training` and `allocator` sections of a scenario.
#pragma once

#include <optional>

#include "sim/allocator/settings.h"
#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/network/cluster.h"
#include "sim/scenario/sequence_lengths.h"
#include "sim/workload/training.h"

namespace ridgeline {

struct TrainingSection {
  TrainingDescription training;
  bool compile = false, cuda_graphs = false;
  bool assumes_precision = false;            ///< the section names none
  std::optional<SequenceLengths> lengths{};  ///< of sequences; training.sequence_length is the longest
};

/// Facts of the network that defaults depend on.
struct NetworkFacts {
  std::optional<std::int64_t> only_length{};  ///< tokens of a sequence, where the network has one length alone (images)
  bool published_in_half = false;             ///< checkpoints of its size are published in 16 bits (kPublishedInHalf)
  bool chunks_loss = false;                   ///< its loss can be taken in chunks
  Precision usual_precision = Precision::fp32;  ///< where nothing names or implies one
};

/// `cluster`: null for one GPU, which has no `parallel` section.
TrainingSection read_training(const config::Value& section, const Software& software, const Cluster* cluster = nullptr,
                              const NetworkFacts& network = {});
AllocatorSettings read_allocator(const config::Value& section);

}  // namespace ridgeline
