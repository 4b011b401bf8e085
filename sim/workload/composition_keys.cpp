#include "sim/workload/composition_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/workload/composition_choices.h"

namespace ridgeline {
namespace {

using config::Value;
namespace choices = composition_choices;

constexpr config::IntegerRange kStackLayers{0, 10000}, kLayers1{1, 10000}, kWidth{1, 1 << 24}, kWidth0{0, 1 << 24},
    kRows{0, std::int64_t{1} << 32}, kRows0 = kRows;
constexpr config::Range kShare{0.0, 1.0};

template <auto Member, const config::IntegerRange& Range>
constexpr CompositionKey integer(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (v.exists()) s.*Member = v.integer(Range);
          },
          [](const Stack& s) { return ModelValue(s.*Member); }};
}
/// An encoder takes it from the main stack, which has to say it.
template <auto Member, const config::IntegerRange& Range>
constexpr CompositionKey needed(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (v.exists() || s.*Member == 0) s.*Member = v.integer(Range);
          },
          [](const Stack& s) { return ModelValue(s.*Member); }};
}
template <auto Member>
constexpr CompositionKey number(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (v.exists()) s.*Member = v.number(kShare);
          },
          [](const Stack& s) { return ModelValue(s.*Member); }};
}
template <auto Member>
constexpr CompositionKey cap(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (v.exists()) s.*Member = v.number(config::Range::non_negative());
          },
          [](const Stack& s) { return ModelValue(s.*Member); }};
}
template <auto Member>
constexpr CompositionKey flag(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (v.exists()) s.*Member = v.boolean();
          },
          [](const Stack& s) { return ModelValue(s.*Member); }};
}
template <auto Member, const auto& Names>
constexpr CompositionKey choice(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (v.exists()) s.*Member = v.choice<std::remove_reference_t<decltype(s.*Member)>>(Names);
          },
          [](const Stack& s) {
            for (const auto& [text, value] : Names)
              if (value == s.*Member) return ModelValue(std::string(text));
            return ModelValue(std::string("?"));
          }};
}

constexpr std::array<std::string_view, 2> kLayerKinds{"full", "window"}, kRotaryKinds{"turned", "plain"};

/// A list of words, of which each is one of `Allowed`.
template <auto Member, const auto& Allowed>
constexpr CompositionKey words(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (!v.exists()) return;
            (s.*Member).clear();
            for (const Value& item : v.list()) {
              if (std::none_of(Allowed.begin(), Allowed.end(), [&](std::string_view one) { return item.is(one); }))
                item.fail(fmt::format("expected {}", fmt::join(Allowed, " or ")));
              (s.*Member).push_back(item.text());
            }
          },
          [](const Stack& s) { return ModelValue(fmt::format("[{}]", fmt::join(s.*Member, ", "))); }};
}

constexpr std::array<std::string_view, 2> kPositionTerms{"content-to-position", "position-to-content"};

template <auto Member>
constexpr CompositionKey integers(std::string_view name, std::string_view meaning) {
  return {name, meaning,
          [](const Value& v, Stack& s) {
            if (!v.exists()) return;
            (s.*Member).clear();
            for (const Value& item : v.list()) (s.*Member).push_back(item.integer(kLayers1));
          },
          [](const Stack& s) { return ModelValue(fmt::format("[{}]", fmt::join(s.*Member, ", "))); }};
}

