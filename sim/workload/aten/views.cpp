#include "sim/workload/aten/views.h"

#include <algorithm>
#include <utility>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

/// Of view and unsafe_view: the gradient in the old sizes.
struct ViewBackward final : Node {
  ViewBackward() : Node(HostClass::view_backward) {}
  Dims sizes;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    if (needs_copy(in[0], sizes)) eager.recorder.host(HostClass::view_backward_copy);
    out[0] = reshape(eager, in[0], sizes);
  }
};

struct TransposeBackward final : Node {
  TransposeBackward() : Node(HostClass::view_backward) {}
  int a = 0, b = 1;
  void backward(Eager& eager, Gradients& in, Gradients& out) override { out[0] = transpose(eager, in[0], a, b); }
};

/// Of operations that hand the gradient on: clone, and expand, whose sum the engine takes.
struct PassBackward final : Node {
  PassBackward() : Node(HostClass::view_backward) {}
  void backward(Eager&, Gradients& in, Gradients& out) override { out[0] = std::move(in[0]); }
};

template <int Parts>
struct SplitBackward final : Node {
  SplitBackward() : Node(HostClass::split_backward) {}
  Dims sizes;
  DType type = DType::fp32;
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    for (std::size_t i = 0; i < Parts; ++i)
      if (!in[i].defined()) in[i] = full(eager, output_sizes, type);
    out[0] = eager.empty(sizes, type);
    const bool strided =
        std::any_of(in.begin(), in.begin() + Parts, [](const Tensor& part) { return !part.contiguous(); });
    const Copy op{strided ? CopyKind::concatenate_strided : CopyKind::concatenate, type, sizes.product() / sizes.last(),
                  sizes.last() / Parts, Parts};
    if constexpr (Parts == 2) eager.recorder.op(op, {&in[0], &in[1]}, {&out[0]});
    else eager.recorder.op(op, {&in[0], &in[1], &in[2]}, {&out[0]});
  }
};

/// Of a part of a tensor: zeros of the whole, then the gradient copied into its place.
struct PartBackward final : Node {
  PartBackward() : Node(HostClass::pointwise_backward) {}
  Dims sizes;
  bool whole_rows = false;  ///< the part lies in one piece
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = full(eager, sizes, in[0].type);
    const std::int64_t cols = in[0].sizes.last();
    const CopyKind kind = whole_rows && in[0].contiguous() ? CopyKind::contiguous : CopyKind::permute;
    eager.recorder.op(Copy{kind, in[0].type, in[0].elements() / cols, cols, 1}, {&in[0]}, {&out[0]});
  }
};

struct ConcatenateBackward final : Node {
  ConcatenateBackward() : Node(HostClass::view_backward) {}
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    for (int i = 0; i < 2; ++i)
      if (needs(i)) out[static_cast<std::size_t>(i)] = half(eager, in[0]);
  }
};

Tensor shown(const Tensor& x, const Dims& sizes, const Dims& strides) {
  Tensor result = x.detached();
  result.sizes = sizes;
  result.strides = strides;
  result.view = true;
  return result;
}

template <typename NodeType>
NodeType* node_for(Eager& eager, const Tensor& x) {
  return eager.needs_node({&x}) ? &eager.node<NodeType>({&x}) : nullptr;
}

Tensor part_of(Eager& eager, const Tensor& x, const Dims& sizes, const Dims& strides) {
  Tensor result = shown(x, sizes, strides);
  if (PartBackward* node = node_for<PartBackward>(eager, x)) {
    node->sizes = x.sizes;
    node->whole_rows = result.contiguous();
    Eager::attach(result, *node);
  }
  return result;
}

/// What a copy into contiguous order moves: whole rows as long as the innermost dimension stays innermost.
CopyKind kind_of_copy(const Tensor& x) {
  if (x.contiguous()) return CopyKind::contiguous;
  return x.sizes.rank() > 0 && (x.strides.last() == 1 || x.sizes.last() == 1) ? CopyKind::permute : CopyKind::transpose;
}

}  // namespace

bool needs_copy(const Tensor& x, const Dims& sizes) {
  Dims strides;
  return !view_strides(x.sizes, x.strides, sizes, strides);
}

