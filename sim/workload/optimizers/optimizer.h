// Optimizers as PyTorch runs them: states made in the first step, then kernels over lists of tensors (foreach, fused)
// or over one tensor after the other.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/training.h"

namespace ridgeline::optimizers {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update from the gradients; creates states when there are none yet. `overflow_flag` is given to a fused
  /// optimizer under gradient scaling (else undefined).
  virtual void step(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag) = 0;
  /// The same of parameters of several types, each type in lists of its own, as torch.optim groups tensors.
  void update(eager::Eager& eager, eager::Parameters& parameters, const eager::Tensor& overflow_flag);
  /// zero_grad: drops the gradients, or fills them with zeros (`keep`; then the next backward pass adds to them).
  void clear_gradients(eager::Eager& eager, eager::Parameters& parameters, bool keep);
};

/// Throws UserError for a combination PyTorch does not have.
std::unique_ptr<Optimizer> make_optimizer(const TrainingDescription& training);

/// Calls `use` with the parameters that belong, in their order; not where none does.
void with_those(eager::Parameters& parameters, const std::function<bool(const eager::Parameter&)>& belongs,
                const std::function<void(eager::Parameters&)>& use);

/// Calls `use` with the parameters of each type, which come first in this order.
void for_each_type(eager::Parameters& parameters, const std::function<void(eager::Parameters&)>& use);

/// Elements of each parameter, shared by all multi-tensor operations of a step.
std::shared_ptr<const std::vector<std::int64_t>> sizes_of(const eager::Parameters& parameters);
/// Tensors of one list, a parameter each.
using TensorList = std::vector<const eager::Tensor*>;
TensorList values_of(const eager::Parameters& parameters);
TensorList gradients_of(const eager::Parameters& parameters);
TensorList states_of(const eager::Parameters& parameters, std::size_t state);
TensorList all_of(const std::vector<eager::Tensor>& tensors);
/// One multi-tensor call over lists of these sizes, in the order in which its kernel takes them (lowering:
/// kernels/multi_tensor.cpp).
void foreach (eager::Eager& eager, MultiTensorFunction function, DType type,
              const std::shared_ptr<const std::vector<std::int64_t>>& sizes, std::initializer_list<TensorList> lists,
              bool scalar_per_tensor = false);
/// tensor.item(): the host waits for the number.
void read_on_host(eager::Eager& eager, const eager::Tensor& number);
/// An optimizer state filled with zeros.
eager::Tensor zero_state(eager::Eager& eager, const eager::Dims& sizes, DType type);

}  // namespace ridgeline::optimizers
