#include "sim/workload/aten/views.h"

#include <utility>

#include "sim/workload/eager/function_node.h"
#include "sim/workload/walked_dimensions.h"

namespace ridgeline::eager::aten {
namespace {

/// Of operations that hand the gradient on: clone, and expand, whose sum the engine takes.
constexpr auto kHandOn = [](auto& pass) { pass.out[0] = std::move(pass.in[0]); };

Tensor shown(const Tensor& x, const Dims& sizes, const Dims& strides) {
  Tensor result = x.detached();
  result.sizes = sizes;
  result.strides = strides;
  result.view = true;
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
  attach(result, node_for(eager, {&x}, HostClass::view_backward, [sizes = x.sizes](auto& pass) {
           if (needs_copy(pass.in[0], sizes)) pass.eager.recorder.host(HostClass::view_backward_copy);
           pass.out[0] = reshape(pass.eager, pass.in[0], sizes);
         }));
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
  Node* const node = node_for(eager, {&x}, HostClass::view_backward, kHandOn);
  Tensor result = eager.empty(x.sizes, x.type);
  const std::int64_t cols = x.sizes.last();
  Copy copy{kind_of_copy(x), x.type, x.elements() / cols, cols, 1};
  copy.walked = walked_dimensions(x.sizes.list(), x.strides.list());
  const bool by_rows = copy.kind == CopyKind::permute;
  if (copy.walked == (by_rows ? halves_of_rows(copy.rows, cols) : transposed_matrix(copy.rows, cols))) copy.walked = {};
  eager.recorder.op(copy, {&x}, {&result});
  attach(result, node);
  return result;
}

Tensor cloned(Eager& eager, const Tensor& x) {
  Node* const node = node_for(eager, {&x}, HostClass::view_backward, kHandOn);
  Tensor result = eager.empty_like(x);
  const std::int64_t cols = x.sizes.last();
  eager.recorder.op(Copy{CopyKind::contiguous, x.type, x.elements() / cols, cols, 1}, {&x}, {&result});
  attach(result, node);
  return result;
}

Tensor transpose(Eager& eager, const Tensor& x, int a, int b) {
  Tensor result = shown(x, x.sizes, x.strides);
  std::swap(result.sizes[a], result.sizes[b]);
  std::swap(result.strides[a], result.strides[b]);
  attach(result, node_for(eager, {&x}, HostClass::view_backward,
                          [a, b](auto& pass) { pass.out[0] = transpose(pass.eager, pass.in[0], a, b); }));
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
  attach(result, node_for(eager, {&x}, HostClass::view_backward, kHandOn));
  return result;
}

Tensor unsqueeze(Eager& eager, const Tensor& x, int dimension) {
  Dims sizes;
  for (int i = 0; i <= x.sizes.rank(); ++i) {
    if (i == dimension) sizes.push_back(1);
    if (i < x.sizes.rank()) sizes.push_back(x.sizes[i]);
  }
  return view(eager, x, sizes);
}

}  // namespace ridgeline::eager::aten
