#include "sim/workload/aten/grouped.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

std::int64_t each(std::int64_t rows, std::int64_t experts) { return (rows + experts - 1) / experts; }

/// One call for all experts.
void record_products(Eager& eager, std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, const Tensor& a,
                     const Tensor& b, const Tensor& result, std::int64_t experts) {
  Matmul op;
  op.type = eager.product_type(a.type);
  op.m = m;
  op.n = n;
  op.k = k;
  op.layout = layout;
  op.batch = experts;
  op.grouped = true;
  eager.recorder.op(op, {&a, &b}, {&result});
}

struct GroupedBackward final : Node {
  GroupedBackward() : Node(HostClass::bmm_backward) {}
  SavedTensor self, weight;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = self.unpack(eager), w = weight.unpack(eager);
    const std::int64_t experts = w.sizes[0], rows = each(x.sizes[0], experts), from = x.sizes[1], to = w.sizes[1];
    if (needs(1)) {
      out[1] = eager.empty(w.sizes, w.type);
      record_products(eager, to, from, rows, Layout::tn, in[0], x, out[1], experts);
    }
    if (needs(0)) {
      out[0] = eager.empty(x.sizes, x.type);
      record_products(eager, rows, from, to, Layout::nn, in[0], w, out[0], experts);
    }
  }
  void release() override {
    self.release();
    weight.release();
  }
};

}  // namespace

Tensor masked_in_place(Eager& eager, Tensor x, const Tensor& mask) {
  auto* const node = node_for<1>(eager, {&x}, HostClass::masked_fill_backward, [](auto& pass) {
    pass.out[0] = pass.eager.empty_like(pass.in[0]);
    pointwise(pass.eager, PointwiseFunction::masked_fill, {&pass.in[0], &pass.saved[0]}, pass.out[0]);
  });
  if (node != nullptr) node->saved[0] = eager.save(mask);
  pointwise(eager, PointwiseFunction::masked_fill, {&x, &mask}, x);
  attach(x, node);
  return x;
}

Tensor grouped_products(Eager& eager, const Tensor& x, const Tensor& weights) {
  GroupedBackward* node = eager.needs_node({&x, &weights}) ? &eager.node<GroupedBackward>({&x, &weights}) : nullptr;
  if (node != nullptr) {
    node->self = eager.save(x);
    node->weight = eager.save(weights);
  }
  const std::int64_t experts = weights.sizes[0];
  Tensor result = eager.empty({x.sizes[0], weights.sizes[1]}, x.type);
  record_products(eager, each(x.sizes[0], experts), weights.sizes[1], x.sizes[1], Layout::nt, x, weights, result,
                  experts);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::eager::aten
