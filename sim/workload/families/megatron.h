// GPT, Llama and BERT networks as Megatron-LM builds them: [sequence, batch, hidden], norms before both halves of a
// block, queries, keys and values from one product, fused kernels, vocabulary split over the tensor parallel ranks and
// padded to a multiple of 128 for each.
//
// Follows megatron/model/{transformer,language_model,gpt_model,bert_model}.py.
#pragma once

#include "sim/workload/families/family.h"
#include "sim/workload/families/megatron_functions.h"

namespace ridgeline::families {

class Megatron final : public Family {
 public:
  Megatron(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention);
  Tensor loss(const Batch& batch) override;
  [[nodiscard]] std::int64_t shared_table() const override;
  void take_batch(const Batch& batch) override;
  std::vector<Tensor> run_part(std::size_t part, const Batch& batch, std::vector<Tensor> received) override;
  Tensor part_loss(const Tensor& logits, const std::vector<Tensor>& targets) override;

 private:
  struct Block {
    Affine input_norm, mixed, dense, middle_norm, up, down;
  };
  struct BertHead {
    Affine pooler, relation, transform, norm;
    Parameter* bias = nullptr;
  };
  [[nodiscard]] bool causal() const { return model_.family != ModelFamily::bert; }
  [[nodiscard]] bool rotary() const { return model_.family == ModelFamily::llama; }
  [[nodiscard]] bool gated() const { return model_.family == ModelFamily::llama; }
  [[nodiscard]] Affine megatron_norm() { return norm_layer(!rotary()); }
  [[nodiscard]] Tensor norm(const Tensor& x, const Affine& weights);
  void make_embedding();
  Block make_block();
  void make_head();
  Tensor embed(const Tensor& tokens);
  Tensor run_blocks(const StagePart& held, Tensor x);
  Tensor block(const Block& weights, Tensor x);
  Tensor attention_of(const Block& weights, const Tensor& x);
  Tensor core_attention(const Tensor& q, const Tensor& k, const Tensor& v);
  Tensor probabilities_of(const Tensor& scores);
  Tensor fused_core(const Tensor& q, const Tensor& k, const Tensor& v);
  /// Keys or values for each head that shares them.
  Tensor for_each_head(const Tensor& x);
  Tensor token_loss(const Tensor& logits, const Tensor& targets);
  Tensor bert_loss(const Tensor& hidden, const Batch& batch);

  megatron::StandIns stand_ins_;
  megatron::Split split_;
  std::int64_t vocabulary_, key_heads_;
  Affine tokens_, positions_, types_, final_norm_, head_;
  BertHead bert_;
  std::vector<Block> blocks_;  ///< by number in the network; a stage has some
  Tensor hidden_scores_;       ///< which scores the mask hides, where no fused kernel takes them
  Tensor score_buffer_;        ///< named first operand of the product that makes scores; never read
};

/// Rows of a token table that each of `ranks` ranks can have the same multiple of `rows` of.
std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t ranks, std::int64_t rows = 128);

}  // namespace ridgeline::families
