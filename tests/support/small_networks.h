// Networks that are made in a moment, and how they train.
#pragma once

#include <cstdint>

#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline::testing_support {

/// Two blocks of 64 columns and four heads for up to 32 tokens; a llama with two heads of keys and swiglu.
inline ModelDescription small_network(ModelFamily family, std::int64_t vocabulary = 96) {
  ModelDescription model;
  model.family = family;
  model.layers = 2;
  model.heads = 4;
  model.hidden = 64;
  model.vocabulary = vocabulary;
  model.max_positions = 32;
  if (family == ModelFamily::bert) model.head = ModelHead::pretraining;
  if (family == ModelFamily::llama) {
    model.bias = false;
    model.activation = Activation::swiglu;
    model.key_value_heads = 2;
    model.feed_forward = 160;
    model.tie_embeddings = false;
  }
  return model;
}

/// Two sequences of 32 tokens, clipped, a fused optimizer.
inline TrainingDescription two_sequences(Precision precision) {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.precision = precision;
  t.gradient_clipping = 1.0;
  t.optimizer.implementation = OptimizerImplementation::fused;
  return t;
}

}  // namespace ridgeline::testing_support
