// Scans in chunks of tokens: Mamba-2's and the gated delta rule's, whose chunks are matmuls.
#include <algorithm>
#include <cmath>
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

// Instruction slots that a multiply-add of each kernel takes on the cores of an SM, where its tensor cores wait for
// them: of one call on an NVIDIA H200 with mamba-ssm 2.3.2 (measurements/h200/scan_kernels.jsonl.gz), each kernel in
// the fastest of three of its configurations.
struct Slots {
  static constexpr double state = 0.43, scan = 0.74, products = 0.6, products_backward = 0.7, inputs = 1.03,
                          states_backward = 0.31, keys = 0.69, queries = 0.57, scores = 0.76, decay = 1.64;
};

struct Mamba2Shape {
  std::int64_t batch, length, heads, width, groups, states, chunk, hidden;
  [[nodiscard]] std::int64_t inner() const { return heads * width; }
  [[nodiscard]] std::int64_t mixed() const { return inner() + 2 * groups * states; }  ///< channels of the convolution
  [[nodiscard]] std::int64_t chunks() const { return batch * chunks_of(length, chunk); }
  /// Parts of the heads of a group that kernels sum over one after another, on the 132 SMs of an H100 and later.
  [[nodiscard]] std::int64_t head_parts() const {
    constexpr std::int64_t kSms = 132;
    const std::int64_t of_group = heads / groups,
                       each = std::max<std::int64_t>(1, std::min((chunks() * heads + kSms - 1) / kSms, of_group));
    return (of_group + each - 1) / each;
  }
};

/// The first channels of a convolution's result: as many bytes as those that a kernel reads.
Tensor channels_of(const Tensor& mixed, std::int64_t channels) {
  Tensor part = mixed;
  part.sizes[1] = channels;
  return part;
}

/// A kernel of tiles: `count` matrices of rows x cols, each element of so many multiply-adds.
struct Tiles {
  std::int64_t count, rows, cols, multiply_adds;
  double slots;
};
void tiles(Eager& eager, std::string name, const Tiles& t, std::initializer_list<const Tensor*> reads,
           std::initializer_list<const Tensor*> writes) {
  kernel(eager, std::move(name), t.count * t.rows, t.cols, std::llround(static_cast<double>(t.multiply_adds) * t.slots),
         reads, writes);
}

/// Sizes of what both passes compute: the convolution, steps and their sums of decays, states before each chunk and
/// products of C and B.
struct Mamba2Chunks {
  Tensor mixed, decay, states, products;
};
Mamba2Chunks chunks_of_scan(Eager& eager, const Tensor& projected, const Tensor& filters, const Mamba2Shape& s,
                            DType of_states) {
  Tensor channels = projected;
  channels.sizes = {s.batch, s.mixed(), s.length};
  Mamba2Chunks made;
  made.mixed = convolved(eager, channels, filters, eager.empty(channels.sizes, channels.type));
  Tensor steps = projected;
  steps.sizes = {s.batch, s.length, s.heads};
  made.decay = eager.empty({2, s.batch, s.heads, s.length}, DType::fp32);
  kernel(eager, "chunk_cumsum_fwd", s.batch * s.heads, s.length, 20, {&steps}, {&made.decay});
  const Dims all{s.chunks(), s.heads, s.width, s.states};
  const Tensor own = eager.empty(all, DType::fp32);
  tiles(eager, "chunk_state_fwd", {s.chunks() * s.heads, s.width, s.states, s.chunk, Slots::state},
        {&made.mixed, &made.decay}, {&own});
  made.states = eager.empty(all, of_states);
  const Tensor last = eager.empty({s.batch, s.heads, s.width * s.states}, DType::fp32);
  kernel(eager, "state_passing_fwd", s.chunks() * s.heads, s.width * s.states, 4, {&own}, {&made.states, &last});
  made.products = eager.empty({s.chunks(), s.groups, s.chunk, s.chunk}, DType::fp32);
  const Tensor both = channels_of(made.mixed, 2 * s.groups * s.states);
  tiles(eager, "bmm_chunk_fwd", {s.chunks() * s.groups, s.chunk, s.chunk, s.states, Slots::products}, {&both},
        {&made.products});
  return made;
}

/// Gradients over parts of the heads, summed.
Tensor summed(Eager& at, const Tensor& parts, const Dims& sizes) {
  if (parts.elements() == sizes.product()) return parts;
  Tensor sum = at.empty(sizes, DType::fp32);
  kernel(at, "sum_of_heads", sizes.product(), 1, 0, {&parts}, {&sum});
  return sum;
}

