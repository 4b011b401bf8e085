// What all stages of ZeRO do in a step: look for overflow, take the norm of all gradients, update the fp32 share.
//
// Follows step() of deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, release 0.19: the norm is taken whether
// gradients are clipped or not, tensor after tensor in fp64.
#pragma once

#include <optional>
#include <span>

#include "sim/workload/optimizers/optimizer.h"
#include "sim/workload/parallel/communication.h"

namespace ridgeline::deepspeed {

/// Where a step runs. `group`: of the ranks that share; null: one GPU.
struct StepPlace {
  eager::Eager& eager;
  parallel::ProcessGroup* group;
};

/// `calls` operations of the framework's Python on single numbers.
void on_numbers(eager::Eager& eager, int calls);
/// A view of `elements` of a buffer.
eager::Tensor part_of(const eager::Tensor& buffer, std::int64_t elements);
void copy(eager::Eager& eager, const eager::Tensor& from, const eager::Tensor& to);
/// torch.cat of flat views; a single one stays where it is.
eager::Tensor flattened(eager::Eager& eager, std::span<const eager::Tensor> parts);
/// A number that all ranks agree on.
void agree(const StepPlace& place, DType type);
/// Every gradient's square sum in fp64, their sum over the ranks.
void norm_of(const StepPlace& place, std::span<const eager::Tensor> gradients);
/// 1 / (loss scale · how far the norm is above its limit).
void scale_share(eager::Eager& eager, const eager::Tensor& gradient, bool clips);
/// `share` holds one flat tensor; `gradient` in its type. The 16-bit numbers of the share follow.
void update(eager::Eager& eager, optimizers::Optimizer& optimizer, eager::Parameters& share, eager::Tensor gradient,
            bool clips, const eager::Tensor& stored);

}  // namespace ridgeline::deepspeed
