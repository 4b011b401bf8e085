#include "sim/workload/aten/safe_attention.h"

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/normalization.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/softmax.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

Tensor safe_softmax(Eager& eager, const Tensor& scores) {
  auto* const node = node_for<1>(eager, {&scores}, HostClass::softmax_backward, [](auto& pass) {
    const Tensor& y = pass.saved[0];
    pass.out[0] = pass.eager.empty(pass.in[0].sizes, y.type);
    const std::int64_t cols = y.sizes.last();
    const Tensor product = pass.eager.empty_like(y);
    pass.eager.recorder.op(Softmax{false, true, y.type, y.type, y.elements() / cols, cols}, {&pass.in[0], &y},
                           {&pass.out[0]});
  });
  const Tensor probabilities = softmax(eager, scores.detached(), scores.type);
  Dims rows = scores.sizes;
  rows[rows.rank() - 1] = 1;
  Tensor empty_rows;
  {
    const Tensor hidden = equal_number(eager, scores);
    empty_rows = eager.empty(rows, DType::boolean);
    eager.recorder.op(Reduction{ReductionKind::sum_cols, DType::boolean, rows.product(), scores.sizes.last()},
                      {&hidden}, {&empty_rows});
  }
  Tensor result = eager.empty(scores.sizes, scores.type);
  pointwise(eager, PointwiseFunction::masked_fill, {&probabilities, &empty_rows}, result);
  if (node != nullptr) {
    node->saved[0] = eager.save(result);
    Eager::attach(result, *node);
  }
  return result;
}

}  // namespace

Tensor safe_attention(Eager& eager, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                      bool causal, bool with_dropout) {
  const DType type = eager.math_attention_in_fp32 ? DType::fp32 : query.type;
  const Tensor q = to(eager, query, type), k = to(eager, key, type), v = to(eager, value, type);
  Tensor added = mask;
  if (causal) {
    const Tensor below = full(eager, {q.sizes[2], k.sizes[2]}, DType::boolean);
    pointwise(eager, PointwiseFunction::other, {&below}, below);  // tril
    added = full(eager, {q.sizes[2], k.sizes[2]}, q.type);
    pointwise(eager, PointwiseFunction::masked_fill, {&added, &below}, added);
  }
  const Tensor scaled_q = scale(eager, q), scaled_k = scale(eager, transpose(eager, k, 2, 3));
  Tensor scores = matmul(eager, scaled_q, scaled_k);
  if (added.defined()) scores = added_to(eager, std::move(scores), added);
  scores = eager.math_attention_in_fp32 ? safe_softmax(eager, scores) : softmax(eager, scores, scores.type);
  if (with_dropout) scores = dropout(eager, scores);
  return to(eager, matmul(eager, scores, v), query.type);
}

}  // namespace ridgeline::eager::aten