constexpr CompositionKey kCompositionKeys[] = {
    choice<&Stack::plain, choices::kCodes>("code", "transformers, or plain: PyTorch's own modules put together"),
    flag<&Stack::loss_alone>("loss_alone", "the network gives its loss back without the scores"),
    flag<&Stack::output_modules>("output_modules",
                                 "dense, dropout, sum and norm behind a part are a module of their own, as in BERT"),
    flag<&Stack::sequence_first>("sequence_first", "tensors are [tokens, sequences, hidden], of an encoder"),
    flag<&Stack::activation_adds_bias>("activation_adds_bias", "in an operation of its own"),
    {"adds_mask", "eager attention of an encoder always adds one; not given: as the software",
     [](const Value& v, Stack& s) {
       if (v.exists() && !v.is("as the software")) s.adds_mask = v.boolean();
     },
     [](const Stack& s) { return s.adds_mask ? ModelValue(*s.adds_mask) : std::string("as the software"); }},
    choice<&Stack::input, choices::kInputs>("input", "tokens, image or audio"),
    integer<&Stack::vocabulary, kRows>("vocabulary", "rows of the token table"),
    integer<&Stack::embedding_width, kWidth0>("embedding_width", "of the tables, projected to hidden; 0 = hidden"),
    flag<&Stack::embedding_projection_bias>("embedding_projection_bias", "of that projection"),
    flag<&Stack::embedding_scale>("embedding_scale", "token rows are multiplied by a number"),
    flag<&Stack::keeps_scaled_rows>("keeps_scaled_rows",
                                    "the model has the scaled rows in a variable, not those of the table"),
    flag<&Stack::embedding_norm>("embedding_norm", "a norm after the tables are added up"),
    number<&Stack::embedding_dropout>("embedding_dropout", "after the embeddings"),
    integer<&Stack::type_vocabulary, kRows0>("type_vocabulary", "rows of the segment table; 0 = none"),
    integer<&Stack::box_rows, kRows0>("box_rows", "of each of four tables of a token's box on its page; 0 = none"),
    integer<&Stack::image_size, kWidth0>("image_size", "pixels of a side"),
    integer<&Stack::patch, kWidth0>("patch", "pixels of a side of a patch"),
    integer<&Stack::channels, kWidth>("channels", "of an image"),
    flag<&Stack::patch_bias>("patch_bias", "of the patch embedding"),
    flag<&Stack::class_token>("class_token", "a trained token before the patches"),
    integer<&Stack::extra_tokens, kWidth0>("extra_tokens", "further trained tokens before the patches"),
    flag<&Stack::mask_token>("mask_token", "a trained token that no step of a classifier reads"),
    flag<&Stack::late_tokens>("late_tokens", "the further tokens come behind the positions, which they have none of"),
    flag<&Stack::token_dropout>("token_dropout", "rows of masked tokens are set to zero, all are made larger for it"),
    flag<&Stack::contact_head>("contact_head", "a number for each head of each layer, and a bias, that no loss reads"),
    integer<&Stack::audio_bins, kWidth0>("audio_bins", "of a spectrogram with two frames a position"),
    choice<&Stack::positions, choices::kPositions>(
        "positions", "none, learned, sinusoidal, rotary, alibi, relative or disentangled"),
    integer<&Stack::max_positions, kRows0>("max_positions", "longest sequence; 0 = any"),
    integer<&Stack::position_offset, kRows0>("position_offset", "rows of the table before the first position"),
    flag<&Stack::positions_from_tokens>("positions_from_tokens", "counted where a token is no padding"),
    choice<&Stack::rotary_style, choices::kRotaryStyles>("rotary_style",
                                                         "which numbers are turned together: halves, pairs or complex"),
    number<&Stack::rotary_share>("rotary_share", "part of a head that is turned"),
    integer<&Stack::rotary_width, kWidth0>("rotary_width", "numbers of a head that are turned; 0 = by the share"),
    flag<&Stack::rotary_fp32>("rotary_fp32", "heads are turned in fp32"),
    flag<&Stack::rotary_angles_fp32>("rotary_angles_fp32",
                                     "angles stay in fp32, which widens products of a head with them"),
    words<&Stack::rotary_kinds, kRotaryKinds>("rotary_kinds", "turned or plain, repeated over the layers"),
    flag<&Stack::position_buffer>("position_buffer", "a table that is not trained is no parameter either"),
    flag<&Stack::rotary_table>("rotary_table", "angles are rows of a table that is not trained"),
    flag<&Stack::turned_in_place>("turned_in_place",
                                  "each layer picks angles from a table and turns heads as a product left them"),
    flag<&Stack::alibi_added>("alibi_added", "slopes are added to scores written out by themselves, in fp32"),
    integer<&Stack::position_rows, kRows0>("position_rows", "buckets of distances, for disentangled positions"),
    words<&Stack::position_terms, kPositionTerms>("position_terms", "content-to-position, position-to-content"),
    flag<&Stack::position_norm>("position_norm", "of the rows of disentangled positions"),
    integer<&Stack::first_convolution, kStackLayers>("first_convolution",
                                                     "tokens that a convolution beside the first layer sees; 0 = none"),
    flag<&Stack::shared_position_projection>("shared_position_projection",
                                             "they are projected as queries and keys are"),
    flag<&Stack::position_table>("position_table",
                                 "a learned table of positions in the embeddings beside disentangled or relative ones"),
    flag<&Stack::relative_in_place>(
        "relative_in_place", "the host counts the buckets; a copy for each sequence is added to scores in place"),
    flag<&Stack::relative_each_layer>("relative_each_layer",
                                      "every layer has numbers of relative positions of its own"),
    flag<&Stack::patch_distances>("patch_distances",
                                  "each layer has a trained number for each head and distance of patches"),
    integer<&Stack::relative_buckets, kWidth>("relative_buckets", "of distances, for relative positions"),
    needed<&Stack::layers, kLayers1>("layers", "blocks of attention and feed-forward"),
    needed<&Stack::hidden, kWidth>("hidden", "width"),
    integer<&Stack::layer_groups, kStackLayers>("layer_groups", "groups of layers that share weights; 0 = none do"),
    choice<&Stack::norm, choices::kNorms>(
        "norm",
        "layer, layer-written-out, layer-plus-one, rms, rms-fused (one kernel), rms-plus-one "
        "(weights are distances from one), rms-cast-last or rms-t5"),
    flag<&Stack::norm_weight>("norm_weight", "norms have weights"),
    flag<&Stack::norm_bias>("norm_bias", "layer norms have biases"),
    choice<&Stack::norm_place, choices::kNormPlaces>(
        "norm_place", "pre, post (after the sum), both (before a part and on its result) or after (on its result)"),
    choice<&Stack::residual, choices::kResiduals>("residual", "serial, parallel, or parallel-two-norms"),
    flag<&Stack::residual_scale>("residual_scale", "what a part gives is multiplied by a number before the sum"),
    flag<&Stack::layer_scale>("layer_scale", "… by a trained vector"),
    number<&Stack::drop_path>("drop_path", "share of sequences that the last layer's parts are left out for"),
    flag<&Stack::rotary_cast>("rotary_cast",
                              "the script casts the network with its angles (model.to), not its weights alone"),
    flag<&Stack::residual_dropout>("residual_dropout",
                                   "what a part gives goes through a dropout, of probability 0 too"),
    flag<&Stack::norms_behind>("norms_behind", "norms of a layer come behind its parts in the order of parameters"),
    flag<&Stack::first_norm>("first_norm", "the first layer's attention has a norm"),
    flag<&Stack::final_norm>("final_norm", "after the last block"),
    flag<&Stack::final_dropout>("final_dropout", "dropout after it"),
    number<&Stack::dropout>("dropout", "of the residual branches"),
    flag<&Stack::weights_by_inputs>("weights_by_inputs", "weights of blocks lie as [in, out]"),
    flag<&Stack::attention_output_dropout>("attention_output_dropout", "what attention gives back is dropped too"),
    integer<&Stack::target_length, kRows0>("target_length", "tokens of a sequence beside an encoder's; 0 = as many"),
    flag<&Stack::drops_layers>("drops_layers", "each layer asks a random number of the host whether it runs"),
    needed<&Stack::heads, kWidth>("heads", "of attention"),
    integer<&Stack::key_value_heads, kWidth0>("key_value_heads", "heads share them; 0 = heads"),
    integer<&Stack::head_dim, kWidth0>("head_dim", "width of a head; 0 = hidden over heads"),
    choice<&Stack::projection, choices::kProjections>(
        "projection", "queries, keys and values: separate, fused, fused-slices, fused-groups, or fused-by-head"),
    flag<&Stack::parts_selected>("parts_selected", "queries, keys and values of fused-by-head are taken by index"),
    flag<&Stack::copies_heads>("copies_heads", "queries, keys and values are copied into the order of heads"),
    choice<&Stack::grouping, choices::kGroupings>(
        "grouping", "of keys that heads share, in fused attention: told, broadcast or copied"),
    flag<&Stack::qkv_bias>("qkv_bias", "of queries, keys and values"),
    {"key_bias", "of keys, where it differs",
     [](const Value& v, Stack& s) {
       if (v.exists()) s.key_bias = v.boolean();
     },
     [](const Stack& s) { return ModelValue(s.key_bias.value_or(s.qkv_bias)); }},
    flag<&Stack::output_bias>("output_bias", "of what attention gives back"),
    choice<&Stack::query_key_norm, choices::kQueryKeyNorms>("query_key_norm",
                                                            "none, head (weights that heads share), width (all heads "
                                                            "together) or each-head (weights of its own)"),
    choice<&Stack::score_scale, choices::kScorePlaces>(
        "score_scale", "scores are scaled in the attention, by scaled queries, or nowhere"),
    choice<&Stack::attention_code, choices::kAttentionCodes>(
        "attention_code",
        "fused where the training asks for it, or always written-out, written-out-fp32 or written-out-flat"),
    flag<&Stack::softmax_fp32>("softmax_fp32", "of attention written out"),
    flag<&Stack::causal>("causal", "tokens look back only"),
    flag<&Stack::looks_for_documents>("looks_for_documents",
                                      "the host asks whether positions rise by one throughout, if causal"),
    flag<&Stack::mask_filled>("mask_filled", "hidden scores are filled in rather than added to, where written out"),
    flag<&Stack::always_masked>("always_masked", "a mask is given where a causal kernel would do"),
    flag<&Stack::cross_attention>("cross_attention", "to the encoder's result"),
    flag<&Stack::queries_by_position>("queries_by_position",
                                      "turned queries are multiplied by a number of their position"),
    flag<&Stack::sinks>("sinks", "a trained number for each head beside the scores"),
    number<&Stack::attention_dropout>("attention_dropout", "of attention probabilities"),
    cap<&Stack::score_cap>("score_cap", "scores go through a tanh of this height; 0 = not"),
    cap<&Stack::logit_cap>("logit_cap", "… the scores of the vocabulary"),
    integer<&Stack::window, kRows0>("window", "tokens one may look back to; 0 = all"),
    integer<&Stack::window_from, kRows0>("window_from",
                                         "the first layer with a window, where layer_kinds says nothing"),
    words<&Stack::layer_kinds, kLayerKinds>("layer_kinds", "full or window, repeated over the layers"),
    integers<&Stack::stage_layers>(
        "stage_layers", "layers of each stage of an image's windows: half the side, twice the width; layers follows"),
    integers<&Stack::stage_heads>("stage_heads", "heads of each stage; heads follows"),
    integer<&Stack::window_side, kWidth0>("window_side", "patches of a window's side, of stages or of images_apart"),
    flag<&Stack::images_apart>("images_apart", "attention to each image, and to each of its windows, is a call"),
    integers<&Stack::full_layers>("full_layers", "… layers that look at the whole image"),
    integer<&Stack::query_rank, kWidth0>("query_rank", "of latent queries; 0 = they are not"),
    integer<&Stack::key_value_rank, kWidth0>("key_value_rank", "of latent keys and values; 0 = they are not"),
    integer<&Stack::rotary_head_dim, kWidth0>("rotary_head_dim",
                                              "numbers of a head that positions turn, of latent attention"),
    integer<&Stack::value_head_dim, kWidth0>("value_head_dim", "width of a head of values, of latent attention"),
    choice<&Stack::feed_forward_kind, choices::kFeedForwardKinds>(
        "feed_forward_kind", "plain, gated, or gated-fused (gate and up in one product)"),
    integer<&Stack::feed_forward, kWidth0>("feed_forward", "inner width; 0 = 4 x hidden"),
    flag<&Stack::feed_forward_bias>("feed_forward_bias", "of its products"),
    {"down_bias", "of the last of them, where it differs",
     [](const Value& v, Stack& s) {
       if (v.exists()) s.down_bias = v.boolean();
     },
     [](const Stack& s) { return ModelValue(s.down_bias.value_or(s.feed_forward_bias)); }},
    choice<&Stack::activation, choices::kActivationsOfBlocks>(
        "activation",
        "gelu, gelu-tanh, gelu-spelled-out, gelu-written-out, relu, relu-squared, "
        "silu, quick-gelu, tanh, clamped-silu or bloom-gelu"),
    number<&Stack::activation_dropout>("activation_dropout", "after the activation"),
    integer<&Stack::experts, kWidth0>("experts", "feed-forward parts a router chooses from; 0 = none"),
    integer<&Stack::experts_per_token, kWidth>("experts_per_token", "that run"),
    integer<&Stack::expert_feed_forward, kWidth0>("expert_feed_forward", "inner width of an expert; 0 = feed_forward"),
    integer<&Stack::shared_feed_forward, kWidth0>("shared_feed_forward",
                                                  "inner width of what all tokens pass beside; 0 = none"),
    choice<&Stack::router, choices::kRouters>("router", "softmax, sigmoid or sparse-mixer"),
    flag<&Stack::router_fp32>("router_fp32", "the router's product is in fp32 whatever the type of the model is"),
    flag<&Stack::router_correction>("router_correction",
                                    "a number of each expert, not trained, is added before the choice"),
    flag<&Stack::shared_gate>("shared_gate", "the shared part is multiplied by a number of each token"),
    flag<&Stack::expert_bias>("expert_bias", "of experts' products"),
    flag<&Stack::router_bias>("router_bias", "of the router"),
    integer<&Stack::dense_layers, kRows0>("dense_layers", "first layers, without experts"),
    integer<&Stack::experts_end, kRows0>("experts_end",
                                         "the layer behind the last with experts; 0 = all may have them"),
    integer<&Stack::expert_step, kLayers1>("expert_step", "every so many layers have experts"),
    choice<&Stack::head, choices::kHeadKinds>(
        "head",
        "none, language-model, masked-lm, pretraining, sequence-classification, question-answering, "
        "image-classification or contrastive"),
    flag<&Stack::tie_embeddings>("tie_embeddings", "the output projection shares the token table"),
    flag<&Stack::head_bias>("head_bias", "of the output projection"),
    flag<&Stack::logit_offset>("logit_offset", "a row that is not trained is added to the scores, in fp32"),
    flag<&Stack::head_transform>("head_transform", "dense, activation and norm before it"),
    flag<&Stack::head_transform_bias>("head_transform_bias", "of that dense layer"),
    flag<&Stack::head_scale>("head_scale", "hidden states are scaled before it"),
    flag<&Stack::logit_scale>("logit_scale", "scores are multiplied by a number"),
    flag<&Stack::loss_fp32>("loss_fp32", "scores are cast to fp32"),
    flag<&Stack::masked_loss_fp32>("masked_loss_fp32", "… of a masked language model too"),
    choice<&Stack::pooler, choices::kPoolers>(
        "pooler",
        "what a classifier reads: none, first-token, dense-tanh, dense-activation, "
        "pretrained-tanh, class-and-mean, mean, mean-norm or mean-patches"),
    choice<&Stack::unread_top, choices::kUnreadTops>("unread_top",
                                                     "runs beside what the loss reads: none, norm, dense or probe"),
    flag<&Stack::positions_picked>("positions_picked", "an image's table of positions is gathered from by index"),
    integer<&Stack::labels, kWidth>("labels", "of a classifier"),
    choice<&Stack::class_loss, choices::kClassLosses>(
        "class_loss", "of a classifier: cross-entropy, squares (of numbers) or each-label"),
    integer<&Stack::projection_width, kWidth0>("projection_width", "of a contrastive pair"),
    flag<&Stack::pair_loss>("pair_loss", "each contrastive pair is a yes or no, an image pooled by a trained query"),
    flag<&Stack::image_rows>("image_rows", "the encoder's image stands in the place of marked tokens"),
    integer<&Stack::image_pool, kLayers1>("image_pool", "patches of a side that are averaged into one row"),
    integer<&Stack::image_merge, kLayers1>("image_merge", "patches of a side that are joined into one row"),
    choice<&Stack::image_norm, choices::kImageNorms>("image_norm", "of an image's patches: none, rms or layer-joined"),
    flag<&Stack::image_merge_projection>("image_merge_projection", "joined patches are projected to the tower's width"),
    integer<&Stack::image_layers, kLayers1>("image_layers", "linear layers from a tower's width to hidden: 1 or 2"),
    integer<&Stack::image_width, kWidth0>("image_width", "between two of them; 0 = hidden"),
    flag<&Stack::image_bias>("image_bias", "of these layers"),
    choice<&Stack::image_activation, choices::kActivationsOfBlocks>("image_activation", "between two of them"),
    integer<&Stack::image_deep, kStackLayers>("image_deep", "further projectors: rows behind the first layers"),
    integer<&Stack::unread_layers, kStackLayers>("unread_layers", "of a tower, behind the layer that is read; not run"),
};

}  // namespace

std::span<const CompositionKey> composition_keys() { return kCompositionKeys; }

}  // namespace ridgeline
