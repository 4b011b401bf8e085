// A stack of blocks as Transformers' modules run it: embeddings, layers, the last norm.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/workload/composition.h"
#include "sim/workload/families/split_layers.h"
#include "sim/workload/families/stack_weights.h"
#include "sim/workload/families/stage_part.h"
#include "sim/workload/families/token_place.h"
#include "sim/workload/families/transformers_code.h"
#include "sim/workload/parallel/context_parallel.h"
#include "sim/workload/parallel/expert_parallel.h"

namespace ridgeline::families {

/// What a stack takes from the network it belongs to.
struct StackSite {
  Eager& eager;
  DType type = DType::fp32;  ///< of parameters
  const TrainingDescription& training;
  AttentionChoice attention;
  /// Runs a block, with what a wrapper or checkpointing does around it.
  std::function<Tensor(const std::function<Tensor(Eager&, Tensor)>&, Tensor)> run_block;
  /// Keys and values of a layer after these new ones, while text is generated.
  std::function<void(Tensor& keys, Tensor& values)> remember;
  std::function<bool()> generates;
  std::function<bool()> has_cache;             ///< of keys and values
  std::function<bool()> has_fixed_cache;       ///< behind a mask
  std::function<std::int64_t()> visible_keys;  ///< that a query may look at
  const TokenPlace& place;
  std::function<Tensor(const Dims&, DType)> buffer;
  std::function<Parameter*(const Dims&)> parameter;
  /// As Family::linear_layer.
  std::function<Affine(std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole>, bool by_inputs)>
      linear_layer;
  SplitLayers& split;
  parallel::ExpertParallel* ranks_of_experts = nullptr;           ///< that experts are spread over; null: none
  parallel::ContextParallel* context = nullptr;                   ///< that share each sequence; null: none
  std::function<Parameter*(const Dims&)> token_table{};           ///< where that is no parameter as others are
  std::function<Parameter*(const Dims&)> parameter_of_experts{};  ///< of a part of the experts
};

class StackNetwork {
 public:
  /// Makes the parameters of a part of the stack; blocks are numbered from `first_block`. `tokens`: the table of
  /// another stack to share. `grid`: of a stage, which begins and ends with what others do.
  StackNetwork(const Stack& stack, StackSite& site, std::int16_t first_block, const StagePart& part,
               const Affine* tokens = nullptr, std::int64_t grid = 0);

  /// [batch, length, hidden] after the last norm, of ids [batch, length], images or audio; of a part behind the first,
  /// of what the part before it gives. `encoded` is what cross attention looks at.
  /// `positions`: of tokens that continue a text.
  Tensor run(const Tensor& input, const Tensor& encoded = {}, const Tensor& positions = {});

  [[nodiscard]] const Affine& tokens() const { return tokens_; }
  /// Up to the width of the tables, where that differs from hidden.
  [[nodiscard]] const Affine& output_projection() const { return projection_out_; }
  [[nodiscard]] std::int64_t frozen() const { return frozen_; }

  // Blocks, for heads too.
  Parameter* parameter(const Dims& sizes);
  Affine linear_layer(std::int64_t out, std::int64_t in, bool bias, std::optional<LinearRole> role = {}) {
    return site_.linear_layer(out, in, bias, role, s_.weights_by_inputs && eager_.recorder.layer >= 0);
  }
  Affine norm_layer(std::int64_t width);
  Tensor norm(const Tensor& x, const Affine& weights);
  /// The same between layers that ranks share, of which a rank sees a part of the sequence.
  Affine norm_between(std::int64_t width);
  Tensor between(const Tensor& x, const Affine& weights);
  Tensor activated(const Tensor& x, ComposedActivation activation);
  /// The activation of a feed-forward part, which torch.utils.checkpoint may hold.
  Tensor activated_inside(const Tensor& x);
  /// Gives up what is a variable of the network until its pooler, or the loss, has run.
  void forget() { held_ = Tensor{}; }
  /// What no loss reads of [batch, length, hidden].
  void run_unread_top(const Tensor& x);
  /// Rows of an image that are added behind the first layers of the next run.
  void add_behind_layers(std::vector<Tensor> rows) { deep_rows_ = std::move(rows); }
  // Experts by themselves, in a network that is no stack.
  void make_lone_experts() { make_experts(layers_.emplace_back().experts); }
  Tensor run_lone_experts(const Tensor& x) { return part_two(layers_.front(), 0, x); }

