// Where the tokens of a forward pass stand.
#pragma once

#include <cstdint>

namespace ridgeline::families {

/// A whole sequence in training, one token after `past` others in generation.
struct TokenPlace {
  std::int64_t rows = 0, length = 0, past = 0;
};

}  // namespace ridgeline::families
