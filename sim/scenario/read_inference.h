// The `inference` section of a scenario.
#pragma once

#include "sim/config/value.h"
#include "sim/hardware/software.h"
#include "sim/network/cluster.h"
#include "sim/scenario/read_training.h"

namespace ridgeline {

/// Sequences times beams become the micro-batch, the prompt becomes the sequence. `cluster` is null for one GPU.
TrainingSection read_inference(const config::Value& section, const Software& software, const Cluster* cluster,
                               Precision assumed = Precision::fp32);

/// Throws ConfigError for weights that do not go with the network or the GPU.
void check_weights(const InferenceDescription& use, const ModelDescription& model, const Gpu& gpu,
                   const config::Value& section);

}  // namespace ridgeline
