// Disentangled attention: contents score contents, contents score distances, and distances score contents (DeBERTa).
#include <algorithm>

#include "sim/workload/aten/convolution.h"
#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

bool StackNetwork::scores_position(std::string_view term) const {
  return std::find(s_.position_terms.begin(), s_.position_terms.end(), term) != s_.position_terms.end();
}

void StackNetwork::look_at_distances(std::int64_t rows, std::int64_t length, Around& around) {
  eager_.recorder.host(HostClass::pointwise, 18);
  const Dims sizes{length, length};
  {
    const Tensor places = aten::arange(eager_, length, DType::int64),
                 others = aten::arange(eager_, length, DType::int64);
    const Tensor distance = aten::plain(eager_, PointwiseFunction::add, sizes, DType::int64, {&places, &others});
    Tensor far = aten::plain(eager_, PointwiseFunction::other, sizes, DType::int64, {&distance});
    far = aten::plain(eager_, PointwiseFunction::divide, sizes, DType::fp32, {&far});
    for (int i = 0; i < 5; ++i) far = aten::plain(eager_, PointwiseFunction::other, sizes, DType::fp32, {&far});
    const Tensor bucket = aten::plain(eager_, PointwiseFunction::other, sizes, DType::fp32, {&distance, &far});
    around.distances = aten::plain(eager_, PointwiseFunction::cast, {1, length, length}, DType::int64, {&bucket});
  }
  // Ones for each pair of tokens that are no padding.
  const Tensor there = aten::full(eager_, {rows, length}, DType::int64);
  around.mask = aten::plain(eager_, PointwiseFunction::mul, {rows, 1, length, length}, DType::int64, {&there});
  around.distance_rows = s_.position_norm ? norm(distances_.weight->value, distance_norm_) : distances_.weight->value;
}

// ConvLayer of modeling_deberta_v2.py: padding is filled with zeros before the activation and after the norm.
Tensor StackNetwork::beside_first_layer(const Tensor& given, const Tensor& x) {
  const ModuleScope module(eager_.recorder, "convolution");
  const Tensor rows = contiguous(eager_, transpose(eager_, given, 1, 2));
  eager_.recorder.host(HostClass::convolution);
  Tensor y = aten::convolution(
      eager_, eager_.autocast.lowered(eager_, rows), eager_.autocast.lowered(eager_, convolution_.weight->value),
      eager_.autocast.lowered(eager_, convolution_.bias->value), {1, s_.first_convolution / 2, 1});
  y = contiguous(eager_, transpose(eager_, y, 1, 2));
  const Tensor padding = aten::plain(eager_, PointwiseFunction::equal, {y.sizes[0], y.sizes[1], 1}, DType::boolean, {});
  y = masked_fill(eager_, y, padding);
  y = activated(dropout(eager_, y, s_.dropout), s_.activation);
  y = norm(add(eager_, x, y), convolution_norm_);
  const Tensor there = aten::plain(eager_, PointwiseFunction::cast, {y.sizes[0], y.sizes[1], 1}, y.type, {&padding});
  return mul(eager_, y, there);
}

Tensor StackNetwork::batch_of_heads(const Tensor& rows) {
  const std::int64_t batch = rows.sizes[0], length = rows.sizes[1], width = s_.head_width();
  const Tensor by_head =
      contiguous(eager_, transpose(eager_, view(eager_, rows, {batch, length, s_.heads, width}), 1, 2));
  return view(eager_, by_head, {batch * s_.heads, length, width});
}

