#include "sim/workload/aten/embedding.h"

#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

struct EmbeddingBackward final : Node {
  explicit EmbeddingBackward(bool sorted)
      : Node(sorted ? HostClass::embedding_backward_sorted : HostClass::embedding_backward) {}
  SavedTensor indices;
  std::int64_t rows = 0;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor given = indices.unpack(eager);
    const Tensor index = contiguous(eager, given);
    const std::int64_t tokens = index.elements(), cols = in[0].sizes.last();
    // Sorting leaves the sorted indices and where each came from.
    Tensor sorted, origin;
    if (tokens > kEmbeddingTokensUnsorted) {
      sorted = eager.empty({tokens}, DType::int64);
      origin = eager.empty({tokens}, DType::int64);
    }
    out[0] = eager.empty({rows, cols}, in[0].type);
    eager.recorder.op(Embedding{true, in[0].type, tokens, rows, cols}, {&in[0], &index}, {&out[0]});
  }
  void release() override { indices.release(); }
};

}  // namespace

Tensor embedding(Eager& eager, const Tensor& table, const Tensor& indices) {
  EmbeddingBackward* node = nullptr;
  const std::int64_t tokens = indices.elements(), cols = table.sizes[1];
  if (eager.needs_node({&table})) {
    node = &eager.node<EmbeddingBackward>({&table}, tokens > kEmbeddingTokensUnsorted);
    node->indices = eager.save(indices);
    node->rows = table.sizes[0];
  }
  Dims sizes = indices.sizes;
  sizes.push_back(cols);
  const Tensor index = reshape(eager, indices, {tokens});
  Tensor result = eager.empty(sizes, table.type);
  eager.recorder.op(Embedding{false, table.type, tokens, table.sizes[0], cols}, {&table, &index}, {&result});
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::eager::aten
