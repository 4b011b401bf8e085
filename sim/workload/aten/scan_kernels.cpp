#include "sim/workload/aten/scan_kernels.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ridgeline::eager::aten::scan {

void kernel(Eager& eager, std::string name, std::int64_t rows, std::int64_t cols, std::int64_t arithmetic,
            std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes) {
  FusedKernel op;
  op.name = std::move(name);
  op.rows = rows;
  op.cols = cols;
  op.type = (*writes.begin())->type;
  op.arithmetic = arithmetic;
  for (const Tensor* one : reads) op.reads.push_back(one->elements() * bytes_of(one->type));
  for (const Tensor* one : writes) op.writes.push_back(one->elements() * bytes_of(one->type));
  eager.recorder.op(op, reads, writes);
}

bool is_unmeasured(std::string_view name) {
  constexpr std::string_view kFirstWords[] = {"causal_conv1d", "l2norm",        "chunk_gated", "chunk_bwd", "chunk_fwd",
                                              "chunk_local",   "recompute_w_u", "prepare_wy",  "ctc_loss"};
  return std::any_of(std::begin(kFirstWords), std::end(kFirstWords),
                     [&](std::string_view word) { return name.starts_with(word); });
}

void matmuls(Eager& eager, DType type, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
             std::initializer_list<const Tensor*> reads, const Tensor& result) {
  Matmul op;
  op.type = eager.product_type(type);
  op.batch = batch;
  op.m = m;
  op.n = n;
  op.k = k;
  eager.recorder.op(op, reads, {&result});
}

Tensor convolved(Eager& eager, const Tensor& x, const Tensor& filters, Tensor into) {
  kernel(eager, "causal_conv1d_fwd", x.sizes[0] * x.sizes[1], x.sizes[2], 2 * filters.sizes.last() + 6, {&x, &filters},
         {&into});
  return into;
}
void convolved_backward(Eager& eager, const Tensor& x, const Tensor& filters, const Tensor& gradient,
                        const Tensor& into) {
  kernel(eager, "causal_conv1d_bwd", x.sizes[0] * x.sizes[1], x.sizes[2], 6 * filters.sizes.last() + 12,
         {&x, &filters, &gradient}, {&into});
}

}  // namespace ridgeline::eager::aten::scan
