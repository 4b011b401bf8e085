#include "sim/scenario/step_amount.h"

namespace ridgeline {

StepAmount amount_of_step(const Scenario& s) {
  if (s.recorded) return {s.recorded->samples, s.recorded->tokens};
  const TrainingDescription& t = s.training;
  if (!t.inference) {
    // The devices of one process share a micro-batch.
    const std::int64_t batches = t.parallel.one_process() ? 1 : t.parallel.data;
    const std::int64_t samples = t.micro_batch * t.gradient_accumulation * batches;
    const double tokens = s.lengths ? s.lengths->mean() : static_cast<double>(t.sequence_length);
    return {static_cast<double>(samples), static_cast<double>(samples) * tokens};
  }
  const std::int64_t tokens =
      t.inference->sequences * (t.inference->new_tokens > 0 ? t.inference->new_tokens : t.sequence_length);
  return {static_cast<double>(t.inference->sequences), static_cast<double>(tokens)};
}

double boards_of_step(const Scenario& s) { return s.recorded ? 1.0 : static_cast<double>(s.training.parallel.gpus()); }

}  // namespace ridgeline
