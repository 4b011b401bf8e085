// A transformer as a description of a few numbers: what models/NAME.yaml, a HuggingFace config.json or the `model` of a
// scenario says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ridgeline {

enum class ModelFamily : std::uint8_t {
  gpt2,      ///< decoder, learned positions, pre-norm, one qkv projection (a nanoGPT-like module)
  bert,      ///< encoder, post-norm, pooler and a task head (HuggingFace's modules)
  llama,     ///< decoder, rotary positions, RMS norm, gated feed-forward, grouped keys and values
  composed,  ///< any other network, as a composition of blocks (sim/workload/composition.h)
  program    ///< a network that a file says line by line (sim/workload/networks/network_program.h)
};

/// `gelu` is the exact (erf) form; `gelu_spelled_out` the same as x * 0.5 * (1 + erf(x / sqrt 2)) in four operations of
/// its own, as models had it before PyTorch 1.4. `swiglu` is silu(gate) * up, with a third projection.
enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, swiglu, gelu_spelled_out };

/// What sits on top of a bert and what its loss is. gpt2 and llama predict the next token.
enum class ModelHead : std::uint8_t {
  language_model,
  sequence_classification,
  question_answering,
  masked_lm,
  pretraining
};

struct Composition;

/// A composition of blocks, shared between copies of a description and compared by what it says.
class CompositionHandle {
 public:
  CompositionHandle() = default;
  explicit CompositionHandle(std::shared_ptr<const Composition> composition) : composition_(std::move(composition)) {}
  [[nodiscard]] bool given() const { return composition_ != nullptr; }
  const Composition& operator*() const { return *composition_; }
  const Composition* operator->() const { return composition_.get(); }
  bool operator==(const CompositionHandle& other) const;

 private:
  std::shared_ptr<const Composition> composition_;
};

namespace networks {
struct ProgramModel;
}

/// A program with its sizes, shared between copies of a description and compared by what it says.
class ProgramHandle {
 public:
  ProgramHandle() = default;
  explicit ProgramHandle(std::shared_ptr<const networks::ProgramModel> program) : program_(std::move(program)) {}
  [[nodiscard]] bool given() const { return program_ != nullptr; }
  const networks::ProgramModel& operator*() const { return *program_; }
  const networks::ProgramModel* operator->() const { return program_.get(); }
  bool operator==(const ProgramHandle& other) const;

 private:
  std::shared_ptr<const networks::ProgramModel> program_;
};

struct ModelDescription {
  std::string name;
  ModelFamily family = ModelFamily::gpt2;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;  ///< llama, and Megatron-LM's gpt2; 0 = as many as heads
  std::int64_t hidden = 0;
  std::int64_t head_width = 0;    ///< llama: of one head; 0 = hidden over heads
  std::int64_t feed_forward = 0;  ///< inner width of the feed-forward part; 0 = 4 x hidden
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;    ///< rows of the position table (gpt2, bert)
  std::int64_t window = 0;           ///< llama: tokens that one may look back to, itself among them; 0 = all
  std::int64_t type_vocabulary = 2;  ///< bert
  double dropout = 0.0;              ///< of embeddings and of the residual branches
  double attention_dropout = 0.0;    ///< of attention probabilities
  bool bias = true;                  ///< of linear layers and of layer norms
  // llama, where they differ from `bias`: of the four projections of attention, of the three of the feed-forward part.
  std::optional<bool> attention_bias, feed_forward_bias;
  Activation activation = Activation::gelu;
  bool tie_embeddings = true;  ///< output projection shares the token table
  ModelHead head = ModelHead::language_model;
  std::optional<bool> plain;  ///< PyTorch's own modules, without what Transformers' code does besides; empty = gpt2 is
  bool fused_norms = false;   ///< plain llama: a norm is one kernel forward and one backward
  bool complex_rotary = false;  ///< plain llama: positions turn complex numbers, keys are copied for each head
  bool sparse_weights = false;  ///< linear layers of the blocks are 2:4 sparse (a what-if)
  std::int64_t labels = 2;      ///< classes of a sequence classifier
  // How the module is written where modules of one network differ (bert).
  std::optional<bool> adds_mask;      ///< eager attention adds a mask of ones to every score; empty = as the software
  bool sequence_first = false;        ///< [tokens, sequences, hidden]: heads are batches of a product without a copy
  bool activation_adds_bias = false;  ///< the bias before the activation is an operation of its own

  CompositionHandle composition;  ///< of family composed; the numbers above are then those of its last stack
  ProgramHandle program;          ///< of family program; the numbers above are those of its sizes that mean them

  std::vector<std::string> unread;  ///< keys of a HuggingFace config.json that nobody here knows

  [[nodiscard]] std::int64_t head_dim() const { return head_width > 0 ? head_width : heads > 0 ? hidden / heads : 0; }
  /// Of queries and of what attention gives back: hidden unless heads have a width of their own.
  [[nodiscard]] std::int64_t attention_width() const { return head_width > 0 ? heads * head_width : hidden; }
  [[nodiscard]] std::int64_t key_value_count() const { return key_value_heads > 0 ? key_value_heads : heads; }
  [[nodiscard]] std::int64_t feed_forward_width() const { return feed_forward > 0 ? feed_forward : 4 * hidden; }
  /// A longer sequence has no rows there.
  [[nodiscard]] bool has_position_table() const {
    if (family == ModelFamily::composed || family == ModelFamily::program) return max_positions > 0;
    return family != ModelFamily::llama;
  }
  [[nodiscard]] bool written_plain() const { return plain.value_or(family == ModelFamily::gpt2); }
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
/// Throws UserError where a sequence is longer than the model's attention looks back: no such mask is built.
void check_window(const ModelDescription& model, std::int64_t length);

}  // namespace ridgeline
