// What a kernel does in the network, finer than the time classes: attention apart from other products and sweeps.
//
// A trace knows no modules. Attention is fused attention, batched products, softmax, and whatever sweeps tensors as
// large as the score matrices (masks, scaling, dropout).
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "sim/launch/kernel_launch.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

enum class KernelClass : std::uint8_t {
  matrix_products,
  attention,
  normalization,
  elementwise,  ///< and sums
  loss,
  embedding,
  optimizer,  ///< and gradient clipping
  copies,
  communication
};
inline constexpr std::size_t kKernelClasses = 9;
/// "matrix_products" …
std::string_view name_of(KernelClass kernel_class);

class KernelClasses {
 public:
  explicit KernelClasses(const OpTrace& trace);
  [[nodiscard]] KernelClass of(const Op& op, TimeClass time_class) const;
  /// Its output is a matrix of attention scores, probabilities or their gradients.
  [[nodiscard]] bool writes_scores(const Op& op) const;

 private:
  std::set<std::int64_t> scores_;  ///< sizes of score matrices, in elements
};

}  // namespace ridgeline
