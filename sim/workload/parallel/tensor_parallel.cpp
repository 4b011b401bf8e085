#include "sim/workload/parallel/tensor_parallel.h"

#include "sim/workload/aten/views.h"

namespace ridgeline::parallel {

using eager::Dims;
using eager::Eager;
using eager::Gradients;
using eager::Node;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

struct EnterBackward final : Node {
  explicit EnterBackward(TensorParallel& all) : Node(HostClass::tensor_boundary_backward), ranks(all) {}
  TensorParallel& ranks;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    Tensor gradient = aten::contiguous(eager, in[0]);
    in[0] = Tensor{};
    ranks.all_reduce(gradient);
    out[0] = std::move(gradient);
  }
};

struct LeaveBackward final : Node {
  LeaveBackward() : Node(HostClass::tensor_boundary_backward) {}
  void backward(Eager&, Gradients& in, Gradients& out) override { out[0] = in[0]; }
};

}  // namespace

Tensor TensorParallel::enter(const Tensor& x) {
  eager_.recorder.host(HostClass::tensor_boundary);
  Tensor result = x.detached();
  if (eager_.needs_node({&x})) Eager::attach(result, eager_.node<EnterBackward>({&x}, *this));
  return result;
}

Tensor TensorParallel::leave(const Tensor& x) {
  eager_.recorder.host(HostClass::tensor_boundary);
  LeaveBackward* node = eager_.needs_node({&x}) ? &eager_.node<LeaveBackward>({&x}) : nullptr;
  Tensor result = aten::contiguous(eager_, x.detached());
  all_reduce(result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

struct TensorParallel::ColumnsBackward final : Node {
  ColumnsBackward(TensorParallel& ranks, bool gathers)
      : Node(HostClass::tensor_boundary_backward), owner(ranks), all(gathers) {}
  TensorParallel& owner;
  bool all;
  void backward(Eager&, Gradients& in, Gradients& out) override { out[0] = owner.columns(in[0], all); }
};

Tensor TensorParallel::columns(const Tensor& x, bool all) {
  const Tensor own = aten::contiguous(eager_, x.detached());
  Dims sizes = x.sizes;
  std::int64_t& width = sizes[sizes.rank() - 1];
  width = all ? width * ranks() : width / ranks();
  const Tensor whole = all ? all_gather(own, 0) : own;  // the parts lie one behind the other
  Tensor result = eager_.empty(sizes, x.type);
  eager_.recorder.op(Copy{all ? CopyKind::concatenate : CopyKind::permute, x.type, result.elements() / sizes.last(),
                          sizes.last(), all ? ranks() : 1},
                     {&whole}, {&result});
  return result;
}

Tensor TensorParallel::gather_columns(const Tensor& x) {
  eager_.recorder.host(HostClass::tensor_boundary);
  Tensor result = columns(x, true);
  if (eager_.needs_node({&x})) Eager::attach(result, eager_.node<ColumnsBackward>({&x}, *this, false));
  return result;
}

Tensor TensorParallel::own_columns(const Tensor& x) {
  eager_.recorder.host(HostClass::tensor_boundary);
  Tensor result = columns(x, false);
  if (eager_.needs_node({&x})) Eager::attach(result, eager_.node<ColumnsBackward>({&x}, *this, true));
  return result;
}

void TensorParallel::all_reduce(const Tensor& x) { group_.run(CollectiveKind::all_reduce, x.type, x.bytes(), x, x); }

Tensor TensorParallel::all_gather(const Tensor& part, int along) {
  Dims sizes = part.sizes;
  sizes[along] *= ranks();
  Tensor whole = eager_.empty(sizes, part.type);
  group_.run(CollectiveKind::all_gather, part.type, whole.bytes(), part, whole);
  return whole;
}

Tensor TensorParallel::reduce_scatter(const Tensor& whole, int along) {
  Dims sizes = whole.sizes;
  sizes[along] /= ranks();
  Tensor part = eager_.empty(sizes, whole.type);
  group_.run(CollectiveKind::reduce_scatter, whole.type, whole.bytes(), whole, part);
  return part;
}

}  // namespace ridgeline::parallel
