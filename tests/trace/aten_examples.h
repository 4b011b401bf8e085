// Every rule from a dispatcher call to our operations, on a small example.
#pragma once

#include <vector>

#include "tests/support/aten_example.h"

namespace ridgeline::trace {

std::vector<Example> examples();

}  // namespace ridgeline::trace
