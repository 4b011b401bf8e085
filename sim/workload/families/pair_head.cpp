#include "sim/workload/families/pair_head.h"

#include "sim/workload/aten/formula.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/written_out.h"

namespace ridgeline::families {

namespace aten = eager::aten;

PairHead::PairHead(Eager& eager, StackNetwork& at, const Stack& text, const Stack& image)
    : eager_(eager), at_(at), image_(image) {
  const std::int64_t d = image.hidden;
  const auto linear_of = [&at](std::int64_t out, std::int64_t in) { return at.linear_layer(out, in, true); };
  text_ = linear_of(text.hidden, text.hidden);
  probe_ = at.parameter({1, 1, d});
  query_ = linear_of(d, d);
  key_value_ = linear_of(2 * d, d);
  output_ = linear_of(d, d);
  norm_ = {at.parameter({d}), at.parameter({d})};
  up_ = linear_of(image.inner(), d);
  down_ = linear_of(d, image.inner());
  temperature_ = at.parameter({1});
  shift_ = at.parameter({1});
}

Tensor unit_rows(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 3);
  const Tensor squares = aten::square(eager, x);
  const Tensor norm = aten::rsqrt(eager, aten::mean_last(eager, squares));
  return aten::mul(eager, x, norm);
}

// torch.nn.MultiheadAttention with weights, which it gives back.
Tensor PairHead::pooled(const Tensor& patches) {
  const ModuleScope module(eager_.recorder, "pooler");
  const std::int64_t batch = patches.sizes[0], count = patches.sizes[1], d = image_.hidden, heads = image_.heads;
  const auto by_head = [&](const Tensor& rows, std::int64_t length) {
    return transpose(eager_, view(eager_, rows, {batch, length, heads, d / heads}), 1, 2);
  };
  const Tensor probe = aten::expand(eager_, probe_->value, {batch, 1, d});
  const Tensor q = by_head(linear(eager_, probe, query_), 1), both = linear(eager_, patches, key_value_);
  eager_.recorder.host(HostClass::split);
  const auto parts = aten::split_last<2>(eager_, both);
  const Tensor k = by_head(parts[0], count), v = by_head(parts[1], count);
  const Tensor weights = softmax(eager_, scale(eager_, matmul(eager_, q, transpose(eager_, k, 2, 3))));
  Tensor x = contiguous(eager_, transpose(eager_, matmul(eager_, weights, v), 1, 2));
  x = linear(eager_, view(eager_, x, {batch, 1, d}), output_);
  const Tensor inner = linear(eager_, layer_norm(eager_, x, norm_, true), up_);
  x = add(eager_, x, linear(eager_, at_.activated(inner, image_.activation), down_));
  eager_.recorder.host(HostClass::view);
  return aten::select_first(eager_, x);
}

// -log(sigmoid(±(text · image · exp(t) + b))), summed over images: minus where they belong to another text.
Tensor PairHead::loss(const Tensor& text, const Tensor& patches) {
  using F = PointwiseFunction;
  static const aten::Derivative kOfLogarithm("mul(grad, other(self))");
  eager_.recorder.host(HostClass::view);
  const Tensor images = unit_rows(eager_, pooled(patches)),
               texts = unit_rows(eager_, linear(eager_, aten::select_first(eager_, text), text_));
  const ModuleScope module(eager_.recorder, "loss");
  eager_.recorder.host(HostClass::matmul);
  const Tensor left = eager_.autocast.lowered(eager_, texts),
               right = aten::t(eager_, eager_.autocast.lowered(eager_, images));
  Tensor scores = aten::mul(eager_, aten::mm(eager_, left, right), temperature_->value);
  scores = add(eager_, scores, shift_->value);
  eager_.recorder.host(HostClass::pointwise, 8);
  const Tensor one = aten::plain(eager_, F::fill, scores.sizes, scores.type, {}),
               same = aten::plain(eager_, F::scale, scores.sizes, scores.type, {&one}),
               sign = aten::plain(eager_, F::add, scores.sizes, scores.type, {&one, &same});
  const Tensor logarithms = aten::apply(eager_, F::special, kOfLogarithm, aten::mul(eager_, scores, sign));
  return aten::mean_all(eager_, aten::mean_last(eager_, logarithms));
}

}  // namespace ridgeline::families
