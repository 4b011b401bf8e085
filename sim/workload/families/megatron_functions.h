// Layers and fused kernels of Megatron-LM, each with the autograd function that is around it. Activations are
// [sequence, batch, hidden].
//
// Follows megatron/model/{transformer,fused_softmax,fused_bias_gelu}.py and megatron/core/tensor_parallel/{layers,
// cross_entropy}.py. What these kernels move is theirs; how fast they move it is taken from generated kernels that move
// as much (FusedKernel).
#pragma once

#include "sim/workload/families/functional.h"
#include "sim/workload/parallel/tensor_parallel.h"

namespace ridgeline::families::megatron {

/// What TransformerEngine hands to autograd in the place of gradients that its products have added to Megatron-LM's
/// buffer: one tensor for each size, which is kept (get_dummy_wgrad).
class StandIns {
 public:
  /// Made at the first call with these sizes.
  const Tensor& of(Eager& eager, const Dims& sizes, DType type);

 private:
  std::vector<Tensor> kept_;
};

/// Ranks that a layer is split over, and how.
struct Split {
  parallel::TensorParallel* ranks = nullptr;  ///< null: one
  bool sequence = false;                      ///< activations between split layers are split along the sequence
  bool async = true;                          ///< gradients of inputs are added up beside the next product
  bool half_loss = false;                     ///< the loss is made of logits as they are, in their place
  StandIns* stand_ins = nullptr;              ///< of gradients of weights; null: they are tensors of their own
  [[nodiscard]] bool several() const { return ranks != nullptr; }
  /// Products and exchanges are autograd functions each, as before they were made one.
  [[nodiscard]] bool separate() const { return !async && !sequence; }
};

/// x times this rank's columns of the weight, plus bias. Backward the gradient of the input is added up over the ranks
/// beside the product that makes the weight's gradient; with a split sequence the input is gathered before, and again
/// in the backward pass.
Tensor column_linear(Eager& eager, const Split& split, const Tensor& x, Parameter& weight, Parameter* bias);
/// x times this rank's rows, added up over the ranks (with a split sequence: and scattered). The bias is the caller's.
Tensor row_linear(Eager& eager, const Split& split, const Tensor& x, Parameter& weight);

/// Probabilities from scores [batch, heads, queries, keys]: scale, mask, softmax in one kernel. `causal`: scores above
/// the diagonal are not read.
Tensor scale_mask_softmax(Eager& eager, const Tensor& scores, bool causal);
/// Whether that kernel takes these scores: of 16 bits, 17 to 4096 keys, and queries, keys and matrices each a multiple
/// of four.
bool fused_softmax_takes(const Tensor& scores);
/// The same of scores that it does not take, as operations of PyTorch: in fp16 in fp32 and scaled by the layer's
/// number.
Tensor separate_softmax(Eager& eager, const Tensor& scores, const Tensor& hidden);
Tensor bias_gelu(Eager& eager, const Tensor& x, const Tensor& bias);
/// residual + dropout(x + bias); the bias may be undefined.
Tensor bias_dropout_add(Eager& eager, const Tensor& x, const Tensor& bias, const Tensor& residual, double dropout);
/// silu(first half) times second half.
Tensor swiglu(Eager& eager, const Tensor& x);
/// Rotary positions of [sequence, batch, heads, width].
Tensor rotate(Eager& eager, const Tensor& x);
Tensor rms_norm(Eager& eager, const Tensor& x, const Parameter& weight);
/// Queries, keys and values [sequence, batch, heads, width] of a product in which each key and its value stand behind
/// the queries that share them: views, but queries that share keys are copied together; backward one concatenation.
std::array<Tensor, 3> split_heads(Eager& eager, const Tensor& mixed, std::int64_t queries, std::int64_t keys,
                                  std::int64_t width);

/// Rows of this rank's part of a token table, zeros for the tokens of others.
Tensor rows_of_part(Eager& eager, const Tensor& tokens, Parameter& table);
/// The same, added up over the ranks.
Tensor vocabulary_embedding(Eager& eager, const Split& split, const Tensor& tokens, Parameter& table);
/// Mean of the losses of logits [sequence, batch, part of the vocabulary], as one number.
Tensor vocabulary_cross_entropy(Eager& eager, const Split& split, const Tensor& logits, const Tensor& targets);
/// The same by TransformerEngine's kernels, which write the gradient over the logits.
Tensor fused_cross_entropy(Eager& eager, const Split& split, const Tensor& logits, const Tensor& targets);
/// The script's mean of losses: times the mask, over the sum of the mask.
Tensor mean_of_losses(Eager& eager, const Tensor& losses);
/// The part of a rank along the first dimension; backward all parts are gathered.
Tensor scatter_sequence(Eager& eager, const Split& split, const Tensor& x);

}  // namespace ridgeline::families::megatron
