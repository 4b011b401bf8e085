// What was to be written could not be: a full disk, a closed pipe, a broken device. Reported as one sentence, exit code
// 1: neither the question nor the program is at fault.
#pragma once

#include <stdexcept>

namespace ridgeline {

struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ridgeline
