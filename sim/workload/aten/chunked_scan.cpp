// Scans in chunks of tokens: Mamba-2's and the gated delta rule's, whose chunks are matmuls.
#include <utility>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/scan_kernels.h"
#include "sim/workload/aten/state_space.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::eager::aten {
namespace {

using scan::chunks_of;
using scan::convolved;
using scan::convolved_backward;
using scan::kernel;
using scan::matmuls;

constexpr std::int64_t kDeltaChunk = 64;  // tokens of a chunk of chunk_gated_delta_rule

struct Mamba2Shape {
  std::int64_t batch, length, heads, width, groups, states, chunk, hidden;
  [[nodiscard]] std::int64_t inner() const { return heads * width; }
  [[nodiscard]] std::int64_t mixed() const { return inner() + 2 * groups * states; }  ///< channels of the convolution
  [[nodiscard]] std::int64_t chunks() const { return batch * chunks_of(length, chunk); }
};

/// Sizes of what both passes compute: the convolution, the decay of each token, states of chunks and products of C and
/// B.
struct Mamba2Chunks {
  Tensor mixed, decay, states, products;
};
Mamba2Chunks chunks_of_scan(Eager& eager, const Tensor& projected, const Tensor& filters, const Mamba2Shape& s) {
  Tensor channels = projected;
  channels.sizes = {s.batch, s.mixed(), s.length};
  Mamba2Chunks made;
  made.mixed = convolved(eager, channels, filters, eager.empty(channels.sizes, channels.type));
  Tensor steps = projected;
  steps.sizes = {s.batch, s.length, s.heads};
  made.decay = eager.empty({2, s.batch, s.heads, s.length}, DType::fp32);
  kernel(eager, "chunk_cumsum_fwd", s.batch * s.heads, s.length, 20, {&steps}, {&made.decay});
  made.states = eager.empty({s.chunks(), s.heads, s.width, s.states}, DType::fp32);
  matmuls(eager, projected.type, s.chunks() * s.heads, s.width, s.states, s.chunk, {&made.mixed, &made.decay},
          made.states);
  kernel(eager, "state_passing_fwd", s.chunks() * s.heads, s.width * s.states, 4, {&made.states, &made.decay},
         {&made.states});
  made.products = eager.empty({s.chunks(), s.groups, s.chunk, s.chunk}, DType::fp32);
  matmuls(eager, projected.type, s.chunks() * s.groups, s.chunk, s.chunk, s.states, {&made.mixed}, made.products);
  return made;
}

/// Gradients of a scan's operands, of which those before the convolution lie in `mixed`.
void scan_backward(Eager& at, const Mamba2Chunks& made, const Tensor& gradient, const Mamba2Shape& s,
                   const Tensor& mixed) {
  const DType type = gradient.type;
  const std::int64_t each = s.chunks() * s.heads, half = s.chunk / 2;
  const Tensor states = at.empty(made.states.sizes, DType::fp32), products = at.empty(made.products.sizes, DType::fp32),
               decay = at.empty(made.decay.sizes, DType::fp32);
  matmuls(at, type, each, s.width, s.states, s.chunk, {&gradient, &made.mixed}, states);
  kernel(at, "state_passing_bwd", each, s.width * s.states, 8, {&states, &made.states, &made.decay}, {&states});
  matmuls(at, type, each, s.chunk, s.width, half + s.states, {&gradient, &made.products, &states}, mixed);
  for (int i = 0; i < 2; ++i)  // of B through the states, of C
    matmuls(at, type, each, s.chunk, s.states, s.width, {&gradient, &states, &made.mixed}, mixed);
  matmuls(at, type, each, half, s.chunk, s.width, {&gradient, &made.mixed}, products);
  for (int i = 0; i < 2; ++i)  // of B and C through their products
    matmuls(at, type, s.chunks() * s.groups, s.chunk, s.states, s.chunk, {&products, &made.mixed}, mixed);
  matmuls(at, type, each, half, s.chunk, s.width, {&gradient, &made.mixed, &made.products}, decay);
  kernel(at, "chunk_cumsum_bwd", s.batch * s.heads, s.length, 30, {&decay, &made.decay}, {&decay});
}

}  // namespace