// Scores of distances, [batch x heads, length, length], each picked out of those of all buckets.
Tensor StackNetwork::position_scores(const AttentionWeights& weights, const Tensor& q, const Tensor& k,
                                     const Around& around, std::int64_t batch) {
  Tensor dropped = dropout(eager_, around.distance_rows, s_.dropout);
  if (s_.projection != ProjectionKind::separate && 2 * q.sizes[1] < dropped.sizes[0])  // of the distances that occur
    dropped = aten::slice(eager_, dropped, 0, 2 * q.sizes[1]);
  const Tensor rows = site_.split.enter_whole(aten::unsqueeze(eager_, dropped, 0));
  const std::int64_t length = q.sizes[1];
  const auto projected = [&](const Affine& own, const Affine& shared) {
    const Tensor one = batch_of_heads(site_.split.partial_linear(rows, s_.shared_position_projection ? shared : own));
    eager_.recorder.host(HostClass::contiguous);
    return aten::repeated_first(eager_, one, batch);
  };
  Tensor query, key, score;
  if (s_.shared_position_projection || scores_position("position-to-content"))
    query = projected(weights.position_query, weights.query);
  if (s_.shared_position_projection || scores_position("content-to-position"))
    key = projected(weights.position_key, weights.key);
  const auto picked = [&](const Tensor& left, const Tensor& right, int steps) {
    eager_.recorder.host(HostClass::pointwise, steps + 3);
    const Tensor second = eager_.autocast.lowered(eager_, aten::transpose(eager_, right, 1, 2));
    const Tensor all = aten::bmm(eager_, eager_.autocast.lowered(eager_, left), second);
    Tensor places = around.distances;
    for (int i = 0; i < steps; ++i)
      places = aten::plain(eager_, PointwiseFunction::add, places.sizes, DType::int64, {&places});
    return aten::gathered_last(eager_, all, places, {left.sizes[0], length, length});
  };
  if (scores_position("content-to-position")) {
    const Tensor found = picked(q, key, 2);
    score = aten::add_number(eager_, aten::divide(eager_, found));
  }
  if (scores_position("position-to-content")) {
    const Tensor found = aten::divide(eager_, aten::transpose(eager_, picked(k, query, 3), 1, 2));
    score = score.defined() ? add(eager_, score, found) : aten::add_number(eager_, found);
  }
  return score;
}

// One product without a bias; queries and values get theirs by themselves (the first version).
void StackNetwork::project_biased(const AttentionWeights& weights, const Tensor& x, Tensor& q, Tensor& k, Tensor& v) {
  project_fused(weights, x, q, k, v);
  const std::int64_t rows = x.sizes[0] * s_.heads, length = q.sizes[2], width = s_.head_width();
  const auto biased = [&](const Tensor& heads, const Affine& own) {
    return add(eager_, heads, view(eager_, own.bias->value, {1, s_.heads, 1, width}));
  };
  const auto flat = [&](const Tensor& heads) { return view(eager_, contiguous(eager_, heads), {rows, length, width}); };
  q = flat(biased(q, weights.query));
  k = flat(k);
  v = flat(biased(v, weights.value));
}

StackNetwork::Attended StackNetwork::attend_disentangled(const AttentionWeights& weights, const Tensor& x,
                                                         const Around& around) {
  Attended result;
  Tensor y, probabilities, scores, v, k, q;
  if (s_.projection == ProjectionKind::separate) {
    q = batch_of_heads(site_.split.column_linear(x, weights.query));
    k = batch_of_heads(site_.split.column_linear(x, weights.key));
    v = batch_of_heads(site_.split.column_linear(x, weights.value));
  } else {
    project_biased(weights, x, q, k, v);
  }
  const std::int64_t batch = q.sizes[0] / s_.heads, length = q.sizes[1], width = s_.head_width();
  {
    eager_.recorder.host(HostClass::pointwise, 3);
    const Tensor scaled = aten::divide(eager_, aten::transpose(eager_, k, 1, 2));
    const Tensor second = eager_.autocast.lowered(eager_, scaled);
    scores = aten::bmm(eager_, eager_.autocast.lowered(eager_, q), second);
  }
  {
    const Tensor of_positions = position_scores(weights, q, k, around, batch);
    scores = add(eager_, scores, of_positions);
  }
  scores = view(eager_, scores, {batch, s_.heads, length, length});
  {
    // The mask of pairs as booleans, and its opposite.
    eager_.recorder.host(HostClass::pointwise, 2);
    const Dims pairs{batch, 1, length, length};
    const Tensor seen = aten::plain(eager_, PointwiseFunction::cast, pairs, DType::boolean, {&around.mask});
    const Tensor hidden = aten::plain(eager_, PointwiseFunction::equal, pairs, DType::boolean, {&seen});
    scores = masked_fill(eager_, scores, hidden);
  }
  probabilities = softmax(eager_, scores);
  probabilities = dropout(eager_, probabilities, s_.attention_dropout);
  {
    const Tensor second = eager_.autocast.lowered(eager_, v);
    const Tensor flat = view(eager_, probabilities, {batch * s_.heads, length, length});
    eager_.recorder.host(HostClass::matmul);
    y = aten::bmm(eager_, eager_.autocast.lowered(eager_, flat), second);
  }
  y = contiguous(eager_, aten::permute(eager_, view(eager_, y, {batch, s_.heads, length, width}), {0, 2, 1, 3}));
  y = view(eager_, y, {batch, length, s_.heads * width});
  result.result = site_.split.row_linear(y, weights.output);
  return result;
}

}  // namespace ridgeline::families
