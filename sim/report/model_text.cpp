#include "sim/report/model_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ridgeline {
namespace {

std::string_view family_name(ModelFamily family) {
  switch (family) {
    case ModelFamily::gpt2: return "gpt2";
    case ModelFamily::bert: return "bert";
    case ModelFamily::llama: return "llama";
  }
  return "?";
}
std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::gelu: return "gelu";
    case Activation::gelu_tanh: return "gelu-tanh";
    case Activation::relu: return "relu";
    case Activation::swiglu: return "swiglu";
  }
  return "?";
}
std::string_view head_name(ModelHead head) {
  switch (head) {
    case ModelHead::language_model: return "language-model";
    case ModelHead::sequence_classification: return "sequence-classification";
    case ModelHead::question_answering: return "question-answering";
    case ModelHead::masked_lm: return "masked-lm";
    case ModelHead::pretraining: return "pretraining";
  }
  return "?";
}

/// 335143938 as "335,143,938".
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value), out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace

nlohmann::ordered_json model_json(const ModelDescription& m) {
  return {{"name", m.name},
          {"family", family_name(m.family)},
          {"layers", m.layers},
          {"heads", m.heads},
          {"key_value_heads", m.key_value_count()},
          {"hidden", m.hidden},
          {"feed_forward", m.feed_forward_width()},
          {"vocabulary", m.vocabulary},
          {"max_positions", m.max_positions},
          {"dropout", m.dropout},
          {"bias", m.bias},
          {"activation", activation_name(m.activation)},
          {"tie_embeddings", m.tie_embeddings},
          {"weight_sparsity", m.sparse_weights ? "2:4" : "none"},
          {"head", head_name(m.head)},
          {"parameters", parameter_count(m)}};
}

std::string model_list(std::span<const ModelDescription> models) {
  std::string out = fmt::format("{:<16} {:<7} {:>6} {:>6} {:>7} {:>7} {:>10} {:>16}\n", "name", "family", "layers",
                                "heads", "hidden", "inner", "vocabulary", "parameters");
  for (const ModelDescription& m : models)
    out += fmt::format("{:<16} {:<7} {:>6} {:>6} {:>7} {:>7} {:>10} {:>16}\n", m.name, family_name(m.family), m.layers,
                       m.heads, m.hidden, m.feed_forward_width(), m.vocabulary, grouped(parameter_count(m)));
  return out;
}

std::string model_text(const ModelDescription& m) {
  std::string out;
  const auto json = model_json(m);
  for (const auto& [key, value] : json.items())
    out += fmt::format("  {:<16} {}\n", key,
                       key == "parameters" ? grouped(value.get<std::int64_t>())
                       : value.is_string() ? value.get<std::string>()
                                           : value.dump());
  return out;
}

}  // namespace ridgeline