 private:
  /// What all layers see. `rows`: of tokens, where the model has them in a variable.
  struct Around {
    Tensor encoded, mask, window_mask, bias, distances, distance_rows;
    Rotation by;
    Tensor rows, positions, position_rows;
  };
  struct Attended {
    Tensor result, probabilities;
  };
  /// Gives up variables of a layer at its end, or where a recomputation stops inside it.
  struct LayerVariables {
    StackNetwork& of;
    ~LayerVariables() { of.context_ = of.intermediate_ = Tensor{}; }
  };
  void keep_unread(const Dims& sizes);
  void make_unread_top();
  void make_embedding(const Affine* tokens);
  void make_tables(const Affine* tokens);
  /// Token rows are all that blocks read: each rank's part of the sequence can be taken of them.
  [[nodiscard]] bool reads_rows_alone() const;
  void make_layer(std::int64_t number);
  void make_layers();
  void make_positions();
  /// Of the weights of a layer: layers of one group share them.
  [[nodiscard]] std::int64_t group_of(std::int64_t layer) const {
    return s_.layer_groups > 0 ? layer * s_.layer_groups / s_.layers : layer;
  }
  void make_attention(AttentionWeights& weights, bool latent);
  void make_latent_attention(AttentionWeights& weights);
  void make_relative(AttentionWeights& weights);
  void make_feed_forward(FeedForwardWeights& weights, std::int64_t inner);
  void make_experts(ExpertWeights& weights);

  /// `around`: rows that are variables of the model.
  Tensor embed(const Tensor& input, Around& around);
  /// Of tokens with types, whose rows are variables of the module.
  Tensor embed_typed(const Tensor& ids);
  Tensor zero_types(const Tensor& ids);
  Tensor position_index(const Tensor& ids, std::int64_t length);
  Tensor embed_image(const Tensor& pixels);
  Tensor embed_audio(const Tensor& spectrogram);
  Tensor with_positions(Tensor rows, const Tensor& ids, Around& around);
  Tensor with_boxes(Tensor rows, const Tensor& ids);
  Tensor counted_positions(const Tensor& ids);
  Tensor masked_rows_dropped(const Tensor& rows, const Tensor& ids);
  Tensor with_late_tokens(const Tensor& x);
  void look_around(const Tensor& x, const Tensor& encoded, const Tensor& given, Around& around);
  void make_masks(const Tensor& x, bool narrow, Around& around);
  /// Whether any token of the prompt is padding: the host waits for the answer.
  void look_for_padding();
  /// Whether a token may look at another: [batch or 1, 1, length, length] booleans.
  Tensor visibility(std::int64_t rows, std::int64_t length);
  Tensor relative_bias(const AttentionWeights& weights, std::int64_t length);
  /// Buckets of the distance between any two tokens, and the trained rows of the buckets.
  void look_at_distances(std::int64_t rows, std::int64_t length, Around& around);
  void project_biased(const AttentionWeights& weights, const Tensor& x, Tensor& q, Tensor& k, Tensor& v);
  Attended attend_sequence_first(const AttentionWeights& weights, const Tensor& x, const Around& around);
  Attended attend_disentangled(const AttentionWeights& weights, const Tensor& x, const Around& around);
  /// The first layer's result and a convolution of what it was given, normed.
  Tensor beside_first_layer(const Tensor& given, const Tensor& x);
  Tensor position_scores(const AttentionWeights& weights, const Tensor& q, const Tensor& k, const Around& around,
                         std::int64_t batch);
  /// Rows of all heads as one batch: [batch x heads, length, width].
  Tensor batch_of_heads(const Tensor& rows);
  Tensor alibi(std::int64_t rows, std::int64_t length);

