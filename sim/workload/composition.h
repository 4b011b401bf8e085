// A network as a composition of blocks: what a description of family `composed` says, or what a Hugging Face
// config.json of most families is rewritten as.
//
// A stack is an input, layers of attention and feed-forward parts, and what is on top. A network is one stack, or an
// encoder and a stack that looks at its result (cross attention) or is compared with it (contrastive).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/model.h"

namespace ridgeline {

enum class InputKind : std::uint8_t { tokens, image, audio };
enum class PositionKind : std::uint8_t {
  none,
  learned,     ///< a trained table
  sinusoidal,  ///< a table that is not trained
  rotary,
  alibi,        ///< a slope for each head, added to scores
  relative,     ///< a trained number for each head and bucket of distances, added to scores
  disentangled  ///< a trained row for each bucket of distances, scored against queries and keys
};
/// Which numbers of a head a rotation pairs.
enum class RotaryStyle : std::uint8_t {
  halves,  ///< i and i + half: two products, a concatenation
  pairs,   ///< 2i and 2i + 1: interleaved
  complex  ///< 2i and 2i + 1 as one complex number in fp32, of code: plain
};
enum class NormKind : std::uint8_t {
  layer,
  rms,
  rms_fused,          ///< one kernel forward and one backward (torchtitan's fused_rmsnorm)
  rms_plus_one,       ///< the weight is kept as its distance from one
  rms_cast_last,      ///< the weight's product is in fp32, before the cast
  rms_t5,             ///< casts only 16-bit weights: the product stays in fp32
  layer_written_out,  ///< in operations of its own, in fp32
  layer_plus_one      ///< the weight is kept as its distance from one; in autocast's type
};
enum class NormPlace : std::uint8_t {
  pre,
  post,  ///< after the residual sum
  both,  ///< before the part and on what it gives, before the sum
  after  ///< only on what the part gives, before the sum
};
enum class ResidualKind : std::uint8_t {
  serial,
  parallel,           ///< attention and feed-forward read one norm's result
  parallel_two_norms  ///< … each its own
};
enum class ProjectionKind : std::uint8_t {
  separate,
  fused,          ///< queries, keys, values one after another
  fused_by_head,  ///< … of each head
  fused_slices,   ///< as fused, cut by three slices, whose gradients are three tensors of the whole
  fused_groups    ///< queries, values, keys of a quarter of the heads, and so on; each copied into the order of heads
};
/// How a fused attention gets keys that heads share.
enum class GroupingKind : std::uint8_t {
  told,       ///< as they are, where the backend takes them
  broadcast,  ///< views that no fused backend takes
  copied      ///< one for each head
};
enum class QueryKeyNorm : std::uint8_t {
  none,
  head,      ///< weights that all heads share
  width,     ///< of all heads together
  each_head  ///< of each head, with weights of its own
};
/// Targets that a classifier's scores are compared with.
enum class ClassLoss : std::uint8_t {
  cross_entropy,
  squares,    ///< numbers: the mean squared error
  each_label  ///< a yes or no for each label: binary cross entropy with logits
};
/// Norm of what an image tower gives, before it becomes rows among tokens.
enum class ImageNorm : std::uint8_t {
  none,
  rms,          ///< as those of the main stack
  layer_joined  ///< a layer norm of patches that are joined
};
/// How a router makes shares of scores.
enum class RouterKind : std::uint8_t {
  softmax,
  sigmoid,      ///< a number of each expert is added before the choice alone; shares add up to one
  sparse_mixer  ///< of PhiMoE: one expert after another is drawn by chance, with a gradient of its own
};
enum class FeedForwardKind : std::uint8_t {
  plain,
  gated,
  gated_fused  ///< gate and up are one product
};
/// What a block computes attention with: PyTorch's fused operation where the training asks for it, or the model's own
/// products and softmax whatever is asked.
enum class AttentionCode : std::uint8_t {
  fused,
  written_out,
  written_out_fp32,
  written_out_flat  ///< sequences and heads are one batch that is copied; no masked score is below the lowest number
};
/// Where scores are scaled: in the attention, the queries by a product of their own, or nowhere.
enum class ScorePlace : std::uint8_t { attention, queries, nowhere };
enum class ComposedActivation : std::uint8_t {
  gelu,
  gelu_tanh,
  gelu_spelled_out,  ///< x/2 (1 + erf(x/√2)), five operations
  gelu_written_out,  ///< x/2 (1 + tanh(√(2/π) (x + 0.0447 x³))), eight operations
  relu,
  relu_squared,
  silu,
  quick_gelu,  ///< x · sigmoid(1.7 x)
  tanh,
  clamped_silu,  ///< of GPT-OSS
  bloom_gelu     ///< gelu-written-out in 16 bits, with a backward pass of its own
};
enum class HeadKind : std::uint8_t {
  none,
  language_model,
  masked_lm,
  pretraining,  ///< masked words, and whether the second sentence follows the first
  sequence_classification,
  token_classification,
  question_answering,
  image_classification,
  contrastive
};
/// What turns the last hidden states into what a classifier reads.
enum class PoolerKind : std::uint8_t {
  none,
  first_token,
  dense_tanh,
  dense_activation,
  pretrained_tanh,  ///< dense and tanh of the first token, which belong to the pretrained network
  class_and_mean,   ///< the first token beside the mean of the others
  mean,             ///< of all tokens
  mean_norm,        ///< of all but the first, with a norm
  mean_patches      ///< of all but the first
};

/// What runs on top of a stack, and no loss reads.
enum class UnreadTop : std::uint8_t {
  none,
  norm,   ///< of the class token
  dense,  ///< of the first token, and a tanh
  probe   ///< a trained query that looks at all patches, a norm and a feed-forward part
};

/// Sizes of 0 follow from others, as said.
struct Stack {
  // Whose code runs.
  bool plain = false;           ///< PyTorch's own modules put together, without what Transformers' classes do besides
  bool loss_alone = false;      ///< the network gives its loss back without the scores
  bool output_modules = false;  ///< dense, dropout, sum and norm behind a part are a module of their own, as in BERT
  bool sequence_first = false;  ///< [tokens, sequences, hidden]: heads are batches of a product without a copy
  bool activation_adds_bias = false;  ///< the bias before the activation is an operation of its own
  // Input.
  InputKind input = InputKind::tokens;
  std::int64_t vocabulary = 0;
  std::int64_t embedding_width = 0;  ///< of the tables; 0 = hidden. Else projected to hidden
  bool embedding_projection_bias = true;
  bool embedding_scale = false;    ///< token rows are multiplied by a number
  bool keeps_scaled_rows = false;  ///< the model has the scaled rows in a variable, not those of the table
  bool embedding_norm = false;
  double embedding_dropout = 0.0;
  std::int64_t type_vocabulary = 0;
  std::int64_t box_rows = 0;  ///< of tables of a token's box on its page: left and right, top and bottom, height, width
  std::int64_t image_size = 0, patch = 0, channels = 3;
  bool patch_bias = true, class_token = false;
  std::int64_t extra_tokens = 0;  ///< further trained tokens before the patches
  bool mask_token = false;        ///< a trained token that no step of a classifier reads
  bool late_tokens = false;       ///< the further tokens come behind the positions, which they have none of
  bool token_dropout = false;     ///< rows of masked tokens are set to zero, all are made larger for it
  bool contact_head = false;      ///< a number for each head of each layer, and a bias, that no loss reads (ESM)
  std::int64_t audio_bins = 0;
  // Positions.
  PositionKind positions = PositionKind::none;
  std::int64_t max_positions = 0;      ///< longest sequence; 0 = any
  std::int64_t position_offset = 0;    ///< rows of a learned table before the first position
  bool positions_from_tokens = false;  ///< counted where a token is no padding, as RoBERTa does
  RotaryStyle rotary_style = RotaryStyle::halves;
  double rotary_share = 1.0;              ///< of a head's width that is turned
  std::int64_t rotary_width = 0;          ///< … or its numbers
  bool rotary_fp32 = false;               ///< heads are turned in fp32
  bool rotary_angles_fp32 = false;        ///< angles stay in fp32, which widens products of a head with them (OLMo)
  bool images_apart = false;              ///< attention to each image is a call, and to each window of window_side
  std::vector<std::int64_t> full_layers;  ///< of windows of images_apart: layers that look at the whole image
  std::vector<std::string> rotary_kinds;  ///< turned or plain, repeated over the layers; none = all are turned
  bool rotary_cast = false;      ///< the script casts the network with its angles (model.to), not its weights alone
  bool position_buffer = false;  ///< a table that is not trained is no parameter either
  bool rotary_table = false;     ///< angles are rows of a table that is not trained
  bool turned_in_place = false;  ///< each layer picks angles from a table and turns heads as a product left them
  bool alibi_added = false;      ///< slopes are added to scores by themselves, in fp32
  std::int64_t relative_buckets = 32;
  bool relative_in_place =
      false;  ///< the host counts the buckets; a copy for each sequence is added to scores in place
  bool relative_each_layer = false;  ///< every layer has such numbers of its own, and crossed attention a mask of zeros
  bool patch_distances = false;      ///< each layer has a trained number for each head and distance of patches
  // Disentangled positions.
  std::int64_t position_rows = 0;           ///< buckets of distances, on both sides together
  std::vector<std::string> position_terms;  ///< content-to-position, position-to-content
  bool position_norm = false;               ///< of their table
  bool shared_position_projection = false;  ///< with queries and keys
  bool position_table = false;              ///< a learned one in the embeddings too
  std::int64_t first_convolution = 0;       ///< tokens that a convolution beside the first layer sees; 0 = none
  // Layers.
  std::int64_t layers = 0, hidden = 0;
  std::int64_t layer_groups = 0;  ///< layers share weights in this many groups; 0 = none do
  NormKind norm = NormKind::layer;
  bool norm_weight = true, norm_bias = true;
  NormPlace norm_place = NormPlace::pre;
  ResidualKind residual = ResidualKind::serial;
  bool residual_scale = false;  ///< what a part gives is multiplied by a number before the sum
  bool layer_scale = false;     ///< … by a trained vector
  double drop_path = 0.0;       ///< share of sequences that a part is left out for, in the last layer
  bool norms_behind = false;    ///< norms of a layer come behind its parts in the order of parameters
  bool first_norm = true;       ///< the first layer's attention has a norm
  bool final_norm = true, final_dropout = false;
  double dropout = 0.0;
  std::int64_t target_length = 0;  ///< tokens of a sequence beside an encoder's; 0 = as many
  bool attention_output_dropout = true;
  bool residual_dropout = true;    ///< what a part gives goes through a dropout, of probability 0 too
  bool drops_layers = false;       ///< each layer asks a random number of the host whether it runs
  bool weights_by_inputs = false;  ///< weights of blocks lie as [in, out], as in Transformers' Conv1D
  // Attention.
  std::int64_t heads = 0, key_value_heads = 0, head_dim = 0;
  std::int64_t key_copies = 1;  ///< tensor parallel ranks that have the same keys and values; of a rank's share
  ProjectionKind projection = ProjectionKind::separate;
  bool parts_selected =
      false;  ///< of fused-by-head: each part of a head is taken by index, whose gradients are three of the whole
  bool copies_heads = false;  ///< queries, keys and values are copied into the order of heads
  GroupingKind grouping = GroupingKind::told;
  bool qkv_bias = true, output_bias = true;
  std::optional<bool> key_bias;
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  ScorePlace score_scale = ScorePlace::attention;
  AttentionCode attention_code = AttentionCode::fused;
  bool softmax_fp32 = true;  ///< of attention written out
  bool causal = true;
  bool looks_for_documents = true;   ///< the host asks whether positions rise by one throughout, if causal
  bool mask_filled = false;          ///< hidden scores are filled in rather than added to; plain: of a layer's buffer
  bool always_masked = false;        ///< a mask is given where a causal kernel would do
  bool cross_attention = false;      ///< to the encoder's result
  bool queries_by_position = false;  ///< turned queries are multiplied by a number of their position
  std::optional<bool> adds_mask;     ///< eager attention of an encoder adds a mask of ones; empty = as the software
  bool sinks = false;                ///< a trained number for each head beside the scores
  double attention_dropout = 0.0;
  double score_cap = 0.0, logit_cap = 0.0;
  std::int64_t window = 0;               ///< tokens one may look back to; 0 = all
  std::int64_t window_from = 0;          ///< the first layer with a window, where layer_kinds does not say
  std::vector<std::string> layer_kinds;  ///< full or window, repeated over the layers; none = all as `window` says
  // Windows of an image, in stages of half the side and twice the width.
  std::vector<std::int64_t> stage_layers, stage_heads;
  std::int64_t window_side = 0;  ///< patches; every other layer's are moved by half of it
  // Latent attention.
  std::int64_t query_rank = 0, key_value_rank = 0, rotary_head_dim = 0, value_head_dim = 0;
  // Feed-forward.
  FeedForwardKind feed_forward_kind = FeedForwardKind::plain;
  std::int64_t feed_forward = 0;  ///< 0 = 4 x hidden
  bool feed_forward_bias = true;
  std::optional<bool> down_bias;  ///< of the last product, where it differs
  ComposedActivation activation = ComposedActivation::gelu;
  double activation_dropout = 0.0;
  // Experts.
  std::int64_t experts = 0, experts_per_token = 2, expert_feed_forward = 0, shared_feed_forward = 0;
  RouterKind router = RouterKind::softmax;
  bool shared_gate = false, expert_bias = false, router_bias = false;
  bool router_fp32 = false;        ///< its product is in fp32 whatever the model's type is
  bool router_correction = false;  ///< a number of each expert, not trained, is added before the choice
  std::int64_t dense_layers = 0;   ///< the first ones, without experts
  std::int64_t expert_step = 1;    ///< every so many layers have experts
  std::int64_t experts_end = 0;    ///< the layer behind the last that has them; 0 = all may
  // Head.
  HeadKind head = HeadKind::language_model;
  bool tie_embeddings = true;
  bool head_bias = false;
  bool logit_offset = false;    ///< a row that is not trained is added to the scores, in fp32
  bool head_transform = false;  ///< dense, activation and norm before the scores
  bool head_transform_bias = true;
  bool head_scale = false;        ///< hidden states are scaled before tied scores
  bool logit_scale = false;       ///< scores are multiplied by a number
  bool loss_fp32 = true;          ///< scores are cast to fp32
  bool masked_loss_fp32 = false;  ///< … of a masked language model too
  PoolerKind pooler = PoolerKind::none;
  UnreadTop unread_top = UnreadTop::none;
  bool positions_picked = false;  ///< an image's table is gathered from by index
  std::int64_t labels = 2;
  ClassLoss class_loss = ClassLoss::cross_entropy;
  std::int64_t projection_width = 0;  ///< of a contrastive pair
  bool pair_loss = false;             ///< each pair of a batch is a yes or no, an image is pooled by a trained query
  // An encoder's image in the place of marked tokens: patches are pooled, normed, joined and projected.
  bool image_rows = false;
  std::int64_t image_pool = 1, image_merge = 1;  ///< patches of a side that are averaged, or joined
  ImageNorm image_norm = ImageNorm::none;
  bool image_merge_projection = false;  ///< back to the tower's width, without a bias
  std::int64_t image_layers = 2;        ///< linear layers up to hidden
  std::int64_t image_width = 0;         ///< between two of them; 0 = hidden
  bool image_bias = true;
  ComposedActivation image_activation = ComposedActivation::gelu;
  std::int64_t image_deep = 0;     ///< further projectors, whose rows are added behind as many first layers (DeepStack)
  std::int64_t unread_layers = 0;  ///< of a tower: behind the layer whose result is read
  bool operator==(const Stack&) const = default;

