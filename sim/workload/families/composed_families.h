// Families whose descriptions are a few numbers, as generic transformers: Transformers' code of a llama.
#pragma once

#include "sim/workload/composition.h"
#include "sim/workload/model.h"

namespace ridgeline::families {

/// The generic transformer that runs a network; none for networks with a class of their own.
CompositionHandle composition_of(const ModelDescription& model);

}  // namespace ridgeline::families