  Tensor layer(std::int64_t number, const LayerWeights& weights, Tensor x, const Around& around);
  // Stages of windows.
  void make_stages();
  Tensor run_stages(Tensor x);
  /// Four neighbouring patches become one of twice the width.
  Tensor merged(const Tensor& x, std::size_t stage);
  Tensor window_layer(std::int64_t number, const LayerWeights& weights, const Tensor& x);
  Tensor window_attention(const AttentionWeights& weights, const Tensor& windows, std::int64_t sequences, bool moved);
  Tensor window_bias(const AttentionWeights& weights, std::int64_t side);
  /// The same for patches of a whole image and a class token, through a table that is taken apart and joined again.
  Tensor patch_bias(const AttentionWeights& weights);
  /// Fused attention with a bias [1 or rows, heads, length, length] that has a gradient.
  Tensor biased_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias);
  Tensor moved_mask(std::int64_t sequences, std::int64_t windows, std::int64_t side, DType type);
  Tensor parallel_layer(std::int64_t number, const LayerWeights& weights, const Tensor& x, const Around& around);
  /// Norms around a part, dropout and the sum.
  struct Sides {
    const Affine &before, &after;
    Parameter* scale = nullptr;
    bool dropped = true, normed = true;
    std::int64_t layer = 0;
  };
  template <typename Part>
  Tensor residual(const Tensor& x, const Sides& sides, Part part);
  /// Branches of some sequences set to zero, the others made larger.
  Tensor path_dropped(const Tensor& branch, std::int64_t layer);
  void wait_for_a_number();

