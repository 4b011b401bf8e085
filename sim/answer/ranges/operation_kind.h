// Kinds of operations that evidence is counted by: a measured gelu says little about an argmax.
//
// A kind is the operation as PyTorch prints it, its element type, and the law of its longest kernel. All three come
// from the operation and its lowering, so that a new operation or a new kernel is a kind of its own until rows of it
// are among the measurements.
#pragma once

#include <string>
#include <string_view>

#include "sim/launch/kernel_launch.h"
#include "sim/workload/op.h"

namespace ridgeline {

struct OperationKind {
  std::string operation;    ///< "mm" (with or without a bias), "gelu", "conv2d_backward depthwise"
  std::string_view type;    ///< "16-bit" (bf16 and fp16 run the same kernels), "fp32" ...; "" without a type
  std::string_view law;     ///< "wgmma", "attention", "layer_norm_vectorized"
  std::string_view family;  ///< of laws: gemm, attention, convolution, reduction, pointwise, generated, other
  /// "mm/16-bit/wgmma"
  [[nodiscard]] std::string key() const;
  /// For people: "mm in 16-bit".
  [[nodiscard]] std::string words() const;
};

/// `longest` is the kernel that takes most of the operation's time.
OperationKind kind_of(const Op& op, const KernelLaunch& longest);

/// Family of the laws that time an operation: gemm, attention, convolution, reduction, pointwise, generated, other.
std::string_view family_of(const Op& op);

}  // namespace ridgeline
