#include "sim/workload/huggingface_keys.h"

#include <algorithm>
#include <array>

#include "sim/units/nearest_name.h"

namespace ridgeline {
namespace {

// clang-format off
constexpr std::array kNothing = std::to_array<std::string_view>({
    "architectures", "auto_map", "cache_implementation", "classifier_dropout", "cross_attention_hidden_size",
    "decoder_start_token_id", "do_sample", "dtype", "finetuning_task", "id2label", "initializer_range", "is_llama_config",
    "label2id", "language", "layer_norm_eps", "layer_norm_epsilon", "length_penalty", "max_length", "min_length",
    "model_max_length", "model_type", "name", "output_past", "prefix", "return_dict", "rms_norm_eps", "rope_parameters",
    "rope_scaling", "rope_theta", "task_specific_params", "tie_encoder_decoder", "tokenizer_class", "torch_dtype",
    "transformers_version", "transformers.js_config", "use_cache", "use_return_dict"});
constexpr std::array kGeneration = std::to_array<std::string_view>({
    "add_cross_attention", "bad_words_ids", "begin_suppress_tokens", "chunk_size_feed_forward", "diversity_penalty", "dropout",
    "early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "initializer_factor", "is_decoder",
    "is_encoder_decoder", "label2id", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences",
    "output_attentions", "output_hidden_states", "output_scores", "problem_type", "projection_dim", "pruned_heads",
    "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens", "temperature",
    "tf_legacy_loss", "tie_word_embeddings", "top_k", "top_p", "torchscript", "typical_p", "use_bfloat16"});
// clang-format on

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

bool config_key_is_of_generation(std::string_view key) { return key.starts_with("forced_") || holds(kGeneration, key); }

bool config_key_changes_nothing(std::string_view key) {
  if (key == "_attn_implementation") return false;  // the training's attention says it here
  return holds(kNothing, key) || key.starts_with("_") || key.starts_with("summary_") || key.ends_with("_token_id") ||
         key.ends_with("_token_ids") || key.starts_with("pooler_");
}

bool config_key_shapes_a_network(std::string_view key, const config::Node& value) {
  static constexpr std::array<std::string_view, 12> kStems{"expert", "moe_", "mixture", "layer", "head",   "_dim",
                                                           "_rank",  "ffn",  "mlp",     "conv",  "window", "mamba"};
  static constexpr std::array<std::string_view, 7> kSaysNo{"", "false", "0", "0.0", "1", "none", "null"};
  if (value.kind == config::Node::Kind::null) return false;
  if (value.kind == config::Node::Kind::scalar &&
      std::find(kSaysNo.begin(), kSaysNo.end(), in_small_letters(value.scalar)) != kSaysNo.end())
    return false;
  if (value.kind == config::Node::Kind::list && value.items.empty()) return false;
  return std::any_of(kStems.begin(), kStems.end(),
                     [&](std::string_view stem) { return key.find(stem) != std::string_view::npos; });
}

}  // namespace ridgeline
