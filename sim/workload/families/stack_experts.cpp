// Experts spread over ranks: the layer that tools/measure_expert_steps.py runs, operation by operation.
//
// A router's choice is taken to be even, so that each rank gets as many rows as it sends. Where every token has its
// place, ranks tell each other how many rows of each expert they send, and the host waits for these numbers; products
// are grouped. With a capacity factor each expert has so many places, whoever wants them; products are batched.
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/workload/aten/grouped.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

namespace {

/// torch.sort, which compares all 64 bits of a key: the keys in order, and where they came from.
std::pair<Tensor, Tensor> sorted_with_order(Eager& eager, const Tensor& keys) {
  Tensor sorted = eager.empty({keys.elements()}, DType::int64), order = eager.empty({keys.elements()}, DType::int64);
  eager.recorder.host(HostClass::pointwise, 2);
  eager.recorder.op(Sort{DType::int64, 1, keys.elements(), 0, 0}, {&keys}, {&sorted, &order});
  return {std::move(sorted), std::move(order)};
}
Tensor order_of(Eager& eager, const Tensor& keys) { return sorted_with_order(eager, keys).second; }

/// How many places chose each expert: torch.histc of whole numbers.
Tensor counts_of(Eager& eager, const Tensor& chosen, std::int64_t experts) {
  eager.recorder.host(HostClass::pointwise, 3);
  const Tensor narrow = aten::plain(eager, PointwiseFunction::cast, chosen.sizes, DType::int32, {&chosen});
  Tensor counts = aten::plain(eager, PointwiseFunction::fill, {experts}, DType::int32, {});
  eager.recorder.op(Pointwise{PointwiseFunction::other, narrow.elements(), 1, {DType::int32}, 1, DType::int32},
                    {&narrow}, {&counts});
  return counts;
}

/// result[order] = 0, 1, 2 …
Tensor inverse_of(Eager& eager, const Tensor& order) {
  eager.recorder.host(HostClass::pointwise, 3);
  const Tensor counted = aten::arange(eager, order.elements(), DType::int64);
  return aten::plain(eager, PointwiseFunction::index, order.sizes, DType::int64, {&counted, &order});
}

Tensor rows_at(Eager& eager, const Tensor& x, const Tensor& index) {
  eager.recorder.host(HostClass::pointwise);
  return aten::rows_at(eager, x, index, {index.elements(), x.sizes[1]});
}

/// A weight in the type of what it is multiplied with.
Tensor cast_to(Eager& eager, const Tensor& x, DType type) {
  if (x.type == type) return x;
  eager.recorder.host(HostClass::cast);
  return aten::to(eager, x, type);
}

/// Two dimensions exchanged and all of it copied: [a, b, …] to [b, a, …].
Tensor turned_over(Eager& eager, const Tensor& x, const Dims& sizes, const Dims& result) {
  Tensor wide = view(eager, x, sizes);
  wide = transpose(eager, wide, 0, 1);
  eager.recorder.host(HostClass::contiguous);
  return aten::reshape(eager, wide, result);
}

/// Rows with one of zeros behind them.
Tensor padded(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 2);
  const Tensor zeros = aten::full(eager, {1, x.sizes[1]}, x.type);
  return aten::join(eager, {&x, &zeros}, 0);
}

Tensor looked_up(Eager& eager, const Tensor& table, const Tensor& places) {
  eager.recorder.host(HostClass::embedding);
  return aten::embedding(eager, table, places);
}

}  // namespace

Tensor StackNetwork::gated(const Tensor& inner) {
  if (s_.feed_forward_kind == FeedForwardKind::plain) return activated(inner, s_.activation);
  Tensor up, gate;
  if (s_.activation == ComposedActivation::clamped_silu) {  // GptOssExperts._apply_gate of modeling_gpt_oss.py
    eager_.recorder.host(HostClass::pointwise, 8);
    gate = aten::clamp(eager_, aten::every_second(eager_, inner, 0), false);
    up = aten::clamp(eager_, aten::every_second(eager_, inner, 1), true);
    const Tensor turned_on = aten::quick_gelu(eager_, gate);
    return mul(eager_, aten::add_number(eager_, up), turned_on);
  }
  eager_.recorder.host(HostClass::split);
  auto parts = aten::split_last<2>(eager_, inner);
  gate = std::move(parts[0]);
  up = std::move(parts[1]);
  return mul(eager_, activated(gate, s_.activation), up);
}

Tensor StackNetwork::routed_to_ranks(const ExpertWeights& weights, const Tensor& x, const Tensor& before) {
  const std::int64_t tokens = x.elements() / s_.hidden, kept = s_.experts_per_token;
  Tensor result, chosen, share;
  const Tensor rows = view(eager_, x, {tokens, s_.hidden});
  route_entered(weights, rows, before, chosen, share);
  chosen = view(eager_, chosen, {tokens * kept});
  result = site_.ranks_of_experts->capacity() > 0.0 ? capped(weights, rows, chosen) : dropless(weights, rows, chosen);
  {
    const Tensor wide = view(eager_, result, {tokens, kept, s_.hidden});
    const Tensor factor = aten::reshape(eager_, cast_to(eager_, share, result.type), {tokens, kept, 1});
    result = mul(eager_, wide, factor);
  }
  eager_.recorder.host(HostClass::pointwise);
  return aten::reshape(eager_, aten::sum_middle(eager_, result), x.sizes);
}

