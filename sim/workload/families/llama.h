// Llama written out in plain PyTorch (torchtune, litgpt, torchtitan): RMS norms, rotary positions, gated feed-forward.
#pragma once

#include "sim/workload/families/family.h"
#include "sim/workload/families/transformers_code.h"

namespace ridgeline::families {

class Llama final : public Family {
 public:
  Llama(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention);
  Tensor loss(const Batch& batch) override;
  Tensor run_part(std::size_t part, Tensor input) override;
  Tensor part_loss(const Tensor& logits, const std::vector<Tensor>& targets) override;

 private:
  struct Layer {
    Affine query, key, value, projection, gate, up, down, input_norm, attention_norm;
  };
  struct SelfAttention {
    Tensor result, probabilities;
  };
  Rotation plain_rotation(DType type);
  Tensor turned(const Tensor& x, const Rotation& by);
  Tensor layer(const Layer& weights, Tensor x, const Rotation& by, const Tensor& mask);
  SelfAttention self_attention(const Layer& weights, const Tensor& x, const Rotation& by, const Tensor& mask);
  Tensor feed_forward(const Layer& weights, const Tensor& x);
  Tensor embed(const Tensor& tokens);
  Tensor norm(const Tensor& x, const Affine& weights);
  /// Of layers split by DTensor, the output projection too.
  Tensor split_loss(Tensor& x, const Tensor& labels);
  Tensor next_token_loss(const Tensor& logits, const Tensor& labels);

  Affine tokens_, final_norm_, head_;
  std::vector<Layer> layers_;  ///< of the whole network; empty where this rank lacks them
};

}  // namespace ridgeline::families