  [[nodiscard]] std::int64_t head_width() const { return head_dim > 0 ? head_dim : heads > 0 ? hidden / heads : 0; }
  [[nodiscard]] std::int64_t key_value_count() const { return key_value_heads > 0 ? key_value_heads : heads; }
  [[nodiscard]] std::int64_t inner() const { return feed_forward > 0 ? feed_forward : 4 * hidden; }
  /// What a mask of padding would reach, if there were one.
  [[nodiscard]] bool takes_mask() const {
    return input == InputKind::tokens && positions != PositionKind::relative &&
           positions != PositionKind::disentangled && !plain;
  }
  /// Rows that an image of this tower has before they are pooled or joined, without the class token.
  [[nodiscard]] std::int64_t patch_side() const { return patch > 0 ? image_size / patch : 0; }
  [[nodiscard]] std::int64_t table_width() const { return embedding_width > 0 ? embedding_width : hidden; }
  /// Of what the last layer gives.
  [[nodiscard]] std::int64_t out_width() const {
    return stage_layers.empty() ? hidden : hidden << (stage_layers.size() - 1);
  }
  /// Numbers of a head that rotary positions turn; with latent keys those of the part that moves.
  [[nodiscard]] std::int64_t turned() const {
    if (key_value_rank > 0) return rotary_head_dim;
    return rotary_width > 0 ? rotary_width
                            : static_cast<std::int64_t>(rotary_share * static_cast<double>(head_width()) + 1e-9);
  }
  [[nodiscard]] bool windowed(std::int64_t layer) const {
    if (window == 0) return false;
    if (layer_kinds.empty()) return layer >= window_from;
    return layer_kinds[static_cast<std::size_t>(layer) % layer_kinds.size()] == "window";
  }
  /// Tokens of each call of attention to an image, where each image and window has one of its own; empty: one of all.
  [[nodiscard]] std::vector<std::int64_t> tokens_of_calls(std::int64_t layer) const;
  [[nodiscard]] bool turns(std::int64_t layer) const {
    return rotary_kinds.empty() || rotary_kinds[static_cast<std::size_t>(layer) % rotary_kinds.size()] == "turned";
  }
  /// Stage of windows that a layer belongs to; 0 without stages.
  [[nodiscard]] std::int64_t stage_of(std::int64_t layer) const {
    std::int64_t stage = 0;
    for (const std::int64_t layers_of_stage : stage_layers) {
      if (layer < layers_of_stage) break;
      layer -= layers_of_stage;
      ++stage;
    }
    return stage;
  }
  /// Tokens of a sequence that enter a layer, of `length` tokens of text.
  [[nodiscard]] std::int64_t tokens_before(std::int64_t layer, std::int64_t length) const {
    if (input == InputKind::audio) return max_positions;
    if (input == InputKind::tokens) return length;
    const std::int64_t side = (image_size / patch) >> stage_of(layer);
    return side * side + (class_token ? 1 : 0) + extra_tokens;
  }
  /// Elements of the matrices of all experts of the stack.
  [[nodiscard]] std::int64_t weights_of_experts() const {
    std::int64_t with = 0;
    for (std::int64_t layer = 0; layer < layers; ++layer) with += has_experts(layer) ? 1 : 0;
    const std::int64_t wide = expert_feed_forward > 0 ? expert_feed_forward : inner();
    return with * experts * (feed_forward_kind == FeedForwardKind::plain ? 2 : 3) * wide * hidden;
  }
  [[nodiscard]] bool has_experts(std::int64_t layer) const {
    return experts > 0 && layer >= dense_layers && (layer + 1) % expert_step == 0 &&
           (experts_end == 0 || layer < experts_end);
  }
};

struct Composition {
  Stack stack;
  std::optional<Stack> encoder;
  /// The stream of a sequence: a tensor that goes from block to block.
  struct Carried {
    std::int64_t tokens = 0, width = 0;
  };
  /// Tensors that block `block` of a pipeline's stage receives, where `length` tokens are read; blocks count from the
  /// encoder's.
  [[nodiscard]] std::vector<Carried> carried_before(std::int64_t block, std::int64_t length) const;
  /// Equal for blocks that run the same operations; an encoder's blocks come before the others.
  [[nodiscard]] std::int64_t kind_of_block(std::int64_t block) const;
  bool operator==(const Composition&) const = default;
};

/// Tokens of each sequence where the network takes no others (patches of an image and a class token); 0 = any.
std::int64_t only_length(const ModelDescription& model);

/// Rows of an image among the tokens of a sequence; 0 = none.
std::int64_t rows_of_image(const Composition& composition);

/// The same network outside training.
CompositionHandle without_dropout(const CompositionHandle& composition);

}  // namespace ridgeline
