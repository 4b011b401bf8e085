// A mistake of the person using the program: reported as one sentence, exit code 2. Anything else that escapes is ours.
#pragma once

#include <stdexcept>

namespace ridgeline {

struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ridgeline
