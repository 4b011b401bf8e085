#include "sim/answer/kernel_class.h"

#include <array>
#include <variant>

namespace ridgeline {
namespace {

/// Elements an op writes, where it could be a matrix of scores; 0 otherwise.
std::int64_t swept_elements(const Op& op) {
  if (const auto* matmul = std::get_if<Matmul>(&op))
    return matmul->batch > 1 ? matmul->batch * matmul->m * matmul->n : 0;
  if (const auto* pointwise = std::get_if<Pointwise>(&op)) return pointwise->elements();
  if (const auto* dropout = std::get_if<Dropout>(&op)) return dropout->elements;
  if (const auto* copy = std::get_if<Copy>(&op)) return copy->rows * copy->cols;
  if (const auto* softmax = std::get_if<Softmax>(&op)) return softmax->log ? 0 : softmax->rows * softmax->cols;
  return 0;
}

}  // namespace

std::string_view name_of(KernelClass kernel_class) {
  static constexpr std::array<std::string_view, kKernelClasses> kNames{"matrix_products", "attention", "normalization",
                                                                       "elementwise",     "loss",      "embedding",
                                                                       "optimizer",       "copies",    "communication"};
  return kNames[static_cast<std::size_t>(kernel_class)];
}

KernelClasses::KernelClasses(const OpTrace& trace) {
  for (const Op& op : trace.ops) {
    if (const auto* softmax = std::get_if<Softmax>(&op); softmax && !softmax->log)
      scores_.insert(softmax->rows * softmax->cols);
  }
  // Where activations are as large as the scores, size does not tell them apart.
  for (const Op& op : trace.ops) {
    if (const auto* norm = std::get_if<Norm>(&op)) scores_.erase(norm->rows * norm->cols);
  }
}

bool KernelClasses::writes_scores(const Op& op) const {
  const auto* softmax = std::get_if<Softmax>(&op);
  return (softmax && !softmax->log) || scores_.contains(swept_elements(op));
}

KernelClass KernelClasses::of(const Op& op, TimeClass time_class) const {
  if (time_class == TimeClass::optimizer) return KernelClass::optimizer;
  if (time_class == TimeClass::communication) return KernelClass::communication;
  const auto* matmul = std::get_if<Matmul>(&op);
  if (std::holds_alternative<Attention>(op) || (matmul && matmul->batch > 1) || writes_scores(op))
    return KernelClass::attention;
  if (std::holds_alternative<NllLoss>(op) || std::holds_alternative<Softmax>(op)) return KernelClass::loss;
  if (std::holds_alternative<Embedding>(op)) return KernelClass::embedding;
  switch (time_class) {
    case TimeClass::tensor_contraction: return KernelClass::matrix_products;
    case TimeClass::normalization: return KernelClass::normalization;
    case TimeClass::copy: return KernelClass::copies;
    default: return KernelClass::elementwise;
  }
}

}  // namespace ridgeline
