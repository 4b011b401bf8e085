// What the script of a generic transformer feeds it.
#include "sim/workload/families/composed.h"

namespace ridgeline::families {
namespace {

/// Inputs of one micro-batch, or of all micro-batches of a pipeline's step.
class Inputs {
 public:
  Inputs(Eager& eager, const TrainingDescription& training)
      : eager_(eager),
        rows_(training.micro_batch *
              (training.parallel.pipelined() && !training.parallel.megatron() ? training.gradient_accumulation : 1)),
        context_(training.parallel.context),
        type_(type_of_parameters(training)) {}

  /// What a stack reads: `length` tokens of each sequence, an image, or a spectrogram of two frames a position; pixels
  /// and frames come in the type of the weights.
  Tensor features(const Stack& s, std::int64_t length) {
    if (s.input == InputKind::tokens) return tokens(length);
    if (s.input == InputKind::image) return made({rows_, s.channels, s.image_size, s.image_size}, type_);
    return made({rows_, s.audio_bins, 2 * s.max_positions}, type_);
  }
  /// Whole sequences, of which a rank that shares them takes its part in place.
  Tensor tokens(std::int64_t length) {
    Tensor result = made({rows_ * length * context_}, DType::int64);
    result.sizes = {rows_, length};
    result.strides = contiguous_strides(result.sizes);
    return result;
  }
  Tensor labels() { return made({rows_}, DType::int64); }
  /// Targets of a classifier: the class, a number, or a yes or no for each label.
  Tensor labels(const Stack& s) {
    if (s.class_loss == ClassLoss::cross_entropy) return labels();
    return s.labels == 1 ? made({rows_}, DType::fp32) : made({rows_, s.labels}, DType::fp32);
  }

 private:
  Tensor made(const Dims& sizes, DType type) {
    Tensor result = eager_.empty(sizes, type);
    eager_.recorder.set_category(result.storage.id(), Category::inputs);
    return result;
  }

  Eager& eager_;
  std::int64_t rows_, context_;
  DType type_;
};

}  // namespace

Batch make_composed_batch(Eager& eager, const Composition& composition, const TrainingDescription& training,
                          bool own_labels) {
  const Stack& s = composition.stack;
  const std::int64_t length = training.tokens_of_rank(),
                     own = s.cross_attention && s.target_length > 0 ? s.target_length : length;
  Inputs inputs(eager, training);
  Batch batch;
  if (composition.encoder) batch.features = inputs.features(*composition.encoder, length);
  batch.tokens = inputs.features(s, own);
  switch (s.head) {
    case HeadKind::sequence_classification:
    case HeadKind::image_classification: batch.targets = {inputs.labels(s)}; break;
    case HeadKind::question_answering:
      batch.targets.push_back(inputs.labels());
      batch.targets.push_back(inputs.labels());
      break;
    case HeadKind::pretraining:
      batch.targets.push_back(inputs.tokens(own));
      batch.targets.push_back(inputs.labels());
      break;
    case HeadKind::token_classification:
    case HeadKind::masked_lm:
    case HeadKind::language_model:
      // Else trained on what they read; ranks that share sequences cut each buffer once.
      batch.targets = {own_labels || training.parallel.context > 1 ? inputs.tokens(own) : batch.tokens};
      break;
    case HeadKind::contrastive:
    case HeadKind::none: break;
  }
  return batch;
}

}  // namespace ridgeline::families
