// A random network of blocks (family composed), as an inline mapping.
#pragma once

#include <cstdint>
#include <string>

#include "tests/invariants/draw.h"

namespace ridgeline::invariants {

struct RandomStack {
  std::string text;
  std::int64_t head = 0;    ///< width of a head
  std::int64_t length = 0;  ///< tokens of each sequence where it reads images, else 0
};

/// One or two layers of any blocks that go together; some that do not are drawn too, since a refusal has to be a
/// message. `positions`: the longest sequence asked for.
RandomStack random_stack(Draw& draw, std::int64_t positions);

}  // namespace ridgeline::invariants
