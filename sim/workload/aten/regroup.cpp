#include "sim/workload/aten/regroup.h"

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

Tensor clone(Eager& eager, const Tensor& x) {
  const Tensor result = eager.empty(x.sizes, x.type);
  const std::int64_t cols = x.sizes.last();
  eager.recorder.op(Copy{x.contiguous() ? CopyKind::contiguous : CopyKind::permute, x.type,
                         x.contiguous() ? 1 : x.elements() / cols, x.contiguous() ? x.elements() : cols, 1},
                    {&x}, {&result});
  return result;
}

struct CopiedBackward final : Node {
  CopiedBackward() : Node(HostClass::pointwise_backward) {}
  void backward(Eager& eager, Gradients& in, Gradients& out) override { out[0] = clone(eager, in[0]); }
};

Tensor roll_twice(Eager& eager, const Tensor& x) {
  const Tensor once = eager.empty(x.sizes, x.type);
  pointwise(eager, PointwiseFunction::roll, {&x}, once);
  Tensor result = eager.empty(x.sizes, x.type);
  pointwise(eager, PointwiseFunction::roll, {&once}, result);
  return result;
}

struct RolledBackward final : Node {
  RolledBackward() : Node(HostClass::pointwise_backward) {}
  void backward(Eager& eager, Gradients& in, Gradients& out) override { out[0] = roll_twice(eager, in[0]); }
};

struct RepeatedBackward final : Node {
  RepeatedBackward() : Node(HostClass::pointwise_backward) {}
  Dims sizes;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = eager.empty(sizes, in[0].type);
    const std::int64_t cols = sizes.product();
    const Tensor gradient = contiguous(eager, in[0]);
    eager.recorder.op(Reduction{ReductionKind::sum_rows, in[0].type, in[0].elements() / cols, cols}, {&gradient},
                      {&out[0]});
  }
};

struct GatheredBackward final : Node {
  GatheredBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor index, self;  ///< the whole operand, for its sizes
  Dims sizes;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor places = index.unpack(eager), whole = self.unpack(eager);
    out[0] = full(eager, sizes, in[0].type);
    Tensor reached = out[0];  // an element for each index
    reached.sizes = in[0].sizes;
    pointwise(eager, PointwiseFunction::scatter_add, {&places, &in[0]}, reached);
  }
  void release() override {
    index.release();
    self.release();
  }
};

struct NeighboursBackward final : Node {
  NeighboursBackward() : Node(HostClass::pointwise_backward) {}
  Dims sizes;  ///< [batch, side, side, width]
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    // Each part goes back through two slices, columns before rows, into zeros of the whole; the parts are added up.
    const Dims half{sizes[0], sizes[1] / 2, sizes[2], sizes[3]};
    const std::int64_t rows = sizes.product() / sizes[3] / 4;
    for (int part = 0; part < 4; ++part) {
      const Tensor columns = full(eager, half, in[0].type);
      eager.recorder.op(Copy{CopyKind::permute, in[0].type, rows, sizes[3], 1}, {&in[0]}, {&columns});
      const Tensor whole = full(eager, sizes, in[0].type);
      eager.recorder.op(Copy{CopyKind::permute, in[0].type, 2 * rows, sizes[3], 1}, {&columns}, {&whole});
      if (part == 0) out[0] = whole;
      else add_in_place(eager, out[0], whole);
    }
    out[0] = view(eager, out[0], {sizes[0], sizes[1] * sizes[2], sizes[3]});
  }
};

template <typename NodeType>
void attach(Eager& eager, const Tensor& x, Tensor& result) {
  if (eager.needs_node({&x})) Eager::attach(result, eager.node<NodeType>({&x}));
}

}  // namespace

Tensor copied(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::contiguous);
  Tensor result = clone(eager, x);
  attach<CopiedBackward>(eager, x, result);
  return result;
}

Tensor rolled(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 2);
  Tensor result = roll_twice(eager, x);
  attach<RolledBackward>(eager, x, result);
  return result;
}

Tensor repeated_first(Eager& eager, const Tensor& x, std::int64_t times) {
  Tensor result = eager.empty({x.sizes[0] * times, x.sizes[1], x.sizes[2]}, x.type);
  eager.recorder.op(Copy{CopyKind::permute, x.type, result.elements() / x.sizes[2], x.sizes[2], 1}, {&x}, {&result});
  if (eager.needs_node({&x})) {
    auto& node = eager.node<RepeatedBackward>({&x});
    node.sizes = x.sizes;
    Eager::attach(result, node);
  }
  return result;
}

Tensor gathered_last(Eager& eager, const Tensor& x, const Tensor& index, const Dims& sizes) {
  GatheredBackward* node = eager.needs_node({&x}) ? &eager.node<GatheredBackward>({&x}) : nullptr;
  if (node != nullptr) {
    node->index = eager.save(index);
    node->self = eager.save(x);
    node->sizes = x.sizes;
  }
  Tensor result = eager.empty(sizes, x.type);
  pointwise(eager, PointwiseFunction::gather, {&index, &x}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor aligned_rows(Eager& eager, const Tensor& x, std::int64_t count) {
  const std::int64_t cols = x.sizes.last(), wide = ceil_div(cols, count) * count;
  if (wide == cols) return x;
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = wide;
  Tensor padded = full(eager, sizes, x.type);
  eager.recorder.op(Copy{CopyKind::permute, x.type, x.elements() / cols, cols, 1}, {&x}, {&padded});
  Tensor result = padded;
  if (eager.needs_node({&x})) Eager::attach(result, eager.node<CopiedBackward>({&x}));
  return slice_last(eager, result, cols);
}

Tensor neighbours_joined(Eager& eager, const Tensor& x, std::int64_t side) {
  const std::int64_t batch = x.sizes[0], width = x.sizes[2], patches = side * side / 4;
  Tensor result = eager.empty({batch, patches, 4 * width}, x.type);
  eager.recorder.op(Copy{CopyKind::permute, x.type, 4 * batch * patches, width, 1}, {&x}, {&result});
  if (eager.needs_node({&x})) {
    auto& node = eager.node<NeighboursBackward>({&x});
    node.sizes = {batch, side, side, width};
    Eager::attach(result, node);
  }
  return result;
}

}  // namespace ridgeline::eager::aten