  /// True where a part of the running block runs again by itself (TrainingDescription::treated_blocks).
  [[nodiscard]] bool runs_again(BlockPart part) const;
  using Again = std::function<Tensor(Eager&, Tensor)>;
  Again attention_again(const AttentionWeights& weights, const Around& around, std::int64_t number);
  Again part_two_again(const LayerWeights& weights, std::int64_t number);
  Attended attend(const AttentionWeights& weights, const Tensor& given, const Around& around, std::int64_t number,
                  bool cross);
  void project(const AttentionWeights& weights, const Tensor& x, const Tensor& from, Tensor& q, Tensor& k, Tensor& v);
  /// Heads that are turned before they are brought before the tokens.
  void project_in_place(const AttentionWeights& weights, const Tensor& x, Tensor& q, Tensor& k, Tensor& v);
  void turn_in_place(Tensor& q, Tensor& k);
  void project_fused(const AttentionWeights& weights, const Tensor& x, Tensor& q, Tensor& k, Tensor& v);
  void norm_heads(const AttentionWeights& weights, Tensor& q, Tensor& k);
  void project_latent(const AttentionWeights& weights, const Tensor& x, const Rotation& by, Tensor& q, Tensor& k,
                      Tensor& v);
  /// Angles counted anew in each pass, as plain code does.
  Rotation counted_rotation(std::int64_t length, DType type);
  Tensor turned(const Tensor& x, const Rotation& by);
  Tensor scaled_by_position(const Tensor& queries);
  Tensor turned_part(const Tensor& x, const Rotation& by);
  Rotation rotation_of_layer(const Rotation& by);
  /// [batch, length, heads, width] of a layer whose images are calls of their own.
  Tensor attention_apart(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t number);
  Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal);
  /// `masked` and `probabilities` live as long as the caller's variables, where the code has them in some.
  Tensor written_out(const AttentionWeights& weights, const Tensor& q, const Tensor& k, const Tensor& v,
                     const Tensor& added, const Tensor& slopes, Tensor& masked, Tensor& probabilities);
  /// Of sequences and heads as one batch.
  Tensor written_out_flat(Tensor& q, Tensor& k, Tensor& v, const Tensor& mask, Tensor& probabilities);
  /// Norms look at the heads of all ranks: each has the columns of all, and attends alike.
  [[nodiscard]] bool gathers_heads() const { return site_.split.several() && s_.query_key_norm == QueryKeyNorm::width; }
  /// Whether rows, branches and norms are variables: text is generated by Transformers' class of a network whose plain
  /// code trains it.
  [[nodiscard]] bool keeps_variables() const { return s_.plain && site_.has_cache(); }
  /// The dropout of what a part gives, inside its module or behind it.
  Tensor dropped_inside(const Tensor& branch);
  [[nodiscard]] bool gets_mask() const;  ///< torch.compile leaves its mask a tensor
  [[nodiscard]] AttentionChoice backend_for(std::int64_t times, const Tensor& mask) const;
  [[nodiscard]] bool fuses() const;
  [[nodiscard]] bool scores_position(std::string_view term) const;

  Tensor part_two(const LayerWeights& weights, std::int64_t number, Tensor x);
  /// `inside`: between tensor parallel ranks that have entered, whose parts the caller adds up. Plain code gives its
  /// input up behind the first layer.
  Tensor feed_forward(const FeedForwardWeights& weights, Tensor given, bool inside = false);
  Tensor shared_experts(const ExpertWeights& weights, const Tensor& x, bool inside);
  /// `x` is what tensor parallel ranks have entered with, which each have some columns of every expert; the router may
  /// read what is before.
  Tensor routed(const ExpertWeights& weights, const Tensor& x, const Tensor& before);
  /// The same over ranks, each with a part of the experts: as many places for each expert as tokens come …
  Tensor routed_to_ranks(const ExpertWeights& weights, const Tensor& x, const Tensor& before);
  Tensor dropless(const ExpertWeights& weights, const Tensor& rows, const Tensor& chosen);
  /// … or a number of places that is known beforehand.
  Tensor capped(const ExpertWeights& weights, const Tensor& rows, const Tensor& chosen);
  Tensor gated(const Tensor& inner);
  void route_entered(const ExpertWeights& weights, const Tensor& rows, const Tensor& before, Tensor& chosen,
                     Tensor& share);
  void route(const ExpertWeights& weights, const Tensor& rows, Tensor& chosen, Tensor& share);
  void route_by_softmax(const Tensor& scores, Tensor& chosen, Tensor& share);
  void route_by_sigmoid(const Tensor& scores, Tensor& chosen, Tensor& share);
  void route_by_mixing(const Tensor& scores, Tensor& chosen, Tensor& share);

  const Stack& s_;
  StackSite& site_;
  Eager& eager_;
  std::int16_t first_block_;
  StagePart part_;
  Affine tokens_, positions_, types_, embedding_norm_, projection_in_, projection_out_, patches_, final_norm_;
  std::array<Affine, 4> boxes_;  ///< left and right, top and bottom, height, width
  Affine convolution_one_, convolution_two_;
  Parameter *class_token_ = nullptr, *extra_tokens_ = nullptr;
  // Variables of output modules' callers: of the network, of a layer's attention and of its feed-forward part.
  Tensor held_, context_, intermediate_;
  Tensor position_ids_, type_ids_, frequencies_, original_frequencies_, frozen_positions_;
  std::vector<Tensor> unread_, deep_rows_;
  std::size_t top_ = 0;  ///< the first of `unread_` that are on top
  std::int64_t frozen_ = 0;
  Affine distances_, distance_norm_, convolution_, convolution_norm_;  ///< beside the first layer
  struct Stage {
    Stack stack;
    std::unique_ptr<StackNetwork> network;
    Affine merge_norm, merge;
    bool ends = false, merges = false;  ///< its last layer is here; four patches become one behind it
  };
  std::vector<Stage> stages_;
  std::int64_t grid_ = 0;  ///< patches of a side, of a stage
  std::vector<LayerWeights> layers_;
};

}  // namespace ridgeline::families
