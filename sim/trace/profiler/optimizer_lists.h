// Which lists of tensors a multi-tensor call works on, where a recording leaves out what is in them: the order in which
// PyTorch's optimizers call them says (torch/optim/{adam,sgd}.py, torch/nn/utils/clip_grad.py).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/workload/op.h"

namespace ridgeline::trace {

enum class ListRole : std::uint8_t { value, gradient, average, square, temporary, count };

class OptimizerLists {
 public:
  /// The lists of the next call, in the order in which its kernel takes them.
  std::vector<ListRole> next(const MultiTensor& op);

 private:
  std::optional<MultiTensorFunction> before_;
  bool momentum_ = false;
};

}  // namespace ridgeline::trace
