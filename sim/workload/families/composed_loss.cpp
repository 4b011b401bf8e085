// Losses of a generic transformer's heads.
#include <array>

#include "sim/workload/aten/formula.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/composed.h"

namespace ridgeline::families {

namespace aten = eager::aten;

Tensor Composed::loss_of(const Output& output, const std::vector<Tensor>& targets) {
  const Stack& s = composition_.stack;
  const Tensor& scores = output.scores;
  switch (s.head) {
    case HeadKind::masked_lm: return row_losses(in_loss_type(scores, s.masked_loss_fp32), targets[0]);
    case HeadKind::language_model: return next_token_loss(scores, targets[0]);
    case HeadKind::pretraining: {
      const Tensor of_words = row_losses(scores, targets[0]), of_relation = row_losses(output.pooled, targets[1]);
      return add(eager_, of_words, of_relation);
    }
    case HeadKind::sequence_classification:
    case HeadKind::token_classification:
    case HeadKind::image_classification: return class_loss(scores, targets[0]);
    case HeadKind::question_answering: return span_loss(scores, targets);
    case HeadKind::contrastive:
    case HeadKind::none: break;
  }
  eager_.recorder.host(HostClass::pointwise);
  return aten::mean_all(eager_, scores);
}

// MSELoss, and BCEWithLogitsLoss: one kernel for (1 - y) x, four for the stable logarithm of 1 + exp(-x), then the
// mean.
Tensor Composed::class_loss(const Tensor& scores, const Tensor& targets) {
  using F = PointwiseFunction;
  const ClassLoss kind = composition_.stack.class_loss;
  if (kind == ClassLoss::cross_entropy) return row_losses(scores, targets);
  const ModuleScope module(eager_.recorder, "loss");
  const Tensor x = eager_.autocast.on() ? aten::to(eager_, scores, DType::fp32) : scores,
               y = aten::to(eager_, targets, x.type);
  if (kind == ClassLoss::squares) {
    eager_.recorder.host(HostClass::pointwise, 4);
    return aten::mean_all(eager_, aten::square(eager_, aten::add(eager_, view(eager_, x, y.sizes), y)));
  }
  static const aten::Derivative kOfLogarithm("mul(grad, other(self))");
  eager_.recorder.host(HostClass::pointwise, 7);
  const Tensor other = aten::plain(eager_, F::add, y.sizes, y.type, {&y}), part = aten::mul(eager_, x, other),
               soft = aten::apply(eager_, F::special, kOfLogarithm, x);
  return aten::mean_all(eager_, aten::add(eager_, part, soft));
}

Tensor Composed::row_losses(const Tensor& logits, const Tensor& labels) {
  const ModuleScope module(eager_.recorder, "loss");
  const std::int64_t classes = logits.sizes.last();
  if (split_.splits_logits())
    return split_.split_loss(view(eager_, logits, {logits.elements() / classes, classes}),
                             view(eager_, labels, {labels.elements()}));
  return cross_entropy(eager_, view(eager_, logits, {logits.elements() / classes, classes}),
                       view(eager_, labels, {labels.elements()}));
}

Tensor Composed::next_token_loss(const Tensor& logits, const Tensor& labels) {
  const Stack& s = composition_.stack;
  // An encoder's labels stand where they are; its loss is taken as the scores come.
  if (s.cross_attention) return row_losses(in_loss_type(logits, false), labels);
  Tensor targets, padded, wide;
  {
    const ModuleScope module(eager_.recorder, "loss");
    wide = in_loss_type(logits, s.loss_fp32);
    targets = s.plain ? labels : shifted(labels, padded);  // the loader of plain code shifts them
  }
  return row_losses(wide, targets);
}

// Labels move one place to the left: padded on the right, cut on the left, made contiguous.
Tensor Composed::shifted(const Tensor& labels, Tensor& padded) {
  eager_.recorder.host(HostClass::pointwise, 4);
  padded = aten::full(eager_, {labels.sizes[0], labels.sizes[1] + 1}, DType::int64);
  eager_.recorder.op(Copy{CopyKind::permute, DType::int64, labels.sizes[0], labels.sizes[1], 1}, {&labels}, {&padded});
  Tensor cut = padded;
  cut.sizes = labels.sizes;
  return aten::contiguous(eager_, cut);
}

// The loss of split logits is taken in fp32.
Tensor Composed::in_loss_type(const Tensor& logits, bool fp32) {
  if (split_.splits_logits()) return split_.dispatched(aten::to(eager_, logits, DType::fp32), 2);
  return fp32 ? aten::to(eager_, logits, DType::fp32) : logits;
}

// Positions outside of a sequence are clamped; start and end, their losses and positions are variables of the module.
Tensor Composed::span_loss(const Tensor& logits, const std::vector<Tensor>& targets) {
  eager_.recorder.host(HostClass::split);
  const auto parts = aten::split_last<2>(eager_, logits);
  std::array<Tensor, 2> ends, losses, places;
  for (std::size_t i = 0; i < 2; ++i)
    ends[i] = contiguous(eager_, view(eager_, parts[i], {logits.sizes[0], logits.sizes[1]}));
  for (std::size_t i = 0; i < 2; ++i) {
    eager_.recorder.host(HostClass::pointwise);
    places[i] = aten::clamp(eager_, targets[i]);
  }
  for (std::size_t i = 0; i < 2; ++i) losses[i] = cross_entropy(eager_, ends[i], places[i]);
  const Tensor sum = add(eager_, losses[0], losses[1]);
  eager_.recorder.host(HostClass::loss_division);
  return aten::divide(eager_, sum);
}

// Unit vectors of both towers, all against all, and the mean of two cross entropies.
Tensor Composed::contrastive_loss(const Tensor& x, const Tensor& other) {
  const Tensor image = unit_rows(eager_, linear(eager_, first_tokens(other), other_projection_));
  const Tensor text = unit_rows(eager_, linear(eager_, first_tokens(x), projection_));
  eager_.recorder.host(HostClass::matmul);
  const Tensor left = eager_.autocast.lowered(eager_, text),
               right = aten::t(eager_, eager_.autocast.lowered(eager_, image));
  Tensor scores = aten::mm(eager_, left, right);
  scores = aten::mul(eager_, scores, temperature_->value);
  const Tensor places = aten::arange(eager_, scores.sizes[0], DType::int64);
  const Tensor of_text = row_losses(scores, places);
  const Tensor turned = contiguous(eager_, aten::t(eager_, scores));
  const Tensor of_image = row_losses(turned, places);
  const Tensor sum = add(eager_, of_text, of_image);
  eager_.recorder.host(HostClass::loss_division);
  return aten::divide(eager_, sum);
}

}  // namespace ridgeline::families
