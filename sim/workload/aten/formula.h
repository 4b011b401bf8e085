// Point-wise functions with autograd, by their rows (sim/workload/pointwise_functions.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/workload/eager/tensor.h"
#include "sim/workload/op.h"

namespace ridgeline::eager::aten {

/// A tensor that is read, a copy, or a kernel on what its arguments give.
struct Formula {
  enum class Kind : std::uint8_t { read, copy, kernel };
  /// In the order in which PyTorch saves and releases them; then the incoming gradient.
  enum class Read : std::uint8_t { other, self, result, grad };
  Kind kind = Kind::read;
  Read read = Read::grad;
  PointwiseFunction function = PointwiseFunction::other;
  std::vector<Formula> arguments;
  [[nodiscard]] bool reads(Read which) const;
};

/// A formula for each tensor that has a gradient, parsed from a row's text. Nodes refer to it: it outlives sessions.
struct Derivative {
  explicit Derivative(std::string_view text);
  std::vector<Formula> formulas;
};

/// One kernel from `a` (and `b`) to a fresh tensor of their common shape and wider type; saves what the gradient reads.
Tensor apply(Eager& eager, PointwiseFunction function, const Tensor& a, const Tensor* b = nullptr);
/// The same with another gradient than its row's.
Tensor apply(Eager& eager, PointwiseFunction function, const Derivative& derivative, const Tensor& a,
             const Tensor* b = nullptr);

}  // namespace ridgeline::eager::aten
