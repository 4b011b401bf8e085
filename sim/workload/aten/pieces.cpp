#include "sim/workload/aten/pieces.h"

#include <algorithm>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

Tensor window_of(const Tensor& x, const Dims& sizes, const Dims& strides) {
  Tensor result = x.detached();
  result.sizes = sizes;
  result.strides = strides;
  result.view = true;
  return result;
}

/// What a copy of `x` into (or out of) contiguous order moves.
Copy copy_of(const Tensor& x, CopyKind dense) {
  const std::int64_t cols = x.sizes.rank() > 0 ? x.sizes.last() : 1;
  return {x.contiguous() ? dense : CopyKind::permute, x.type, x.elements() / std::max<std::int64_t>(cols, 1), cols, 1};
}

struct PieceBackward final : Node {
  PieceBackward() : Node(HostClass::pointwise_backward) {}
  Dims sizes;
  bool whole_rows = false;  ///< the part lies in one piece
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = full(eager, sizes, in[0].type);
    Copy copy = copy_of(in[0], CopyKind::contiguous);
    if (!whole_rows) copy.kind = CopyKind::permute;
    eager.recorder.op(copy, {&in[0]}, {&out[0]});
  }
};

struct WidthsBackward final : Node {
  WidthsBackward() : Node(HostClass::split_backward) {}
  Dims sizes, widths;
  DType type = DType::fp32;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const int parts = widths.rank();
    bool strided = false;
    for (int i = 0; i < parts; ++i) {
      Tensor& part = in[static_cast<std::size_t>(i)];
      Dims of_part = sizes;
      of_part[sizes.rank() - 1] = widths[i];
      if (!part.defined()) part = full(eager, of_part, type);
      strided = strided || !part.contiguous();
    }
    out[0] = eager.empty(sizes, type);
    const Copy op{strided ? CopyKind::concatenate_strided : CopyKind::concatenate, type, sizes.product() / sizes.last(),
                  sizes.last() / parts, parts};
    if (parts == 2) eager.recorder.op(op, {&in[0], &in[1]}, {&out[0]});
    else eager.recorder.op(op, {&in[0], &in[1], &in[2]}, {&out[0]});
  }
};

struct JoinBackward final : Node {
  JoinBackward() : Node(HostClass::view_backward) {}
  int dimension = 0;
  Dims sizes;
  void backward(Eager&, Gradients& in, Gradients& out) override {
    for (int i = 0; i < edge_count; ++i) {
      if (!needs(i)) continue;
      Dims of_part = in[0].sizes;
      of_part[dimension] = sizes[i];
      out[static_cast<std::size_t>(i)] = window_of(in[0], of_part, in[0].strides);
    }
  }
};

struct PermuteBackward final : Node {
  PermuteBackward() : Node(HostClass::view_backward) {}
  Dims inverse;
  void backward(Eager& eager, Gradients& in, Gradients& out) override { out[0] = permute(eager, in[0], inverse); }
};

struct RowsBackward final : Node {
  RowsBackward() : Node(HostClass::pointwise_backward) {}
  SavedTensor index;
  Dims sizes;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor places = index.unpack(eager);
    out[0] = full(eager, sizes, in[0].type);
    const Tensor sorted = eager.empty(places.sizes, DType::int64), order = eager.empty(places.sizes, DType::int64);
    eager.recorder.op(Sort{DType::int64, 1, places.elements(), 0, 0}, {&places}, {&sorted, &order});
    const Embedding added{.backward = true,
                          .type = in[0].type,
                          .tokens = places.elements(),
                          .vocabulary = sizes[0],
                          .hidden = sizes.product() / sizes[0],
                          .accumulates = true};
    eager.recorder.op(added, {&in[0], &places}, {&out[0]});
  }
  void release() override { index.release(); }
};

struct MiddleBackward final : Node {
  MiddleBackward() : Node(HostClass::view_backward) {}
  Dims sizes;
  bool divides = false;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor wide = view(eager, in[0], {sizes[0], 1, sizes[2]});
    out[0] = expand(eager, wide, sizes);
    if (!divides) return;
    const Tensor spread = out[0];
    out[0] = eager.empty(sizes, spread.type);
    pointwise(eager, PointwiseFunction::divide, {&spread}, out[0]);
  }
};

