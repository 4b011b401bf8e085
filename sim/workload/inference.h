// How a model is used without training: what a scenario says under `inference`.
#pragma once

#include <cstdint>

#include "sim/workload/lora.h"

namespace ridgeline {

/// What is kept of the keys and values of earlier tokens.
enum class KeyValueCache : std::uint8_t {
  none,     ///< nothing: every new token runs the whole sequence again
  dynamic,  ///< as many tokens as there are, joined into a fresh tensor with every new one (Transformers' DynamicCache)
  fixed     ///< "static": room for all tokens from the start, written in place
};

/// torch.compile of a model in use: of one forward pass, or of the passes of one token over a static cache.
enum class CompiledUse : std::uint8_t {
  none,
  usual,  ///< with the compiler's default settings, as generate() of Transformers has them
  tuned   ///< coordinate_descent_tuning, as gpt-fast: a product of one row becomes a generated sum
};

/// Sequences and prompt length are TrainingDescription's `micro_batch` (times `beams`) and `sequence_length`.
struct InferenceDescription {
  std::int64_t sequences = 1;   ///< asked for; `beams` candidates of each run side by side
  std::int64_t new_tokens = 0;  ///< generated after the prompt; 0: one forward pass with its loss, as in evaluation
  std::int64_t beams = 1;       ///< candidates of a beam search; 1: the likeliest token is taken
  KeyValueCache cache = KeyValueCache::dynamic;
  FrozenWeights weights = FrozenWeights::as_stored;  ///< of the blocks' linear layers
  CompiledUse compiled = CompiledUse::none;
  bool operator==(const InferenceDescription&) const = default;
};

}  // namespace ridgeline
