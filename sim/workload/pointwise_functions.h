// Point-wise functions, a row each, as PyTorch has native_functions.yaml and derivatives.yaml: op traces, kernel cases,
// recorded calls, autograd, lowering, torch.compile and profiles read the rows. A new function is one row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/workload/host_class.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Instructions an element, read from code that torch.compile generates, roughly.
inline constexpr std::int64_t kExponential = 12, kErrorFunction = 42, kHyperbolic = 30;
/// Sine and cosine, with the reduction of their argument.
inline constexpr std::int64_t kTrigonometric = 40;

struct PointwiseRow {
  /// TensorIterator's kernel. No `law`: the function has kernels of its own (sim/kernels/memory_bound/own_kernels.h).
  struct Kernel {
    std::string_view law;   ///< whose constants time it: a class of data/laws/memory_bound.yaml
    std::string_view name;  ///< in profiles
    double flops = 0.0;     ///< an element
    int registers_half = 32, registers_full = 32;
    std::string_view law_of_one{};  ///< of a single tensor, where it differs
    int registers_half_of_one = 0;
  };
  /// In code that torch.compile generates.
  struct Code {
    std::string_view name = "mul";
    std::int64_t instructions = 1;  ///< an element
  };
  /// A call of the dispatcher: its name and, after a space, that of its twin which writes into the first tensor; what
  /// stands in the place of a second tensor, and what follows the tensors, as Python writes them.
  struct Call {
    std::string_view names{}, number{}, more{};
    [[nodiscard]] constexpr std::string_view name() const { return names.substr(0, names.find(' ')); }
  };

  std::string_view key;   ///< in op traces and kernel cases
  std::string_view name;  ///< in reports
  int tensors = 0;        ///< it takes, all of one shape; 0: other operands
  Kernel kernel{};
  Code code{};
  Call call{};
  /// Gradients of the tensors by kernels on grad, self, other and result, parted by "; " (derivatives.yaml of PyTorch
  /// 2.11). Empty: none.
  std::string_view gradient{};
  std::string_view node{"MulBackward0"};  ///< of autograd, whose backward pass runs the function
  HostClass backward = HostClass::pointwise_backward;
  bool masks = false;  ///< the last tensor is a mask
};

/// Rows in the order of the enumerators; functions that no code names follow them.
std::span<const PointwiseRow> pointwise_rows();
const PointwiseRow& row_of(PointwiseFunction function);
/// The function of a key; throws std::out_of_range for others.
PointwiseFunction pointwise_function(std::string_view key);

}  // namespace ridgeline