Tensor over_middle(Eager& eager, const Tensor& x, bool divides) {
  MiddleBackward* node = eager.needs_node({&x}) ? &eager.node<MiddleBackward>({&x}) : nullptr;
  Tensor result = eager.empty({x.sizes[0], x.sizes[2]}, x.type);
  eager.recorder.op(Reduction{ReductionKind::sum_rows, x.type, x.sizes[0] * x.sizes[1], x.sizes[2]}, {&x}, {&result});
  if (node != nullptr) {
    node->sizes = x.sizes;
    node->divides = divides;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor piece_of(Eager& eager, const Tensor& x, const Dims& sizes, const Dims& strides) {
  Tensor result = window_of(x, sizes, strides);
  if (eager.needs_node({&x})) {
    auto& node = eager.node<PieceBackward>({&x});
    node.sizes = x.sizes;
    node.whole_rows = result.contiguous();
    Eager::attach(result, node);
  }
  return result;
}

}  // namespace

Tensor slice_last(Eager& eager, const Tensor& x, std::int64_t width) {
  return slice(eager, x, x.sizes.rank() - 1, width);
}

Tensor slice(Eager& eager, const Tensor& x, int dimension, std::int64_t size) {
  Dims sizes = x.sizes;
  sizes[dimension] = size;
  return piece_of(eager, x, sizes, x.strides);
}

Tensor every_second(Eager& eager, const Tensor& x, int first) {
  Dims sizes = x.sizes, strides = x.strides;
  const int last = sizes.rank() - 1;
  sizes[last] = (sizes[last] + 1 - first) / 2;
  strides[last] *= 2;
  return piece_of(eager, x, sizes, strides);
}

Tensor select(Eager& eager, const Tensor& x, int dimension) {
  Dims sizes, strides;
  for (int i = 0; i < x.sizes.rank(); ++i) {
    if (i == dimension) continue;
    sizes.push_back(x.sizes[i]);
    strides.push_back(x.strides[i]);
  }
  return piece_of(eager, x, sizes, strides);
}

void split_last(Eager& eager, const Tensor& x, std::initializer_list<std::int64_t> widths,
                std::initializer_list<Tensor*> parts) {
  WidthsBackward* node = eager.needs_node({&x}) ? &eager.node<WidthsBackward>({&x}) : nullptr;
  if (node != nullptr) {
    node->sizes = x.sizes;
    node->widths = Dims(widths);
    node->type = x.type;
  }
  const std::int64_t* width = widths.begin();
  int number = 0;
  for (Tensor* part : parts) {
    Dims sizes = x.sizes;
    sizes[sizes.rank() - 1] = *width++;
    *part = window_of(x, sizes, x.strides);
    if (node != nullptr) Eager::attach(*part, *node, number++);
  }
}

Tensor join(Eager& eager, std::initializer_list<const Tensor*> parts, int dimension) {
  const Tensor* const* first = parts.begin();
  const int count = static_cast<int>(parts.size());
  const Tensor &a = *first[0], &b = *first[1];
  JoinBackward* node = nullptr;
  if (count == 2 && eager.needs_node({&a, &b})) node = &eager.node<JoinBackward>({&a, &b});
  if (count == 3 && eager.needs_node({&a, &b, first[2]})) node = &eager.node<JoinBackward>({&a, &b, first[2]});
  const int along = dimension < 0 ? a.sizes.rank() - 1 : dimension;
  Dims sizes = a.sizes;
  sizes[along] = 0;
  bool strided = false;
  for (const Tensor* part : parts) {
    sizes[along] += part->sizes[along];
    strided = strided || !part->contiguous();
    if (node != nullptr) node->sizes.push_back(part->sizes[along]);
  }
  Tensor result = eager.empty(sizes, a.type);
  std::int64_t cols = 1;
  for (int i = along; i < sizes.rank(); ++i) cols *= sizes[i];
  const Copy op{strided ? CopyKind::concatenate_strided : CopyKind::concatenate, a.type, result.elements() / cols,
                cols / count, count};
  if (count == 2) eager.recorder.op(op, {&a, &b}, {&result});
  else eager.recorder.op(op, {&a, &b, first[2]}, {&result});
  if (node != nullptr) {
    node->dimension = along;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor permute(Eager& eager, const Tensor& x, const Dims& order) {
  Dims sizes = order, strides = order, inverse = order;
  for (int i = 0; i < order.rank(); ++i) {
    sizes[i] = x.sizes[static_cast<int>(order[i])];
    strides[i] = x.strides[static_cast<int>(order[i])];
    inverse[static_cast<int>(order[i])] = i;
  }
  Tensor result = window_of(x, sizes, strides);
  if (eager.needs_node({&x})) {
    auto& node = eager.node<PermuteBackward>({&x});
    node.inverse = inverse;
    Eager::attach(result, node);
  }
  return result;
}

Tensor rows_at(Eager& eager, const Tensor& x, const Tensor& index, const Dims& sizes) {
  RowsBackward* node = eager.needs_node({&x}) ? &eager.node<RowsBackward>({&x}) : nullptr;
  if (node != nullptr) {
    node->index = eager.save(index);
    node->sizes = x.sizes;
  }
  Tensor result = eager.empty(sizes, x.type);
  pointwise(eager, PointwiseFunction::index, {&x, &index}, result);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor sum_middle(Eager& eager, const Tensor& x) { return over_middle(eager, x, false); }
Tensor mean_middle(Eager& eager, const Tensor& x) { return over_middle(eager, x, true); }

}  // namespace ridgeline::eager::aten
