// GPT-2 as a plain PyTorch module: learned positions, pre-norm blocks, one projection for q, k and v. With a cache of
// keys and values it is Transformers' module, which keeps embeddings, the attention's result and the second norm's in
// variables until its function, or the block, ends.
#pragma once

#include "sim/workload/families/family.h"

namespace ridgeline::families {

class Gpt2 final : public Family {
 public:
  Gpt2(Eager& eager, const ModelDescription& model, const TrainingDescription& training, AttentionChoice attention);
  Tensor loss(const Batch& batch) override;
  Tensor run_part(std::size_t part, Tensor input) override;
  Tensor next_logits(const Tensor& tokens, const Tensor& positions) override;

 private:
  struct Block {
    Affine norm_before_attention, qkv, projection, norm_before_feed_forward, up, down;
    Tensor mask;  ///< ones on and below the diagonal, for eager attention
  };
  /// Embeddings and all blocks.
  Tensor encode(const Tensor& tokens);
  Tensor final_norm_of(const Tensor& x);
  /// Rows of both tables, which live as long as the caller's variables.
  struct Embedded {
    Tensor tokens, positions;
  };
  Tensor embed(const Tensor& tokens, Embedded& rows);
  Tensor run_blocks(const StagePart& part, Tensor x);
  Tensor block(const Block& layer, Tensor x);
  Tensor self_attention(const Block& layer, const Tensor& x);

  Affine tokens_, positions_, final_norm_, head_;
  std::vector<Block> blocks_;  ///< of the whole network; empty where this rank lacks them
};

}  // namespace ridgeline::families