Tensor view(Eager& eager, const Tensor& x, const Dims& sizes) {
  Dims strides;
  view_strides(x.sizes, x.strides, sizes, strides);
  Tensor result = shown(x, sizes, strides);
  if (ViewBackward* node = node_for<ViewBackward>(eager, x)) {
    node->sizes = x.sizes;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor unsafe_view(Eager& eager, const Tensor& x, const Dims& sizes) {
  Tensor result = view(eager, x, sizes);
  result.view = x.view;
  return result;
}

Tensor reshape(Eager& eager, const Tensor& x, const Dims& sizes) {
  if (!needs_copy(x, sizes)) return view(eager, x, sizes);
  return unsafe_view(eager, contiguous(eager, x), sizes);
}

Tensor contiguous(Eager& eager, const Tensor& x) {
  if (x.contiguous()) return x;
  PassBackward* node = node_for<PassBackward>(eager, x);
  Tensor result = eager.empty(x.sizes, x.type);
  const std::int64_t cols = x.sizes.last();
  eager.recorder.op(Copy{kind_of_copy(x), x.type, x.elements() / cols, cols, 1}, {&x}, {&result});
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor transpose(Eager& eager, const Tensor& x, int a, int b) {
  Tensor result = shown(x, x.sizes, x.strides);
  std::swap(result.sizes[a], result.sizes[b]);
  std::swap(result.strides[a], result.strides[b]);
  if (TransposeBackward* node = node_for<TransposeBackward>(eager, x)) {
    node->a = a;
    node->b = b;
    Eager::attach(result, *node);
  }
  return result;
}

Tensor t(Eager& eager, const Tensor& x) { return transpose(eager, x, 0, 1); }

Tensor expand(Eager& eager, const Tensor& x, const Dims& sizes) {
  Dims strides = sizes;
  for (int i = 0; i < sizes.rank(); ++i) {
    const int from = i - (sizes.rank() - x.sizes.rank());
    strides[i] = from < 0 || (x.sizes[from] == 1 && sizes[i] != 1) ? 0 : x.strides[from];
  }
  Tensor result = shown(x, sizes, strides);
  if (PassBackward* node = node_for<PassBackward>(eager, x)) Eager::attach(result, *node);
  return result;
}

template <int Parts>
std::array<Tensor, Parts> split_last(Eager& eager, const Tensor& x) {
  Dims sizes = x.sizes;
  sizes[x.sizes.rank() - 1] /= Parts;
  std::array<Tensor, Parts> parts;
  for (Tensor& part : parts) part = shown(x, sizes, x.strides);
  if (auto* node = node_for<SplitBackward<Parts>>(eager, x)) {
    node->sizes = x.sizes;
    node->type = x.type;
    for (int i = 0; i < Parts; ++i) Eager::attach(parts[static_cast<std::size_t>(i)], *node, i);
  }
  return parts;
}
template std::array<Tensor, 2> split_last<2>(Eager&, const Tensor&);
template std::array<Tensor, 3> split_last<3>(Eager&, const Tensor&);

Tensor select_first(Eager& eager, const Tensor& x) {
  Dims sizes{x.sizes[0]}, strides{x.strides[0]};
  for (int i = 2; i < x.sizes.rank(); ++i) {
    sizes.push_back(x.sizes[i]);
    strides.push_back(x.strides[i]);
  }
  return part_of(eager, x, sizes, strides);
}

Tensor half(Eager& eager, const Tensor& x) {
  Dims sizes = x.sizes;
  sizes[x.sizes.rank() - 1] /= 2;
  return part_of(eager, x, sizes, x.strides);
}

Tensor unsqueeze(Eager& eager, const Tensor& x, int dimension) {
  Dims sizes;
  for (int i = 0; i <= x.sizes.rank(); ++i) {
    if (i == dimension) sizes.push_back(1);
    if (i < x.sizes.rank()) sizes.push_back(x.sizes[i]);
  }
  return view(eager, x, sizes);
}

Tensor concatenate(Eager& eager, const Tensor& a, const Tensor& b) {
  ConcatenateBackward* node = eager.needs_node({&a, &b}) ? &eager.node<ConcatenateBackward>({&a, &b}) : nullptr;
  Dims sizes = a.sizes;
  sizes[sizes.rank() - 1] += b.sizes.last();
  Tensor result = eager.empty(sizes, a.type);
  eager.recorder.op(Copy{CopyKind::concatenate, a.type, result.elements() / sizes.last(), sizes.last() / 2, 2},
                    {&a, &b}, {&result});
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

}  // namespace ridgeline::eager::aten