Tensor StackNetwork::dropless(const ExpertWeights& weights, const Tensor& rows, const Tensor& chosen) {
  parallel::ExpertParallel& ranks = *site_.ranks_of_experts;
  const std::int64_t places = chosen.elements(), own = s_.experts / ranks.ranks();
  const DType type = eager_.autocast.on() ? eager_.autocast.type() : rows.type;
  Tensor returned, out, both, ends, by_expert, expert, arrived, gathered, theirs, counts, order;
  order = order_of(eager_, chosen);
  counts = counts_of(eager_, chosen, s_.experts);
  theirs = ranks.exchange_counts(counts);
  {  // how many rows go to each rank and come from it: to the host, which waits
    eager_.recorder.host(HostClass::pointwise, 3);
    const Tensor stacked = eager_.empty({2, s_.experts}, DType::int32),
                 sums = eager_.empty({2, ranks.ranks()}, DType::int64);
    eager_.recorder.op(Copy{CopyKind::concatenate, DType::int32, 1, s_.experts, 2}, {&counts, &theirs}, {&stacked});
    eager_.recorder.op(Reduction{ReductionKind::sum_cols, DType::int64, 2 * ranks.ranks(), own}, {&stacked}, {&sums});
    eager_.recorder.op(Copy{CopyKind::device_to_host, DType::int64, 1, 2 * ranks.ranks(), 1}, {&sums}, {});
    eager_.recorder.wait_for_gpu();
  }
  {
    eager_.recorder.host(HostClass::pointwise);
    const Tensor token = aten::plain(eager_, PointwiseFunction::divide, {places}, DType::int64, {&order});
    gathered = rows_at(eager_, rows, token);
  }
  arrived = ranks.exchange(gathered);
  {
    eager_.recorder.host(HostClass::pointwise, 5);
    const Tensor one = aten::arange(eager_, own, DType::int64);
    const Tensor all = aten::plain(eager_, PointwiseFunction::cast, {s_.experts}, DType::int64, {&one});
    const Tensor sums = aten::plain(eager_, PointwiseFunction::cast, {s_.experts}, DType::int64, {&theirs});
    expert = aten::plain(eager_, PointwiseFunction::index, {places}, DType::int64, {&all, &sums});
  }
  by_expert = order_of(eager_, expert);
  {
    eager_.recorder.host(HostClass::pointwise, 2);
    const Tensor sums = aten::plain(eager_, PointwiseFunction::cast, {own}, DType::int64, {&theirs});
    ends = aten::plain(eager_, PointwiseFunction::cast, {own}, DType::int32, {&sums});
  }
  const auto product = [&](const Tensor& input, Parameter* weight, Parameter* bias) {
    eager_.recorder.host(HostClass::matmul);
    if (type == DType::fp32) wait_for_a_number();  // where each expert's rows begin
    Tensor made = aten::grouped_products(eager_, input, cast_to(eager_, weight->value, type));
    if (bias == nullptr) return made;
    const Tensor wide = aten::rows_at(eager_, bias->value, expert, {places, bias->value.sizes[1]});
    return add(eager_, made, wide);
  };
  both = product(cast_to(eager_, rows_at(eager_, arrived, by_expert), type), weights.up, weights.up_bias);
  out = product(gated(both), weights.down, weights.down_bias);
  returned = ranks.exchange(rows_at(eager_, out, inverse_of(eager_, by_expert)));
  return rows_at(eager_, returned, inverse_of(eager_, order));
}

