// DTensor's changes of placement over tensor parallel ranks, as autograd functions: each with the copies that the
// layout asks for and the collective on the group's own stream, which whoever uses the result waits for.
#pragma once

#include "sim/workload/parallel/tensor_parallel.h"

namespace ridgeline::parallel::dtensor {

/// Shard(1) → Replicate; backward the gradients are added up and scattered.
eager::Tensor gather_sequence(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// Partial → Shard(1); backward the gradients are gathered.
eager::Tensor scatter_sequence(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// Partial → Replicate; nothing backward.
eager::Tensor add_up(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// Replicate; backward the gradients, which are partial, are added up.
eager::Tensor replicate(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// Shard(-1) → Replicate of `columns`, which the last rank may have less of; backward this rank's part.
eager::Tensor gather_columns(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x, std::int64_t columns);
/// Replicate → Shard(-1); backward the parts of all ranks are gathered.
eager::Tensor own_columns(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// Shard(1) → Replicate, of which every rank computes the same: backward this rank's part.
eager::Tensor whole_sequence(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// Replicate → Shard(1); backward the parts of all ranks are gathered.
eager::Tensor own_sequence(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);
/// A copy, added up over the ranks.
eager::Tensor sum_of_ranks(eager::Eager& eager, TensorParallel& ranks, const eager::Tensor& x);

}  // namespace ridgeline::parallel::dtensor
