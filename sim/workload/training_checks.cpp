#include "sim/workload/training_checks.h"

#include <fmt/format.h>

#include "sim/units/user_error.h"
#include "sim/workload/composition.h"

namespace ridgeline {

void check_training(const ModelDescription& model, const TrainingDescription& training) {
  check_model(model);
  if (training.micro_batch < 1) throw UserError("training.micro_batch: must be at least 1");
  if (model.family == ModelFamily::gpt2 && model.key_value_count() != model.heads && !training.parallel.megatron())
    throw UserError(
        fmt::format("model.key_value_heads: the plain network of family gpt2 has keys for each head: expected {}, or "
                    "training.parallel.framework: megatron",
                    model.heads));
  if (training.sequence_length < 1) throw UserError("training.sequence_length: must be at least 1");
  if (training.gradient_accumulation < 1) throw UserError("training.gradient_accumulation: must be at least 1");
  check_window(model, training.longest_sequence());
  if (const std::int64_t rows = model.composition.given() ? rows_of_image(*model.composition) : 0;
      rows > training.sequence_length)
    throw UserError(fmt::format(
        "training.sequence_length: {} is less than the {} rows of an image, which are among the tokens of a sequence",
        training.sequence_length, rows));
  const ParallelDescription& parallel = training.parallel;
  if (parallel.megatron() && parallel.pipelined() && parallel.schedule != PipelineSchedule::one_forward_one_backward &&
      parallel.schedule != PipelineSchedule::interleaved)
    throw UserError("training.parallel.schedule: Megatron-LM has 1f1b and interleaved");
  // PyTorch draws them outside of generated kernels then, from states of the generator that it keeps.
  if (training.parallel.compiled && training.parallel.compiles_blocks() &&
      training.activation_checkpointing != ActivationCheckpointing::none &&
      (model.dropout > 0.0 || model.attention_dropout > 0.0))
    throw UserError(
        "training.activation_checkpointing: random numbers of compiled blocks that run again are not modelled; "
        "expected model.dropout: 0");
  if (model.has_position_table() && training.longest_sequence() > model.max_positions)
    throw UserError(
        fmt::format("training.sequence_length: {} is more than the {} positions of the model (model.max_positions)",
                    training.longest_sequence(), model.max_positions));
}

double flops_of_step(const ModelDescription& model, const TrainingDescription& training) {
  const std::int64_t rows = training.micro_batch * training.gradient_accumulation, length = training.sequence_length;
  const double saved = static_cast<double>(length) * static_cast<double>(length) - training.scores_of_row();
  const ParallelDescription& how = training.parallel;
  const double whole = model_flops(model, rows, length) - 12.0 * static_cast<double>(rows) * saved *
                                                              static_cast<double>(model.attention_width()) *
                                                              static_cast<double>(model.layers);
  constexpr double kWithoutWeightGradients = 2.0 / 3.0;
  return whole * (training.lora ? kWithoutWeightGradients : 1.0) /
         static_cast<double>(how.tensor * how.context * how.pipeline * how.split);
}

}  // namespace ridgeline
