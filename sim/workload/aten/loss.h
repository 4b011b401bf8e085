// Negative log-likelihood of [rows, classes] log-probabilities.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// Mean over rows; saves the log-probabilities, the target and the total weight. The backward pass fills zeros and
/// scatters.
Tensor nll_loss(Eager& eager, const Tensor& log_probabilities, const Tensor& target);

/// Cross entropy of scores [batch, classes, height, width] for a class of each pixel, in fp32 under autocast.
Tensor pixel_cross_entropy(Eager& eager, const Tensor& scores, const Tensor& target);

}  // namespace ridgeline::eager::aten
