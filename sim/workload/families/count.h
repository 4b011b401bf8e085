// Parameters and FLOPs of a composition, from its parameters and its forward pass as they are run.
#pragma once

#include <cstdint>

#include "sim/workload/model.h"

namespace ridgeline::families {

std::int64_t count_parameters(const ModelDescription& model);
/// Of one step on `sequences` x `length` tokens: three times the matrix products, attention and convolutions of the
/// forward pass.
double count_flops(const ModelDescription& model, std::int64_t sequences, std::int64_t length);

}  // namespace ridgeline::families
