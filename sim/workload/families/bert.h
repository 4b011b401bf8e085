// BERT as HuggingFace's modules run it: three embeddings, post-norm layers, and one of four heads.
#pragma once

#include "sim/workload/families/family.h"

namespace ridgeline::families {

class Bert final : public Family {
 public:
  Bert(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention);
  Tensor loss(const Batch& batch) override;

 private:
  struct Layer {
    Affine query, key, value, attention_dense, attention_norm, up, down, norm;
  };
  struct SelfAttention {
    Tensor context, probabilities;
  };
  Tensor embeddings(const Tensor& tokens);
  /// `mask` is undefined where none is added.
  Tensor layer(const Layer& weights, Tensor x, const Tensor& mask);
  SelfAttention self_attention(const Layer& weights, const Tensor& x, const Tensor& mask);
  /// Of x [tokens, sequences, hidden], by matrix products and softmax.
  SelfAttention sequence_first_attention(const Layer& weights, const Tensor& x, const Tensor& mask);
  /// Scaled, masked, normalised and dropped out; gives `scores` up where the module does.
  Tensor probabilities_of(Tensor& scores, const Tensor& mask);
  Tensor feed_forward_input(const Tensor& x, const Affine& up);
  /// Zero for every token of every sequence, to be added to scores.
  Tensor mask_of_ones(const Tensor& tokens);
  /// Dense, dropout, residual, normalisation.
  Tensor output(const Tensor& x, const Tensor& residual, const Affine& dense, const Affine& norm);
  Tensor encode(const Tensor& tokens, Tensor& pooled);
  Tensor token_logits(const Tensor& sequence);
  Tensor rows_of(const Tensor& logits);
  Tensor span_loss(const Tensor& sequence, const Batch& batch);

  [[nodiscard]] bool has_pooler() const {
    return model_.head == ModelHead::sequence_classification || model_.head == ModelHead::pretraining;
  }

  Affine words_, positions_, types_, embedding_norm_, pooler_, classifier_, transform_, transform_norm_, decoder_;
  Tensor position_ids_, type_ids_;
  std::vector<Layer> layers_;
};

}  // namespace ridgeline::families
