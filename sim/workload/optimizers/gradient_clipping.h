// torch.nn.utils.clip_grad_norm_: the norm of each gradient, the norm of those, and one scaling of all.
#pragma once

#include "sim/workload/eager/parameter.h"

namespace ridgeline::optimizers {

void clip_gradients(eager::Eager& eager, eager::Parameters& parameters);

}  // namespace ridgeline::optimizers
