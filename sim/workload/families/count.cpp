#include "sim/workload/families/count.h"

#include <variant>

#include "sim/workload/composition.h"
#include "sim/workload/families/family.h"

namespace ridgeline::families {
namespace {

struct CountedFlops {
  double operator()(const Matmul& op) const {
    return 2.0 * static_cast<double>(op.batch) * static_cast<double>(op.m) * static_cast<double>(op.n) *
           static_cast<double>(op.k);
  }
  double operator()(const Attention& op) const {
    return 4.0 * static_cast<double>(op.batch) * static_cast<double>(op.heads) * scores_of_row(op) *
           static_cast<double>(op.head_dim);
  }
  double operator()(const Convolution& op) const {
    return 2.0 * static_cast<double>(op.batch) * static_cast<double>(op.out_pixels()) *
           static_cast<double>(op.out_channels) * static_cast<double>(op.in_channels) /
           static_cast<double>(op.groups) * static_cast<double>(op.taps());
  }
  template <typename Other>
  double operator()(const Other&) const {
    return 0.0;
  }
};

}  // namespace

std::int64_t count_parameters(const ModelDescription& model) {
  OpTrace trace;
  Eager eager(trace);
  const TrainingDescription training;
  const auto family = make_family(eager, model, training, AttentionChoice::efficient);
  std::int64_t total = family->frozen();
  for (const auto& parameter : family->parameters) total += parameter.value.elements();
  eager.recorder.closed = true;
  return total;
}

double count_flops(const ModelDescription& model, std::int64_t sequences, std::int64_t length) {
  OpTrace trace;
  double forward = 0.0;
  {
    Eager eager(trace);
    eager.gradients_enabled = false;
    TrainingDescription training;
    training.micro_batch = sequences;
    training.sequence_length = length;
    const Batch batch = make_batch(eager, model, training);
    const auto family = make_family(eager, model, training, AttentionChoice::cudnn);
    eager.recorder.phase = Phase::forward;
    { const Tensor loss = family->loss(batch); }
    eager.recorder.closed = true;
  }
  for (const Call& call : trace.calls) forward += std::visit(CountedFlops{}, trace.ops[call.op]);
  return 3.0 * forward;
}

}  // namespace ridgeline::families
