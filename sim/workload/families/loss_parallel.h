// Cross entropy of logits that stay split along the vocabulary (torch.distributed.tensor.parallel.loss_parallel).
#pragma once

#include "sim/workload/families/functional.h"
#include "sim/workload/parallel/tensor_parallel.h"

namespace ridgeline::families {

/// Of fp32 logits [rows, this rank's classes].
Tensor loss_parallel(Eager& eager, parallel::TensorParallel& ranks, const Tensor& logits, const Tensor& targets);

}  // namespace ridgeline::families
