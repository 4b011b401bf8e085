// Matrix products. A factor that is dense along its first dimension is read transposed, as BLAS does.
#include "sim/trace/aten/aten_rules.h"
#include "sim/trace/aten/library_kernel.h"

namespace ridgeline::trace {
namespace {

bool row_major(const AtenTensor& x) {
  return x.strides.size() != x.sizes.size() || x.strides.back() == 1 || x.last() == 1;
}
bool transposed(const AtenTensor& x) {
  if (row_major(x)) return false;
  return x.strides[x.strides.size() - 2] == 1 || x.last(1) == 1;
}

MappedOps product(const AtenTensor* bias, const AtenTensor& a, const AtenTensor& b, const AtenCall& call,
                  const MapContext& context) {
  const std::size_t rank = a.sizes.size();
  if (rank != b.sizes.size() || (rank != 2 && rank != 3) || a.last() != b.last(1)) return std::nullopt;
  Matmul op;
  op.type = a.type == DType::fp32 && context.tf32 ? DType::tf32 : a.type;
  op.batch = rank == 3 ? a.sizes[0] : 1;
  op.m = a.last(1);
  op.n = b.last();
  op.k = a.last();
  op.layout = transposed(a) ? (transposed(b) ? Layout::tt : Layout::tn) : (transposed(b) ? Layout::nt : Layout::nn);
  // Our own timelines, which tell storages, name kernels for the reader.
  if (context.same_library && call.writes.empty()) op.ran = kernel_that_ran(call.kernels, op.batch, op.m, op.n);
  const bool row_bias = bias != nullptr && bias->sizes.size() == 1;
  op.bias = row_bias;
  std::vector<std::int64_t> sizes{op.m, op.n};
  if (rank == 3) sizes.insert(sizes.begin(), op.batch);
  const AtenTensor c = result_of(call, 0, fresh(a.type, sizes));
  if (c.elements() < 1) return nothing();
  if (op.k < 1) return one(pointwise_op(PointwiseFunction::fill, {}, c));  // a sum of nothing: zeros
  MappedOp mapped{op, {a, b}, {c}, rank == 3 ? HostClass::matmul : HostClass::linear, HostClass::pointwise_backward};
  if (row_bias) mapped.inputs.push_back(*bias);
  std::vector<MappedOp> ops;
  // A matrix to add to is copied into the result first.
  if (bias != nullptr && !row_bias && bias->elements() == c.elements()) ops = *copy_ops(*bias, c);
  ops.push_back(std::move(mapped));
  return ops;
}

MappedOps mm(const AtenCall& call, const MapContext& context) {
  const AtenTensor *a = call.tensor(0), *b = call.tensor(1);
  if (a == nullptr || b == nullptr) return std::nullopt;
  return product(nullptr, *a, *b, call, context);
}

MappedOps addmm(const AtenCall& call, const MapContext& context) {
  const AtenTensor *bias = call.tensor(0), *a = call.tensor(1), *b = call.tensor(2);
  if (bias == nullptr || a == nullptr || b == nullptr) return std::nullopt;
  return product(bias, *a, *b, call, context);
}

/// Products of groups of rows that lie behind one another (experts and their tokens) in one kernel. The trace does not
/// say where groups end: all are taken as of one size, and as a batched product.
MappedOps grouped_mm(const AtenCall& call, const MapContext& context) {
  const AtenTensor *a = call.tensor(0), *b = call.tensor(1), *ends = call.tensor(2);
  if (a == nullptr || b == nullptr || a->sizes.size() < 2 || b->sizes.size() < 2) return std::nullopt;
  const bool a_grouped = a->sizes.size() == 3, b_grouped = b->sizes.size() == 3;
  const std::int64_t groups = a_grouped         ? a->sizes[0]
                              : b_grouped       ? b->sizes[0]
                              : ends != nullptr ? ends->elements()
                                                : 0;
  if (groups < 1) return std::nullopt;
  const auto share = [&](std::int64_t all) { return (all + groups - 1) / groups; };
  Matmul op;
  op.type = a->type == DType::fp32 && context.tf32 ? DType::tf32 : a->type;
  op.batch = groups;
  op.grouped = true;
  op.m = !a_grouped && b_grouped ? share(a->last(1)) : a->last(1);
  op.n = a_grouped && !b_grouped ? share(b->last()) : b->last();
  op.k = !a_grouped && !b_grouped ? share(a->last()) : a->last();
  op.layout = transposed(*a) ? (transposed(*b) ? Layout::tt : Layout::tn) : (transposed(*b) ? Layout::nt : Layout::nn);
  if (op.m < 1 || op.n < 1) return nothing();
  std::vector<std::int64_t> sizes{a->last(1), b->last()};
  if (a_grouped == b_grouped) sizes.insert(sizes.begin(), groups);
  const AtenTensor c = result_of(call, 0, fresh(a->type, sizes));
  if (op.k < 1) return one(pointwise_op(PointwiseFunction::fill, {}, c));
  return one({op, {*a, *b}, {c}, HostClass::matmul, HostClass::pointwise_backward});
}

}  // namespace

void add_contraction_rules(RuleTable& table) {
  add(table, "aten::mm aten::bmm", mm);
  add(table, "aten::addmm aten::_addmm_activation aten::baddbmm", addmm);
  add(table, "aten::_grouped_mm", grouped_mm);
}

}  // namespace ridgeline::trace
