// A network made of stacks of blocks, as Transformers' modules run it: one stack, an encoder and a decoder, or two
// towers.
#pragma once

#include <optional>

#include "sim/workload/families/family.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

class Composed final : public Family {
 public:
  Composed(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention);
  Tensor loss(const Batch& batch) override;
  Tensor next_logits(const Tensor& tokens, const Tensor& positions) override;
  [[nodiscard]] std::int64_t frozen() const override;

 private:
  void make_head();
  Tensor run_stack(const Tensor& input, const Tensor& encoded);
  [[nodiscard]] Tensor logits_of(const Tensor& x);
  Tensor next_token_loss(Tensor x, const Tensor& labels);
  Tensor masked_loss(const Tensor& x, const Tensor& labels);
  [[nodiscard]] bool scores_every_token() const;
  Tensor last_scores(const Tensor& scores);
  Tensor class_loss(const Tensor& x, const Tensor& labels);
  Tensor contrastive_loss(const Tensor& x, const Tensor& other);
  Tensor span_loss(const Tensor& x, const Batch& batch);
  Tensor row_losses(const Tensor& logits, const Tensor& labels);
  Tensor first_tokens(const Tensor& x);
  Tensor mean_tokens(const Tensor& x);

  std::optional<Composition> share_;  ///< of this rank, where several share layers
  const Composition& composition_;
  StackSite site_;
  std::optional<StackNetwork> encoder_, stack_;
  Affine head_, transform_, transform_norm_, pooler_norm_, pooler_, projection_, other_projection_;
  Parameter* temperature_ = nullptr;
  Tensor logit_offset_;
};

/// Ids, pixels or spectrograms of one micro-batch, and targets.
Batch make_composed_batch(Eager& eager, const Composition& composition, const TrainingDescription& training);

}  // namespace ridgeline::families
