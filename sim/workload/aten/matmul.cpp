#include "sim/workload/aten/matmul.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

bool row_major(const Tensor& x) { return x.strides.last() == 1 || x.sizes.last() == 1; }
bool column_major(const Tensor& x) { return x.strides.last(1) == 1 || x.sizes.last(1) == 1; }

/// Stored transposed: only the second but last dimension is dense.
bool transposed(const Tensor& x) { return !row_major(x) && column_major(x); }

/// What the library can read: one of the two dimensions dense, else a copy.
Tensor readable(Eager& eager, const Tensor& x) {
  return row_major(x) || column_major(x) ? x : contiguous(eager, x.detached());
}

void record(Eager& eager, const Tensor& a, const Tensor& b, const Tensor* bias, const Tensor& result,
            SparseOperand sparse = SparseOperand::none) {
  Matmul op;
  op.type = eager.product_type(a.type);
  op.batch = a.sizes.rank() == 3 ? a.sizes[0] : 1;
  op.m = a.sizes.last(1);
  op.n = b.sizes.last();
  op.k = a.sizes.last();
  op.layout = transposed(a) ? (transposed(b) ? Layout::tt : Layout::tn) : (transposed(b) ? Layout::nt : Layout::nn);
  op.bias = bias != nullptr;
  op.sparse = sparse;
  if (bias != nullptr) eager.recorder.op(op, {&a, &b, bias}, {&result});
  else eager.recorder.op(op, {&a, &b}, {&result});
}

/// Gradient of a factor comes out in the factor's own order: a transposed factor gets the transpose of the transposed
/// product.
Tensor gradient_of_first(Eager& eager, const Tensor& gradient, const Tensor& first, const Tensor& second,
                         bool sparse_second) {
  if (first.strides[0] == 1 && first.strides[1] == first.sizes[0])
    return t(eager, mm(eager, second, t(eager, gradient), sparse_second ? SparseOperand::a : SparseOperand::none));
  return mm(eager, gradient, t(eager, second), sparse_second ? SparseOperand::b : SparseOperand::none);
}
Tensor gradient_of_second(Eager& eager, const Tensor& gradient, const Tensor& first, const Tensor& second) {
  if (second.strides[0] == 1 && second.strides[1] == second.sizes[0])
    return t(eager, mm(eager, t(eager, gradient), first));
  return mm(eager, t(eager, first), gradient);
}

struct MmBackward final : Node {
  MmBackward() : Node(HostClass::mm_backward) {}
  SavedTensor mat2, self;
  Tensor first_shape, second_shape;  ///< sizes and strides only
  bool sparse_weight = false;        ///< the second factor
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor second = mat2.unpack(eager), first = self.unpack(eager);
    if (needs(1)) out[1] = gradient_of_second(eager, in[0], first, second_shape);
    if (needs(0)) out[0] = gradient_of_first(eager, in[0], first_shape, second, sparse_weight);
  }
  void release() override {
    mat2.release();
    self.release();
  }
};

struct AddmmBackward final : Node {
  AddmmBackward() : Node(HostClass::addmm_backward) {}
  SavedTensor mat1, mat2;
  Tensor first_shape, second_shape;
  bool sparse_weight = false;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor first = mat1.unpack(eager), second = mat2.unpack(eager);
    if (needs(1)) out[1] = gradient_of_first(eager, in[0], first_shape, second, sparse_weight);
    if (needs(2)) out[2] = gradient_of_second(eager, in[0], first, second_shape);
    if (needs(0)) out[0] = in[0];  // the engine sums it to the size of the bias
  }
  void release() override {
    mat1.release();
    mat2.release();
  }
};

struct BmmBackward final : Node {
  BmmBackward() : Node(HostClass::bmm_backward) {}
  SavedTensor mat2, self;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const DType type = in[0].type;
    // What no gradient needs was not kept.
    const auto operand = [&](const Tensor& x) {
      return eager.backward_product_type && x.defined() && x.type == DType::fp32
                 ? to(eager, x, *eager.backward_product_type)
                 : x;
    };
    const Tensor gradient = operand(in[0]), second = operand(mat2.unpack(eager)), first = operand(self.unpack(eager));
    if (needs(1)) out[1] = to(eager, bmm(eager, transpose(eager, first, 1, 2), gradient), type);
    if (needs(0)) out[0] = to(eager, bmm(eager, gradient, transpose(eager, second, 1, 2)), type);
  }
  void release() override {
    mat2.release();
    self.release();
  }
};

Tensor shape_of(const Tensor& x) {
  Tensor result;
  result.sizes = x.sizes;
  result.strides = x.strides;
  return result;
}

}  // namespace

