#include "sim/workload/aten/grouped.h"

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

/// Each expert's product, or all in one kernel where 16-bit types have that.
void record_products(Eager& eager, std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, const Tensor& a,
                     const Tensor& b, const Tensor& result) {
  Matmul op;
  op.type = eager.product_type(a.type);
  op.m = m;
  op.n = n;
  op.k = k;
  op.layout = layout;
  const std::int64_t experts = result.sizes[0];
  if (a.type == DType::fp32) {
    for (std::int64_t i = 0; i < experts; ++i) eager.recorder.op(op, {&a, &b}, {&result});
  } else {
    op.batch = experts;
    eager.recorder.op(op, {&a, &b}, {&result});
  }
}

struct GroupedBackward final : Node {
  GroupedBackward() : Node(HostClass::bmm_backward) {}
  SavedTensor self, weight;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = self.unpack(eager), w = weight.unpack(eager);
    const std::int64_t rows = x.sizes[1], from = x.sizes[2], to = w.sizes[1];
    if (needs(1)) {
      out[1] = eager.empty(w.sizes, w.type);
      record_products(eager, to, from, rows, Layout::tn, in[0], x, out[1]);
    }
    if (needs(0)) {
      out[0] = eager.empty(x.sizes, x.type);
      record_products(eager, rows, from, to, Layout::nn, in[0], w, out[0]);
    }
  }
  void release() override {
    self.release();
    weight.release();
  }
};

}  // namespace

Tensor grouped_products(Eager& eager, const Tensor& x, const Tensor& weights) {
  GroupedBackward* node = eager.needs_node({&x, &weights}) ? &eager.node<GroupedBackward>({&x, &weights}) : nullptr;
  if (node != nullptr) {
    node->self = eager.save(x);
    node->weight = eager.save(weights);
  }
  Tensor result = eager.empty({x.sizes[0], x.sizes[1], weights.sizes[1]}, x.type);
  record_products(eager, x.sizes[1], weights.sizes[1], x.sizes[2], Layout::nt, x, weights, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::eager::aten