Tensor mamba2_inner(Eager& eager, const Tensor& projected, const Mamba2Weights& w, const ScanSizes& sizes) {
  const Mamba2Shape s{projected.sizes[0], projected.sizes[1], sizes.heads, sizes.head_width,
                      sizes.groups,       sizes.states,       sizes.chunk, w.output.sizes[0]};
  const DType type = projected.type;
  const std::int64_t rows = s.batch * s.length;
  eager.recorder.host(HostClass::pointwise, 14);
  const Tensor &filters = w.convolution, &of_output = w.output;
  auto* node = node_for<
      4>(eager, {&projected, &filters, &of_output, &w.norm}, HostClass::pointwise_backward, [=](auto& pass) {
    Eager& at = pass.eager;
    const auto& [given, filter, from_output, scanned] = pass.saved;
    const Dims inner{s.batch, s.length, s.inner()};
    const Tensor normed = at.empty(inner, type), by_scan = at.empty(inner, type), before = at.empty(inner, type);
    pass.out[0] = at.empty(given.sizes, type);
    matmuls(at, type, 1, rows, s.inner(), s.hidden, {&pass.in[0], &from_output}, before);
    const Mamba2Chunks again = chunks_of_scan(at, given, filter, s);
    pass.out[3] = full(at, {s.inner()}, from_output.type);
    kernel(at, "layer_norm_bwd", rows, s.inner(), 40, {&scanned, &given, &before}, {&by_scan, &normed, &pass.out[0]});
    pass.out[2] = at.empty(from_output.sizes, from_output.type);
    matmuls(at, type, 1, s.hidden, s.inner(), rows, {&pass.in[0], &normed}, pass.out[2]);
    const Tensor mixed = at.empty({s.batch, s.mixed(), s.length}, type);
    scan_backward(at, again, by_scan, s, mixed);
    pass.out[1] = full(at, filter.sizes, filter.type);
    convolved_backward(at, again.mixed, filter, mixed, pass.out[0]);
  });
  Tensor result = eager.empty({s.batch, s.length, s.hidden}, type);
  const Tensor scanned = eager.empty({s.batch, s.length, s.inner()}, type);
  {
    const Mamba2Chunks made = chunks_of_scan(eager, projected, filters, s);
    matmuls(eager, type, s.chunks() * s.heads, s.chunk, s.width, s.chunk / 2 + s.states,
            {&made.mixed, &made.products, &made.states}, scanned);
    const Tensor normed = eager.empty(scanned.sizes, type);
    kernel(eager, "layer_norm_fwd", rows, s.inner(), 24, {&scanned, &projected}, {&normed});
    matmuls(eager, type, 1, rows, s.hidden, s.inner(), {&normed, &of_output}, result);
  }
  if (node != nullptr)
    node->saved = {eager.save(projected), eager.save(filters), eager.save(of_output), eager.save(scanned)};
  attach(result, node);
  return with_parameters(eager, result, {w.convolution_bias});
}

namespace {

/// Chunks of a delta rule: rows for the states, the states themselves, and values less what the states know of them.
struct DeltaChunks {
  Tensor rows, states, values;
};
DeltaChunks chunks_of_rule(Eager& at, const Tensor& q, const Tensor& v, const Tensor& inverse) {
  const std::int64_t heads = v.sizes[0] * v.sizes[2], chunks = chunks_of(v.sizes[1], kDeltaChunk),
                     each = heads * chunks, width = q.sizes[3], wide = v.sizes[3];
  DeltaChunks made{at.empty({each, kDeltaChunk, width + wide}, q.type), at.empty({each, width, wide}, q.type),
                   at.empty(v.sizes, v.type)};
  matmuls(at, q.type, each, kDeltaChunk, width + wide, kDeltaChunk, {&inverse, &q, &v}, made.rows);
  for (const auto& [m, k] : {std::pair{kDeltaChunk, width}, std::pair{width, kDeltaChunk}})
    matmuls(at, q.type, each, m, wide, k, {&made.rows, &made.states}, m == width ? made.states : made.values);
  return made;
}

}  // namespace

