#include "sim/workload/aten/embedding.h"

#include "sim/workload/aten/views.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

void add_rows_up(Eager& eager, const Tensor& gradient, const Tensor& given, std::int64_t rows, Tensor& into) {
  const Tensor index = contiguous(eager, given);
  const std::int64_t tokens = index.elements(), cols = gradient.sizes.last();
  // Sorting leaves the sorted indices and where each came from.
  Tensor sorted, origin;
  if (tokens > kEmbeddingTokensUnsorted) {
    sorted = eager.empty({tokens}, DType::int64);
    origin = eager.empty({tokens}, DType::int64);
  }
  into = eager.empty({rows, cols}, gradient.type);
  eager.recorder.op(Embedding{true, gradient.type, tokens, rows, cols}, {&gradient, &index}, {&into});
}

}  // namespace

Tensor embedding(Eager& eager, const Tensor& table, const Tensor& indices) {
  const std::int64_t tokens = indices.elements(), cols = table.sizes[1];
  const bool sorts = tokens > kEmbeddingTokensUnsorted;
  auto* const node = node_for<1>(
      eager, {&table}, sorts ? HostClass::embedding_backward_sorted : HostClass::embedding_backward,
      [rows = table.sizes[0]](auto& pass) { add_rows_up(pass.eager, pass.in[0], pass.saved[0], rows, pass.out[0]); });
  if (node != nullptr) node->saved[0] = eager.save(indices);
  Dims sizes = indices.sizes;
  sizes.push_back(cols);
  const Tensor index = reshape(eager, indices, {tokens});
  Tensor result = eager.empty(sizes, table.type);
  eager.recorder.op(Embedding{false, table.type, tokens, table.sizes[0], cols}, {&table, &index}, {&result});
  attach(result, node);
  return result;
}

}  // namespace ridgeline::eager::aten
