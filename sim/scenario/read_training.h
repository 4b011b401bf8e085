// The `training`, `inference` and `allocator` sections of a scenario.
#pragma once

#include <optional>

#include "sim/allocator/settings.h"
#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/network/cluster.h"
#include "sim/workload/training.h"

namespace ridgeline {

struct TrainingSection {
  TrainingDescription training;
  bool compile = false, cuda_graphs = false;
};

/// `cluster`: null for one GPU, which has no `parallel` section. `model_length`: tokens of a sequence where the network
/// has one length alone, as one that reads images; empty where the section must say it.
TrainingSection read_training(const config::Value& section, const Software& software, const Cluster* cluster = nullptr,
                              std::optional<std::int64_t> model_length = {});
/// What is used instead of trained: sequences times beams are the micro-batch, the prompt is the sequence.
TrainingSection read_inference(const config::Value& section, const Software& software);
AllocatorSettings read_allocator(const config::Value& section);

}  // namespace ridgeline
