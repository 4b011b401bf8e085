// Families whose descriptions are a few numbers, as generic transformers.
#pragma once

#include "sim/workload/composition.h"
#include "sim/workload/model.h"

namespace ridgeline::families {

/// The generic transformer that runs a network.
CompositionHandle composition_of(const ModelDescription& model);

}  // namespace ridgeline::families
