// Who asked for memory: the stack that a snapshot keeps beside a block or an event.
#pragma once

#include <string>

#include "sim/allocator/pickle.h"

namespace ridgeline {

/// "train.py:12 step" of the innermost frame of Python that is no file of PyTorch's own; "linear in functional.py:2000,
/// called by train.py:12 step" where one of PyTorch's lies inside it. Empty without frames of Python.
std::string place_of(const PickleDict& of);

}  // namespace ridgeline