Tensor mm(Eager& eager, const Tensor& a, const Tensor& b, SparseOperand sparse) {
  MmBackward* node = nullptr;
  if (eager.needs_node({&a, &b})) {
    node = &eager.node<MmBackward>({&a, &b});
    node->sparse_weight = sparse == SparseOperand::b;
    node->first_shape = shape_of(a);
    node->second_shape = shape_of(b);
    if (node->needs(0)) node->mat2 = eager.save(b);
    if (node->needs(1)) node->self = eager.save(a);
  }
  const bool kept = eager.keeps_product();
  Tensor result;
  if (!kept || !eager.take_kept({&result})) {
    result = eager.empty({a.sizes[0], b.sizes[1]}, a.type);
    record(eager, readable(eager, a), readable(eager, b), nullptr, result, sparse);
    if (kept) eager.keep({&result});
  }
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

void mm_into(Eager& eager, const Tensor& a, const Tensor& b, const Tensor& result) {
  record(eager, readable(eager, a), readable(eager, b), nullptr, result, SparseOperand::none);
}

Tensor addmm(Eager& eager, const Tensor& bias, const Tensor& a, const Tensor& b, SparseOperand sparse) {
  AddmmBackward* node = nullptr;
  if (eager.needs_node({&bias, &a, &b})) {
    node = &eager.node<AddmmBackward>({&bias, &a, &b});
    node->sparse_weight = sparse == SparseOperand::b;
    node->first_shape = shape_of(a);
    node->second_shape = shape_of(b);
    if (node->needs(2)) node->mat1 = eager.save(a);
    if (node->needs(1)) node->mat2 = eager.save(b);
  }
  Tensor result = eager.empty({a.sizes[0], b.sizes[1]}, a.type);
  record(eager, readable(eager, a), readable(eager, b), &bias, result, sparse);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor bmm(Eager& eager, const Tensor& a, const Tensor& b) {
  BmmBackward* node = nullptr;
  if (eager.needs_node({&a, &b})) {
    node = &eager.node<BmmBackward>({&a, &b});
    if (node->needs(0)) node->mat2 = eager.save(b);
    if (node->needs(1)) node->self = eager.save(a);
  }
  Tensor result = eager.empty({a.sizes[0], a.sizes[1], b.sizes[2]}, a.type);
  record(eager, readable(eager, a), readable(eager, b), nullptr, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor matmul(Eager& eager, const Tensor& a, const Tensor& b, SparseOperand sparse) {
  if (b.sizes.rank() == 2) {
    const std::int64_t k = a.sizes.last();
    Dims sizes = a.sizes;
    sizes[sizes.rank() - 1] = b.sizes[1];
    if (a.sizes.rank() == 2) return mm(eager, a, b, sparse);
    const Tensor product = mm(eager, reshape(eager, a, {a.elements() / k, k}), b, sparse);
    return unsafe_view(eager, product, sizes);
  }
  // Leading dimensions are one batch; the second operand may lack or repeat some.
  Dims sizes = a.sizes;
  std::int64_t batch = 1;
  Dims b_sizes = a.sizes;
  const int rank = a.sizes.rank();
  for (int i = 0; i < rank - 2; ++i) batch *= a.sizes[i];
  b_sizes[rank - 2] = b.sizes.last(1);
  b_sizes[rank - 1] = b.sizes.last();
  sizes[rank - 1] = b.sizes.last();
  const Tensor first = reshape(eager, expand(eager, a, a.sizes), {batch, a.sizes.last(1), a.sizes.last()});
  const Tensor second = reshape(eager, expand(eager, b, b_sizes), {batch, b.sizes.last(1), b.sizes.last()});
  return unsafe_view(eager, bmm(eager, first, second), sizes);
}

Tensor linear(Eager& eager, const Tensor& x, const Tensor& weight, const Tensor* bias) {
  const SparseOperand sparse =
      eager.sparse_weights && eager.recorder.layer >= 0 ? SparseOperand::b : SparseOperand::none;
  if (bias == nullptr) {
    const Tensor transposed_weight = t(eager, weight);
    return matmul(eager, x, transposed_weight, sparse);
  }
  if (x.sizes.rank() == 2) {
    const Tensor transposed_weight = t(eager, weight);
    return addmm(eager, *bias, x, transposed_weight, sparse);
  }
  const std::int64_t k = x.sizes.last();
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = weight.sizes[0];
  const Tensor rows = reshape(eager, x, {x.elements() / k, k});
  const Tensor transposed_weight = t(eager, weight);
  return view(eager, addmm(eager, *bias, rows, transposed_weight, sparse), sizes);
}

}  // namespace ridgeline::eager::aten