Tensor StackNetwork::capped(const ExpertWeights& weights, const Tensor& rows, const Tensor& chosen) {
  parallel::ExpertParallel& ranks = *site_.ranks_of_experts;
  const std::int64_t choices = chosen.elements(), own = s_.experts / ranks.ranks(), width = s_.hidden;
  const auto places = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(choices) * ranks.capacity() / static_cast<double>(s_.experts)));
  const std::int64_t all = s_.experts * places, of_expert = ranks.ranks() * places;
  Tensor where, returned, back, out, both, local, arrived, sent, source, slot, place, counts, of, order;
  order = order_of(eager_, chosen);
  eager_.recorder.host(HostClass::pointwise, 14);
  of = aten::plain(eager_, PointwiseFunction::index, {choices}, DType::int64, {&chosen, &order});
  counts = counts_of(eager_, chosen, s_.experts);
  {  // the place of each choice among those of its expert
    const Tensor sums = aten::plain(eager_, PointwiseFunction::cast, {s_.experts}, DType::int64, {&counts});
    const Tensor begins = aten::plain(eager_, PointwiseFunction::add, {s_.experts}, DType::int64, {&sums, &counts});
    const Tensor counted = aten::arange(eager_, choices, DType::int64);
    const Tensor first = aten::plain(eager_, PointwiseFunction::index, {choices}, DType::int64, {&begins, &of});
    place = aten::plain(eager_, PointwiseFunction::add, {choices}, DType::int64, {&counted, &first});
  }
  {
    const Tensor inside = aten::plain(eager_, PointwiseFunction::equal, {choices}, DType::boolean, {&place});
    const Tensor before = aten::plain(eager_, PointwiseFunction::scale, {choices}, DType::int64, {&of});
    const Tensor sum = aten::plain(eager_, PointwiseFunction::add, {choices}, DType::int64, {&before, &place});
    slot = aten::plain(eager_, PointwiseFunction::other, {choices}, DType::int64, {&inside, &sum});
  }
  source = aten::full(eager_, {all + 1}, DType::int64);
  {
    const Tensor token = aten::plain(eager_, PointwiseFunction::divide, {choices}, DType::int64, {&order});
    eager_.recorder.op(Pointwise{PointwiseFunction::index, choices, 1, {DType::int64, DType::int64}, 2, DType::int64},
                       {&token, &slot}, {&source});
  }
  Tensor used = source;
  used.sizes = {all};
  sent = looked_up(eager_, padded(eager_, rows), used);
  used.reset();
  arrived = ranks.exchange(sent);
  local = turned_over(eager_, arrived, {ranks.ranks(), own, places, width}, {own, of_expert, width});
  const auto product = [&](const Tensor& input, Parameter* weight, Parameter* bias) {
    eager_.recorder.host(HostClass::matmul);
    const Tensor left = eager_.autocast.lowered(eager_, input), right = eager_.autocast.lowered(eager_, weight->value);
    Tensor made = aten::bmm(eager_, left, aten::transpose(eager_, right, 1, 2));
    if (bias == nullptr) return made;
    return add(eager_, made, view(eager_, bias->value, {own, 1, bias->value.sizes[1]}));
  };
  both = product(local, weights.up, weights.up_bias);
  out = product(gated(both), weights.down, weights.down_bias);
  back = turned_over(eager_, out, {own, ranks.ranks(), places, width}, {all, width});
  returned = padded(eager_, ranks.exchange(back));
  where = aten::plain(eager_, PointwiseFunction::index, {choices}, DType::int64, {&slot, &order});
  return looked_up(eager_, returned, where);
}

// As Transformers' grouped products run: tokens in the order of their experts, what comes from no expert set to zero.
Tensor StackNetwork::routed(const ExpertWeights& weights, const Tensor& x, const Tensor& before) {
  const std::int64_t tokens = x.elements() / s_.hidden, places = tokens * s_.experts_per_token;
  using F = PointwiseFunction;
  const Tensor rows = view(eager_, x, {tokens, s_.hidden});
  Tensor chosen, share;
  route_entered(weights, rows, before, chosen, share);
  Tensor order, sorted, absent, result;
  eager_.recorder.host(HostClass::pointwise, 7);
  std::tie(sorted, order) = sorted_with_order(eager_, chosen);
  Tensor gathered, factor;
  {
    const Tensor token = aten::plain(eager_, F::divide, {places}, DType::int64, {&order});
    gathered = aten::rows_at(eager_, rows, token, {places, s_.hidden});
  }
  factor = aten::rows_at(eager_, aten::reshape(eager_, share, {places, 1}), order, {places, 1});
  {
    const Tensor counts = counts_of(eager_, sorted, s_.experts);
    const Tensor ends = eager_.empty({s_.experts}, DType::int32);
    eager_.recorder.op(Reduction{ReductionKind::scan_cols, DType::int32, 1, s_.experts}, {&counts}, {&ends});
  }
  absent = aten::plain(eager_, F::equal, {places, 1}, DType::boolean, {&sorted});
  aten::pointwise(eager_, F::other, {&sorted}, sorted);  // places of no expert are clamped to the last one
  gathered = aten::masked_in_place(eager_, std::move(gathered), absent);
  const auto product = [&](const Tensor& input, Parameter* weight, Parameter* bias) {
    eager_.recorder.host(HostClass::matmul, s_.experts);
    if (weight->value.type != DType::bf16) wait_for_a_number();  // where each expert's rows begin
    Tensor wide = aten::grouped_products(eager_, aten::to(eager_, input, weight->value.type), weight->value);
    if (bias != nullptr)
      wide = add(eager_, wide, aten::rows_at(eager_, bias->value, sorted, {places, bias->value.sizes[1]}));
    return masked_fill(eager_, wide, absent);
  };
  Tensor inner = product(gathered, weights.up, weights.up_bias);
  inner = gated(inner);
  result = product(inner, weights.down, weights.down_bias);
  inner = Tensor{};
  result = mul(eager_, result, factor);
  {
    const Tensor back = inverse_of(eager_, order);
    result = aten::rows_at(eager_, result, back, {tokens, s_.experts_per_token, s_.hidden});
  }
  eager_.recorder.host(HostClass::pointwise);
  return aten::to(eager_, aten::reshape(eager_, aten::sum_middle(eager_, result), x.sizes), x.type);
}

}  // namespace ridgeline::families
