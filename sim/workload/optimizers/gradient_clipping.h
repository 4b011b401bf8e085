// Clipping of gradients by their norm: torch.nn.utils.clip_grad_norm_ as versions of PyTorch run it, over all gradients
// or over one tensor alone, and apex's kernels over lists.
#pragma once

#include "sim/workload/eager/parameter.h"
#include "sim/workload/training.h"

namespace ridgeline::optimizers {

/// The norm of each gradient, the norm of those, and one scaling of all. A clipper that asks whether the norm is too
/// large hears that it is.
void clip_gradients(eager::Eager& eager, eager::Parameters& parameters, GradientClipper clipper, ClippingStyle style);

/// clip_grad_norm_ of one tensor, as optimizers with a loop of their own call it. A clipper that asks whether its norm
/// is too large hears that it is not: one tensor has a small share of the norm of all.
void clip_gradient(eager::Eager& eager, const eager::Parameter& parameter, ClippingStyle style);

}  // namespace ridgeline::optimizers