/// Gradients of a scan's operands, of which those before the convolution lie in `mixed`.
void scan_backward(Eager& at, const Mamba2Chunks& made, const Tensor& gradient, const Mamba2Shape& s,
                   const Tensor& mixed) {
  const DType type = gradient.type;
  const std::int64_t each = s.chunks() * s.heads, parts = s.head_parts(), half = s.chunk / 2;
  const Dims rows{s.batch, s.length, s.groups, s.states};
  Tensor by_decay;
  {
    const Tensor wide = at.empty(made.states.sizes, DType::fp32);
    tiles(at, "chunk_scan_bwd_dstates", {each, s.width, s.states, s.chunk, Slots::states_backward},
          {&gradient, &made.mixed, &made.decay}, {&wide});
    const Tensor states = at.empty(made.states.sizes, type), before = at.empty(made.states.sizes, type);
    kernel(at, "state_passing_bwd", each, s.width * s.states, 8, {&wide, &made.states}, {&states, &before});
    const Tensor steps = full(at, {s.batch, s.heads, s.length}, DType::fp32);
    tiles(at, "chunk_scan_chunk_state_bwd_dx", {each, s.chunk, s.width, half + s.states, Slots::inputs},
          {&gradient, &made.mixed, &made.products, &states}, {&mixed, &steps});
    Tensor keys = at.empty({s.batch, s.length, parts, s.groups, s.states}, DType::fp32);
    tiles(at, "chunk_state_bwd_db", {each, s.chunk, s.states, s.width, Slots::keys}, {&made.mixed, &states}, {&keys});
    keys = summed(at, keys, rows);
    Tensor queries = at.empty({s.batch, s.length, parts, s.groups, s.states}, DType::fp32);
    tiles(at, "chunk_scan_bwd_dc", {each, s.chunk, s.states, s.width, Slots::queries}, {&gradient, &before},
          {&queries});
    queries = summed(at, queries, rows);
    Tensor scores = at.empty({s.chunks(), parts, s.groups, s.chunk, s.chunk}, DType::fp32);
    tiles(at, "chunk_scan_bwd_dcb", {each, half, s.chunk, s.width, Slots::scores}, {&gradient, &made.mixed}, {&scores});
    scores = summed(at, scores, made.products.sizes);
    const Tensor part = channels_of(made.mixed, s.groups * s.states), into = channels_of(mixed, s.groups * s.states);
    for (const Tensor* residual : {&keys, &queries})
      tiles(at, "bmm_chunk_bwd", {s.chunks() * s.groups, s.chunk, s.states, s.chunk, Slots::products_backward},
            {&scores, &part, residual}, {&into});
    // Sums of decays: added up, turned around, summed and turned around again.
    by_decay = at.empty({s.batch, s.heads, s.length}, DType::fp32);
    for (const char* name : {"add", "flip", "cumsum", "flip"})
      kernel(at, name, s.batch * s.heads, s.length, 0, {&by_decay}, {&by_decay});
    constexpr std::int64_t kRowsOfBlock = 32;
    Tensor blocks = at.empty({s.batch, s.heads, s.length, (s.chunk + kRowsOfBlock - 1) / kRowsOfBlock}, DType::fp32);
    tiles(at, "chunk_scan_bwd_ddAcs_stable", {each, half, s.chunk, s.width, Slots::decay},
          {&gradient, &made.mixed, &made.products}, {&blocks});
    blocks = summed(at, blocks, by_decay.sizes);
    for (int i = 0; i < 2; ++i) kernel(at, "add", s.batch * s.heads, s.length, 0, {&by_decay, &blocks}, {&by_decay});
  }
  kernel(at, "chunk_cumsum_bwd", s.batch * s.heads, s.length, 30, {&by_decay, &made.decay}, {&by_decay});
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
    pass.out[3] = full(at, {s.inner()}, from_output.type);
    kernel(at, "layer_norm_bwd", rows, s.inner(), 40, {&scanned, &given, &before}, {&by_scan, &normed, &pass.out[0]});
    const Tensor mixed = at.empty({s.batch, s.mixed(), s.length}, type);
    const Mamba2Chunks again = chunks_of_scan(at, given, filter, s, DType::fp32);
    scan_backward(at, again, by_scan, s, mixed);
    pass.out[2] = at.empty(from_output.sizes, from_output.type);
    matmuls(at, type, 1, s.hidden, s.inner(), rows, {&pass.in[0], &normed}, pass.out[2]);
    pass.out[1] = full(at, filter.sizes, filter.type);
    convolved_backward(at, again.mixed, filter, mixed, pass.out[0]);
  });
  Tensor result = eager.empty({s.batch, s.length, s.hidden}, type);
  const Tensor scanned = eager.empty({s.batch, s.length, s.inner()}, type);
  {
    const Mamba2Chunks made = chunks_of_scan(eager, projected, filters, s, type);
    tiles(eager, "chunk_scan_fwd", {s.chunks() * s.heads, s.chunk, s.width, s.chunk / 2 + s.states, Slots::scan},
          {&made.mixed, &made.products, &made.states}, {&scanned});
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

constexpr double kDeltaSlots = 0.75;  // of a multiply-add, as the mean of Mamba-2's kernels; none of these was measured

/// Rows for the states of a delta rule, the states before each chunk, and values less what the states know of them.
struct DeltaChunks {
  Tensor rows, states, values;
};
DeltaChunks chunks_of_rule(Eager& at, const Tensor& k, const Tensor& v, const Tensor& inverse) {
  const std::int64_t each = v.sizes[0] * v.sizes[2] * chunks_of(v.sizes[1], kDeltaChunk), width = k.sizes[3],
                     wide = v.sizes[3];
  DeltaChunks made{at.empty({each, kDeltaChunk, width + wide}, k.type), at.empty({each, width, wide}, k.type),
                   at.empty(v.sizes, v.type)};
  tiles(at, "recompute_w_u_fwd", {each, kDeltaChunk, width + wide, kDeltaChunk, kDeltaSlots}, {&inverse, &k, &v},
        {&made.rows});
  tiles(at, "chunk_gated_delta_rule_fwd_h", {each, kDeltaChunk, wide, 2 * width, kDeltaSlots}, {&made.rows, &k},
        {&made.states, &made.values});
  return made;
}

}  // namespace

