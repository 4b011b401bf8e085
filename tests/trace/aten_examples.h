// Every rule from a dispatcher call to our operations, on a small example.
#pragma once

#include <vector>

#include "tests/support/aten_example.h"

namespace ridgeline::trace {

std::vector<Example> examples();
/// Of those, interpolation, padding, sampling and unfolding of images …
std::vector<Example> resampling_examples();
/// … and calls that run several kernels.
std::vector<Example> composite_examples();

}  // namespace ridgeline::trace
