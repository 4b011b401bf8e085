// The parameters of a stack of blocks.
#pragma once

#include <vector>

#include "sim/workload/families/functional.h"

namespace ridgeline::families {

struct AttentionWeights {
  Affine query, key, value, fused, output, query_norm, key_norm;
  /// Of latent attention: down to the rank, a norm there, and up again.
  Affine query_down, query_rank_norm, key_value_down, key_value_rank_norm, key_value_up;
  Affine relative;                      ///< a table of buckets
  Affine position_query, position_key;  ///< of disentangled positions
  Parameter* sinks = nullptr;
  Tensor visible;  ///< of plain code: ones on and below the diagonal, where hidden scores are filled in
};

struct FeedForwardWeights {
  Affine gate, up, down;
};

struct ExpertWeights {
  Affine router, shared_gate;
  Parameter *up = nullptr, *down = nullptr;  ///< of all experts: [experts, out, in]
  Parameter *up_bias = nullptr, *down_bias = nullptr;
  FeedForwardWeights shared;
};

struct LayerWeights {
  AttentionWeights attention, cross;
  FeedForwardWeights feed_forward;
  ExpertWeights experts;
  Affine attention_norm, attention_after, cross_norm, feed_forward_norm, feed_forward_after;
  Parameter *attention_scale = nullptr, *feed_forward_scale = nullptr;
  bool normed = true;  ///< attention has a norm before it
};

}  // namespace ridgeline::families
