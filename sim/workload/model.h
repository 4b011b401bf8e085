// A transformer as a description of a few numbers: what models/NAME.yaml, a HuggingFace config.json or the `model` of a
// scenario says.
#pragma once

#include <cstdint>
#include <string>

namespace ridgeline {

enum class ModelFamily : std::uint8_t {
  gpt2,  ///< decoder, learned positions, pre-norm, one qkv projection (a nanoGPT-like module)
  bert,  ///< encoder, post-norm, pooler and a task head (HuggingFace's modules)
  llama  ///< decoder, rotary positions, RMS norm, gated feed-forward, grouped keys and values
};

/// `gelu` is the exact (erf) form. `swiglu` is silu(gate) * up, with a third projection.
enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, swiglu };

/// What sits on top of a bert and what its loss is. gpt2 and llama predict the next token.
enum class ModelHead : std::uint8_t {
  language_model,
  sequence_classification,
  question_answering,
  masked_lm,
  pretraining
};

struct ModelDescription {
  std::string name;
  ModelFamily family = ModelFamily::gpt2;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;  ///< llama; 0 = as many as heads
  std::int64_t hidden = 0;
  std::int64_t feed_forward = 0;  ///< inner width of the feed-forward part; 0 = 4 x hidden
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;    ///< rows of the position table (gpt2, bert)
  std::int64_t type_vocabulary = 2;  ///< bert
  double dropout = 0.0;              ///< of embeddings and of the residual branches
  double attention_dropout = 0.0;    ///< of attention probabilities
  bool bias = true;                  ///< of linear layers and of layer norms
  Activation activation = Activation::gelu;
  bool tie_embeddings = true;  ///< output projection shares the token table
  ModelHead head = ModelHead::language_model;
  bool sparse_weights = false;  ///< linear layers of the blocks are 2:4 sparse (a what-if)
  std::int64_t labels = 2;      ///< classes of a sequence classifier

  [[nodiscard]] std::int64_t head_dim() const { return heads > 0 ? hidden / heads : 0; }
  [[nodiscard]] std::int64_t key_value_count() const { return key_value_heads > 0 ? key_value_heads : heads; }
  [[nodiscard]] std::int64_t feed_forward_width() const { return feed_forward > 0 ? feed_forward : 4 * hidden; }
  bool operator==(const ModelDescription&) const = default;
};

/// What a prediction with `sparse_weights` says of itself.
inline constexpr const char* kSparseWeightsNote =
    "2:4 sparse weights: a what-if by the laws of dense products, not measured; pruning and compression take no time, "
    "and memory holds the weights densely";

/// Trained parameters, each counted once (a tied output projection adds nothing).
std::int64_t parameter_count(const ModelDescription& model);

/// FLOPs of one training step on `sequences` x `length` tokens by the model's definition: three times the forward
/// matrix products (a multiply-add counts two), attention scores in full, nothing recomputed, for MFU.
double model_flops(const ModelDescription& model, std::int64_t sequences, std::int64_t length);

/// Throws UserError with a sentence when the numbers cannot make a model (hidden not a multiple of heads, ...).
void check_model(const ModelDescription& model);

}  // namespace ridgeline