Tensor gated_delta_rule(Eager& eager, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                        const Tensor& strength) {
  const std::int64_t each = v.sizes[0] * v.sizes[2] * chunks_of(v.sizes[1], kDeltaChunk), width = q.sizes[3],
                     wide = v.sizes[3];
  const DType type = v.type;
  eager.recorder.host(HostClass::pointwise, 12);
  auto* node = node_for<6>(eager, {&q, &k, &v, &decay}, HostClass::pointwise_backward, [=](auto& pass) {
    Eager& at = pass.eager;
    const auto& [queries, keys, values, decays, strengths, inverse] = pass.saved;
    const DeltaChunks again = chunks_of_rule(at, queries, values, inverse);
    pass.out[0] = at.empty(queries.sizes, type);
    pass.out[1] = at.empty(keys.sizes, type);
    pass.out[2] = at.empty(values.sizes, type);
    pass.out[3] = at.empty(decays.sizes, decays.type);
    const Tensor local = at.empty(values.sizes, type), states = at.empty(again.states.sizes, type),
                 rows = at.empty(again.rows.sizes, type);
    matmuls(at, type, each, kDeltaChunk, wide, kDeltaChunk + width, {&queries, &keys, &pass.in[0]}, local);
    for (const std::int64_t over : {kDeltaChunk, kDeltaChunk, width})
      matmuls(at, type, each, width, wide, over, {&keys, &local, &pass.in[0]}, states);
    const Tensor* const of_rows[] = {&pass.out[0], &pass.out[1], &rows};
    for (const Tensor* into : of_rows)
      matmuls(at, type, each, kDeltaChunk, width, wide + kDeltaChunk, {&states, &again.values, &pass.in[0]}, *into);
    for (int i = 0; i < 2; ++i)
      matmuls(at, type, each, kDeltaChunk, width + wide, kDeltaChunk, {&inverse, &rows, &values}, pass.out[2]);
    kernel(at, "chunk_local_cumsum", decays.sizes[0] * decays.sizes[2], decays.sizes[1], 8, {&decays, &strengths},
           {&pass.out[3]});
    for (std::size_t i = 0; i < 2; ++i)  // lengths of queries and keys were made one
      kernel(at, "l2norm_bwd", each * kDeltaChunk, width, 12, {&pass.out[i], &pass.saved[i]}, {&pass.out[i]});
  });
  const Tensor unit_q = eager.empty(q.sizes, type), unit_k = eager.empty(k.sizes, type),
               sums = eager.empty(decay.sizes, DType::fp32),
               inverse = eager.empty({v.sizes[0], v.sizes[1], v.sizes[2], kDeltaChunk}, type);
  for (const auto& [from, to_unit] : {std::pair{&q, &unit_q}, std::pair{&k, &unit_k}})
    kernel(eager, "l2norm_fwd", each * kDeltaChunk, width, 8, {from}, {to_unit});
  kernel(eager, "chunk_local_cumsum", decay.sizes[0] * decay.sizes[2], decay.sizes[1], 8, {&decay}, {&sums});
  matmuls(eager, type, each, kDeltaChunk, kDeltaChunk, width, {&unit_k, &sums, &strength}, inverse);
  kernel(eager, "solve_tril", each * kDeltaChunk, kDeltaChunk, kDeltaChunk, {&inverse}, {&inverse});
  Tensor result = eager.empty(v.sizes, type);
  {
    const DeltaChunks made = chunks_of_rule(eager, unit_k, v, inverse);
    matmuls(eager, type, each, kDeltaChunk, wide, width + kDeltaChunk, {&unit_q, &unit_k, &made.states, &made.values},
            result);
  }
  if (node != nullptr)
    node->saved = {eager.save(unit_q), eager.save(unit_k),   eager.save(v),
                   eager.save(sums),   eager.save(strength), eager.save(inverse)};
  attach(result, node);
  auto* of_strength = node_for<0>(eager, {&result, &strength}, HostClass::pointwise_backward,
                                  [like = strength.sizes, of = strength.type](auto& pass) {
                                    pass.out[0] = pass.in[0];
                                    if (pass.node.needs(1)) pass.out[1] = pass.eager.empty(like, of);
                                  });
  Tensor passed = result;
  attach(passed, of_strength);
  return passed;
}

}  // namespace ridgeline::eager::aten
