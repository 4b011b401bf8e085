// A network made of stacks of blocks, as Transformers' modules run it: one stack, an encoder and a decoder, or two
// towers.
#pragma once

#include <deque>
#include <optional>

#include "sim/workload/families/family.h"
#include "sim/workload/families/image_rows.h"
#include "sim/workload/families/pair_head.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

class Composed final : public Family {
 public:
  Composed(Eager& eager, const ModelDescription& model, CompositionHandle composition,
           const TrainingDescription& training, AttentionChoice attention);
  Tensor loss(const Batch& batch) override;
  std::vector<Tensor> run_part(std::size_t part, const Batch& batch, std::vector<Tensor> received) override;
  [[nodiscard]] std::vector<Dims> part_input(std::size_t part) const override;
  [[nodiscard]] std::vector<Dims> part_output(std::size_t part) const override;
  Tensor part_loss(const Tensor& output, const std::vector<Tensor>& targets) override;
  Tensor scores(const Batch& batch) override;
  Tensor next_logits(const Tensor& tokens, const Tensor& positions) override;
  [[nodiscard]] std::int64_t frozen() const override;

 private:
  /// What a head makes of hidden states; variables of the module live as long as its output.
  struct Output {
    Tensor scores, pooled;
  };
  /// Stacks of a part, of which a stage of a pipeline may hold one.
  struct Towers {
    std::optional<StackNetwork> encoder, stack;
    bool embeds = false;  ///< reads what the stack reads, not a part before it
  };
  void make_part(const StagePart& part);
  [[nodiscard]] std::int64_t blocks_of_encoder() const {
    return composition_.encoder ? composition_.encoder->layers : 0;
  }
  /// The stack below the head.
  [[nodiscard]] StackNetwork& top() { return *towers_.back().stack; }
  void make_head(const StagePart& part);
  Tensor run_stack(const Tensor& input, const Tensor& encoded, const Tensor& positions = {});
  [[nodiscard]] std::vector<Dims> carried_before(std::int64_t block) const;
  Tensor for_head(Tensor x);
  /// Of the head, before the loss.
  Output output_of(Tensor x);
  Tensor loss_of(const Output& output, const std::vector<Tensor>& targets);
  [[nodiscard]] Tensor logits_of(const Tensor& x);
  [[nodiscard]] Tensor in_loss_type(const Tensor& logits, bool fp32);
  Tensor next_token_loss(const Tensor& logits, const Tensor& labels);
  /// Labels of the next tokens; `padded` is a variable of the loss.
  Tensor shifted(const Tensor& labels, Tensor& padded);
  [[nodiscard]] bool scores_every_token() const;
  Tensor last_scores(const Tensor& scores);
  Output class_scores(const Tensor& x);
  Tensor pooled_by_dense(const Tensor& first);
  Tensor contrastive_loss(const Tensor& x, const Tensor& other);
  Tensor span_loss(const Tensor& logits, const std::vector<Tensor>& targets);
  Tensor class_loss(const Tensor& scores, const Tensor& targets);
  Tensor row_losses(const Tensor& logits, const Tensor& labels);
  Tensor first_tokens(const Tensor& x);
  Tensor mean_tokens(const Tensor& x);

  CompositionHandle whole_;
  std::optional<Composition> share_;  ///< of this rank, where several share layers
  const Composition& composition_;
  bool generates_ = false;
  StackSite site_;
  std::optional<ImageRows> image_rows_;
  std::optional<PairHead> pair_head_;
  std::deque<Towers> towers_;  ///< of each part
  Affine head_, relation_, transform_, transform_norm_, pooler_norm_, pooler_, projection_, other_projection_;
  Parameter* temperature_ = nullptr;
  Tensor logit_offset_;
};

/// Ids, pixels or spectrograms of one micro-batch, and targets; `own_labels`: other tokens than those that are read.
Batch make_composed_batch(Eager& eager, const Composition& composition, const TrainingDescription& training,
                          bool own_labels = false);

}  // namespace ridgeline::families
