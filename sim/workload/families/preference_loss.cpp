#include "sim/workload/families/preference_loss.h"

#include <utility>
#include <vector>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/eager/function_node.h"

namespace ridgeline::families {

namespace aten = eager::aten;
using eager::Dims;

namespace {

/// Kernels on numbers of each token or sequence: labels moved by one place and masked, their sums, the loss of the
/// pairs with its metrics; and the gradient of that.
constexpr int kTinyOfTokens = 9, kTinyOfPairs = 22, kTinyBackward = 14;

TrainingDescription reference_of(const TrainingDescription& training) {
  TrainingDescription result = training;
  result.lora.reset();
  result.preference.reset();
  result.activation_checkpointing = ActivationCheckpointing::none;
  return result;
}

/// torch.logsumexp of a sequence's scores [tokens, vocabulary]: largest, what is subtracted, exponentials, their sum.
void row_logarithm(eager::Eager& eager, const eager::Tensor& row, const Dims& tokens) {
  const std::int64_t rows = row.sizes[0], cols = row.sizes[1];
  eager.recorder.host(HostClass::pointwise, 9);
  const eager::Tensor largest = eager.empty(tokens, row.type);
  eager.recorder.op(Reduction{ReductionKind::sum_cols, row.type, rows, cols}, {&row}, {&largest});
  const eager::Tensor finite = aten::plain(eager, PointwiseFunction::equal, tokens, DType::boolean, {&largest});
  aten::pointwise(eager, PointwiseFunction::other, {&largest, &finite}, largest);
  const eager::Tensor moved = aten::plain(eager, PointwiseFunction::add, row.sizes, row.type, {&row, &largest});
  aten::pointwise(eager, PointwiseFunction::special, {&moved}, moved);
  eager::Tensor sum = eager.empty(tokens, row.type);
  eager.recorder.op(Reduction{ReductionKind::sum_cols, row.type, rows, cols}, {&moved}, {&sum});
  for (int i = 0; i < 2; ++i) aten::pointwise(eager, PointwiseFunction::other, {&sum}, sum);
}

eager::Tensor one_sequence(const eager::Tensor& scores) {
  eager::Tensor row = scores.detached();
  row.sizes = {scores.sizes[1], scores.sizes[2]};
  row.strides = eager::contiguous_strides(row.sizes);
  return row;
}

/// Gradient of the scores: of each row's logarithm, the rows stacked, then of the gathered scores, which is added.
eager::Tensor gradient_of_scores(eager::Eager& eager, const eager::Tensor& scores, const eager::Tensor& labels) {
  const std::int64_t rows = scores.sizes[0];
  const eager::Tensor row = one_sequence(scores);
  const Dims tokens{scores.sizes[1]};
  std::vector<eager::Tensor> gradients;
  for (std::int64_t i = 0; i < rows; ++i) {
    eager.recorder.host(HostClass::pointwise_backward, 3);
    const eager::Tensor given = aten::plain(eager, PointwiseFunction::other, tokens, row.type, {});
    eager::Tensor one = aten::plain(eager, PointwiseFunction::add, row.sizes, row.type, {&row, &given});
    one = aten::plain(eager, PointwiseFunction::special, row.sizes, row.type, {&one});
    gradients.push_back(aten::plain(eager, PointwiseFunction::mul, row.sizes, row.type, {&given, &one}));
  }
  eager.recorder.host(HostClass::concatenate);
  eager::Tensor all = eager.empty(scores.sizes, scores.type);
  for (std::int64_t i = 0; i < rows; ++i)
    eager.recorder.op(Copy{CopyKind::concatenate, row.type, row.sizes[0], row.sizes[1], 1},
                      {&gradients[static_cast<std::size_t>(i)]}, {&all});
  gradients.clear();
  eager.recorder.host(HostClass::pointwise_backward, 3);
  const eager::Tensor gathered = aten::full(eager, scores.sizes, scores.type);
  eager::Tensor reached = gathered;
  reached.sizes = labels.sizes;
  aten::pointwise(eager, PointwiseFunction::scatter_add, {&labels}, reached);
  aten::pointwise(eager, PointwiseFunction::add_in_place, {&all, &gathered}, all);
  return all;
}

}  // namespace

PreferenceLoss::PreferenceLoss(eager::Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                               AttentionChoice attention)
    : eager_(eager), training_(training), of_reference_(reference_of(training)) {
  if (training.lora || training.preference->reference == ReferenceModel::precomputed) return;
  reference_ = families::make_family(eager, model, of_reference_, attention);
  for (eager::Parameter& parameter : reference_->parameters) parameter.value.node = nullptr;
}

std::int64_t PreferenceLoss::frozen_parameters() const {
  if (!reference_) return 0;
  std::int64_t total = reference_->frozen();
  for (const eager::Parameter& parameter : reference_->parameters) total += parameter.value.elements();
  return total;
}

void PreferenceLoss::tiny(std::int64_t rows, std::int64_t cols, int count) {
  eager_.recorder.host(HostClass::pointwise, count);
  for (int i = 0; i < count; ++i) {
    const Tensor one = eager_.empty({rows, cols}, DType::fp32);
    aten::pointwise(eager_, PointwiseFunction::other, {}, one);
  }
}

eager::Tensor PreferenceLoss::scores(families::Family& network, const families::Batch& batch) {
  Tensor made;
  if (const auto type = training_.autocast_type()) {
    eager_.autocast.enter(*type);
    made = network.scores(batch);
    eager_.autocast.leave();
  } else {
    made = network.scores(batch);
  }
  if (made.type == DType::fp32) return made;
  eager_.recorder.host(HostClass::cast);
  return aten::to(eager_, made, DType::fp32);
}

void PreferenceLoss::log_probabilities(const Tensor& scores, Tensor& chosen, Tensor& logarithms) {
  const eager::ModuleScope module(eager_.recorder, "loss");
  const std::int64_t rows = scores.sizes[0], tokens = scores.sizes[1];
  tiny(rows, tokens, kTinyOfTokens);
  const Tensor labels = eager_.empty({rows, tokens, 1}, DType::int64);
  eager_.recorder.host(HostClass::pointwise);
  chosen = aten::plain(eager_, PointwiseFunction::gather, labels.sizes, scores.type, {&labels});
  const Tensor row = one_sequence(scores);
  for (std::int64_t i = 0; i < rows; ++i) row_logarithm(eager_, row, {tokens});
  eager_.recorder.host(HostClass::concatenate);
  logarithms = aten::plain(eager_, PointwiseFunction::other, {rows, tokens}, scores.type, {});
  chosen = aten::plain(eager_, PointwiseFunction::add, {rows, tokens}, scores.type, {&chosen, &logarithms});
}

eager::Tensor PreferenceLoss::loss(families::Family& trained, const families::Batch& batch) {
  const std::int64_t pairs = training_.micro_batch / 2, tokens = training_.sequence_length;
  Tensor of_trained, chosen, logarithms;
  of_trained = scores(trained, batch);
  const bool gradients_enabled = std::exchange(eager_.gradients_enabled, false);
  log_probabilities(of_trained, chosen, logarithms);
  if (training_.preference->reference == ReferenceModel::resident) {
    Tensor of_reference, expected, other;
    eager_.adapters_disabled = training_.lora.has_value();
    of_reference = scores(reference_ ? *reference_ : trained, batch);
    eager_.adapters_disabled = false;
    log_probabilities(of_reference, expected, other);
  }
  eager_.gradients_enabled = gradients_enabled;
  const eager::ModuleScope module(eager_.recorder, "loss");
  tiny(pairs, 1, kTinyOfPairs);
  auto* const node =
      eager::node_for<3>(eager_, {&of_trained}, HostClass::pointwise_backward, [this, pairs, tokens](auto& pass) {
        tiny(pairs, 1, kTinyBackward - 2);
        tiny(2 * pairs, tokens, 2);
        pass.out[0] = gradient_of_scores(pass.eager, pass.saved[0], pass.saved[1]);
      });
  if (node != nullptr) {
    node->saved[0] = eager_.save(of_trained);
    Tensor labels = eager_.empty({2 * pairs, tokens, 1}, DType::int64);
    node->saved[1] = eager_.save(labels);
    node->saved[2] = eager_.save(logarithms);
  }
  Tensor result = eager_.empty({}, DType::fp32);
  aten::pointwise(eager_, PointwiseFunction::other, {}, result);
  eager::attach(result, node);
  return result;
}

}  // namespace ridgeline::families