Tensor gated_delta_rule(Eager& eager, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                        const Tensor& strength) {
  const std::int64_t each = v.sizes[0] * v.sizes[2] * chunks_of(v.sizes[1], kDeltaChunk), width = q.sizes[3],
                     wide = v.sizes[3], scores = kDeltaChunk * width / wide;  // multiply-adds for a value's element
  const DType type = v.type;
  eager.recorder.host(HostClass::pointwise, 12);
  auto* node = node_for<6>(eager, {&q, &k, &v, &decay}, HostClass::pointwise_backward, [=](auto& pass) {
    Eager& at = pass.eager;
    const auto& [queries, keys, values, decays, strengths, inverse] = pass.saved;
    const DeltaChunks again = chunks_of_rule(at, keys, values, inverse);
    const Tensor local = at.empty(values.sizes, type), states = at.empty(again.states.sizes, type),
                 rows = at.empty(again.rows.sizes, type);
    tiles(at, "chunk_bwd_dv_local", {each, kDeltaChunk, wide, kDeltaChunk + scores, kDeltaSlots},
          {&queries, &keys, &pass.in[0]}, {&local});
    pass.out[2] = at.empty(values.sizes, type);
    tiles(at, "chunk_gated_delta_rule_bwd_dhu", {each, kDeltaChunk, wide, 3 * width, kDeltaSlots},
          {&queries, &keys, &again.rows, &pass.in[0], &local}, {&states, &pass.out[2]});
    for (std::size_t i = 0; i < 2; ++i) pass.out[i] = at.empty(pass.saved[i].sizes, type);
    pass.out[3] = at.empty(decays.sizes, decays.type);
    tiles(at, "chunk_bwd_dqkwg", {each, kDeltaChunk, width, 3 * (wide + kDeltaChunk), kDeltaSlots},
          {&queries, &keys, &again.values, &again.states, &states, &pass.in[0]}, {&pass.out[0], &pass.out[1], &rows});
    tiles(at, "prepare_wy_repr_bwd", {each, kDeltaChunk, width + wide, 3 * kDeltaChunk, kDeltaSlots},
          {&inverse, &rows, &keys, &values}, {&pass.out[1], &pass.out[2]});
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
  tiles(eager, "chunk_gated_delta_rule_fwd_kkt_solve",
        {each, kDeltaChunk, kDeltaChunk, width + kDeltaChunk, kDeltaSlots}, {&unit_k, &sums, &strength}, {&inverse});
  Tensor result = eager.empty(v.sizes, type);
  {
    const DeltaChunks made = chunks_of_rule(eager, unit_k, v, inverse);
    tiles(eager, "chunk_fwd_o", {each, kDeltaChunk, wide, width + kDeltaChunk + scores, kDeltaSlots},
          {&unit_q, &unit_k, &made.states, &made.values}, {&result});
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
