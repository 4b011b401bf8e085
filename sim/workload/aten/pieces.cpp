#include "sim/workload/aten/pieces.h"

#include <algorithm>
#include <span>

#include "sim/units/bits_below.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/function_node.h"

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

/// Zeros of the whole, then the gradient copied into its place, which is one piece where rows are whole.
Tensor put_back(Eager& eager, const Tensor& gradient, const Dims& sizes, bool whole_rows) {
  Tensor whole = full(eager, sizes, gradient.type);
  Copy copy = copy_of(gradient, CopyKind::contiguous);
  if (!whole_rows) copy.kind = CopyKind::permute;
  eager.recorder.op(copy, {&gradient}, {&whole});
  return whole;
}

/// Gradients of parts of the last dimension, joined; those that are missing are zeros.
void join_widths(Eager& eager, const Dims& sizes, const Dims& widths, DType type, Gradients& in, Gradients& out) {
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
  const Tensor* const operands[]{&in[0], &in[1], &in[2]};
  const Tensor* const results[]{&out[0]};
  eager.recorder.op(op, std::span(operands, static_cast<std::size_t>(parts)), results);
}

/// Rows added up where an index says, which is sorted first.
void add_rows(Eager& eager, const Tensor& gradient, const Tensor& places, const Dims& sizes, Tensor& into) {
  into = full(eager, sizes, gradient.type);
  const Tensor sorted = eager.empty(places.sizes, DType::int64), order = eager.empty(places.sizes, DType::int64);
  // Negative indices wrap around; each is scaled to a place and back before the sort (Indexing.cu).
  for (int pass = 0; pass < 3; ++pass) pointwise(eager, PointwiseFunction::scale, {&places}, sorted);
  eager.recorder.op(Sort{DType::int64, 1, places.elements(), 0, bits_below(sizes[0])}, {&places}, {&sorted, &order});
  const Embedding added{.backward = true,
                        .type = gradient.type,
                        .tokens = places.elements(),
                        .vocabulary = sizes[0],
                        .hidden = sizes.product() / sizes[0],
                        .accumulates = true};
  eager.recorder.op(added, {&gradient, &places}, {&into});
}

void spread_middle(Eager& eager, const Tensor& gradient, const Dims& sizes, bool divides, Tensor& into) {
  const Tensor wide = view(eager, gradient, {sizes[0], 1, sizes[2]});
  into = expand(eager, wide, sizes);
  if (!divides) return;
  const Tensor spread = into;
  into = eager.empty(sizes, spread.type);
  pointwise(eager, PointwiseFunction::divide, {&spread}, into);
}

Tensor over_middle(Eager& eager, const Tensor& x, bool divides) {
  Node* const node = node_for(eager, {&x}, HostClass::view_backward, [sizes = x.sizes, divides](auto& pass) {
    spread_middle(pass.eager, pass.in[0], sizes, divides, pass.out[0]);
  });
  Tensor result = eager.empty({x.sizes[0], x.sizes[2]}, x.type);
  eager.recorder.op(Reduction{ReductionKind::sum_rows, x.type, x.sizes[0] * x.sizes[1], x.sizes[2]}, {&x}, {&result});
  attach(result, node);
  return result;
}

Tensor piece_of(Eager& eager, const Tensor& x, const Dims& sizes, const Dims& strides) {
  Tensor result = window_of(x, sizes, strides);
  attach(result, node_for(eager, {&x}, HostClass::pointwise_backward,
                          [sizes = x.sizes, whole_rows = result.contiguous()](auto& pass) {
                            pass.out[0] = put_back(pass.eager, pass.in[0], sizes, whole_rows);
                          }));
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
  Node* const node = node_for(eager, {&x}, HostClass::split_backward,
                              [sizes = x.sizes, widths = Dims(widths), type = x.type](auto& pass) {
                                join_widths(pass.eager, sizes, widths, type, pass.in, pass.out);
                              });
  const std::int64_t* width = widths.begin();
  int number = 0;
  for (Tensor* part : parts) {
    Dims sizes = x.sizes;
    sizes[sizes.rank() - 1] = *width++;
    *part = window_of(x, sizes, x.strides);
    attach(*part, node, number++);
  }
}

template <int Parts>
std::array<Tensor, Parts> split_last(Eager& eager, const Tensor& x) {
  const std::int64_t width = x.sizes.last() / Parts;
  std::array<Tensor, Parts> parts;
  if constexpr (Parts == 2) split_last(eager, x, {width, width}, {&parts[0], &parts[1]});
  else split_last(eager, x, {width, width, width}, {&parts[0], &parts[1], &parts[2]});
  return parts;
}
template std::array<Tensor, 2> split_last<2>(Eager&, const Tensor&);
template std::array<Tensor, 3> split_last<3>(Eager&, const Tensor&);

Tensor select_first(Eager& eager, const Tensor& x) { return select(eager, x, 1); }
Tensor half(Eager& eager, const Tensor& x) { return slice_last(eager, x, x.sizes.last() / 2); }

Tensor join(Eager& eager, std::initializer_list<const Tensor*> parts, int dimension) {
  const Tensor& first = **parts.begin();
  const int along = dimension < 0 ? first.sizes.rank() - 1 : dimension;
  Dims sizes = first.sizes, widths;
  sizes[along] = 0;
  bool strided = false;
  for (const Tensor* part : parts) {
    sizes[along] += part->sizes[along];
    widths.push_back(part->sizes[along]);
    strided = strided || !part->contiguous();
  }
  // Views of the gradient are handed on.
  Node* const node = node_for(eager, parts, HostClass::view_backward, [along, widths](auto& pass) {
    for (int i = 0; i < pass.node.edge_count; ++i) {
      if (!pass.node.needs(i)) continue;
      Dims of_part = pass.in[0].sizes;
      of_part[along] = widths[i];
      pass.out[static_cast<std::size_t>(i)] = window_of(pass.in[0], of_part, pass.in[0].strides);
    }
  });
  Tensor result = eager.empty(sizes, first.type);
  std::int64_t cols = 1;
  for (int i = along; i < sizes.rank(); ++i) cols *= sizes[i];
  const auto count = static_cast<std::int64_t>(parts.size());
  eager.recorder.op(Copy{strided ? CopyKind::concatenate_strided : CopyKind::concatenate, first.type,
                         result.elements() / cols, cols / count, count},
                    parts, {&result});
  attach(result, node);
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
  attach(result, node_for(eager, {&x}, HostClass::view_backward,
                          [inverse](auto& pass) { pass.out[0] = permute(pass.eager, pass.in[0], inverse); }));
  return result;
}

Tensor rows_at(Eager& eager, const Tensor& x, const Tensor& index, const Dims& sizes) {
  auto* const node = node_for<1>(eager, {&x}, HostClass::pointwise_backward, [sizes = x.sizes](auto& pass) {
    add_rows(pass.eager, pass.in[0], pass.saved[0], sizes, pass.out[0]);
  });
  if (node != nullptr) node->saved[0] = eager.save(index);
  Tensor result = eager.empty(sizes, x.type);
  pointwise(eager, PointwiseFunction::index, {&x, &index}, result);
  attach(result, node);
  return result;
}

Tensor sum_middle(Eager& eager, const Tensor& x) { return over_middle(eager, x, false); }
Tensor mean_middle(Eager& eager, const Tensor& x) { return over_middle(eager, x, true); }

}  // namespace ridgeline::eager::aten
