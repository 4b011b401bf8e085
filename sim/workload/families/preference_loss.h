// The loss of DPOTrainer of TRL: log-probabilities of chosen and rejected answers by the trained network, then by the
// reference without gradients, each pass of both kinds of answers together (trl/trainer/dpo_trainer.py).
#pragma once

#include <memory>
#include <optional>

#include "sim/workload/families/family.h"

namespace ridgeline::families {

class PreferenceLoss {
 public:
  /// Allocates the reference beside the trained network, unless adapters or the batch stand for it.
  PreferenceLoss(eager::Eager& eager, const ModelDescription& model, const TrainingDescription& training,
                 AttentionChoice attention);
  /// A number; `batch` has pairs.
  eager::Tensor loss(families::Family& trained, const families::Batch& batch);
  /// Parameters of the reference network.
  [[nodiscard]] std::int64_t frozen_parameters() const;

 private:
  using Tensor = eager::Tensor;
  /// Scores of a pass under autocast, in fp32 (accelerate's ConvertOutputsToFp32).
  Tensor scores(families::Family& network, const families::Batch& batch);
  /// selective_log_softmax: row by row, so that temporaries are of one sequence.
  void log_probabilities(const Tensor& scores, Tensor& chosen, Tensor& logarithms);
  void tiny(std::int64_t rows, std::int64_t cols, int count);

  eager::Eager& eager_;
  const TrainingDescription& training_;
  TrainingDescription of_reference_;
  std::unique_ptr<families::Family> reference_;
};

}  // namespace ridgeline::families
