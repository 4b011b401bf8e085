#include "sim/workload/huggingface_config.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace ridgeline {
namespace {

using config::Entry;
using config::Node;
using config::Value;

/// Builds a mapping node by node; a copied value keeps its origin.
class ConfigReading {
 public:
  explicit ConfigReading(const Value& config) : config_(config) {
    tree_.kind = Node::Kind::mapping;
    tree_.origin = config.origin();
  }
  void text(const char* key, std::string value) {
    Node node;
    node.kind = Node::Kind::scalar;
    node.scalar = std::move(value);
    node.origin = config_.origin();
    tree_.entries.push_back(Entry{key, node.origin, node});
  }
  /// Copies the first of `names` that is there and not null.
  bool copy(const char* key, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const Value value = config_[name];
      if (!value.exists() || value.node().kind != Node::Kind::scalar || value.is("null")) continue;
      tree_.entries.push_back(Entry{key, value.origin(), value.node()});
      return true;
    }
    return false;
  }
  void require(const char* key, std::initializer_list<const char*> names) {
    if (!copy(key, names))
      config_.fail(fmt::format("{} is missing, which a {} needs", *names.begin(), config_["model_type"].text()));
  }
  Node take() { return std::move(tree_); }

 private:
  const Value& config_;
  Node tree_;
};

std::string activation_of(const Value& value, std::string fallback) {
  if (!value.exists()) return fallback;
  const std::string name = value.text();
  if (name == "gelu") return "gelu";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return "gelu-tanh";
  if (name == "relu") return "relu";
  if (name == "silu" || name == "swish") return "swiglu";
  value.fail(fmt::format("activation '{}' has no kernel here; expected gelu, gelu_new, gelu_pytorch_tanh, relu or silu",
                         name));
}

/// The head of `architectures: [BertForQuestionAnswering]`.
std::string bert_head(const Value& config) {
  const Value architectures = config["architectures"];
  if (!architectures.is_list() || architectures.list().empty()) return "sequence-classification";
  const std::string name = architectures.list().front().text();
  if (name.ends_with("ForQuestionAnswering")) return "question-answering";
  if (name.ends_with("ForMaskedLM")) return "masked-lm";
  if (name.ends_with("ForPreTraining")) return "pretraining";
  if (name.ends_with("ForSequenceClassification") || name.ends_with("Model")) return "sequence-classification";
  architectures.list().front().fail(
      fmt::format("'{}' has no head here; expected BertForSequenceClassification, BertForQuestionAnswering, "
                  "BertForMaskedLM or BertForPreTraining",
                  name));
}

}  // namespace

Node description_from_huggingface(const Value& config) {
  enum class Type { bert, gpt2, llama };
  static constexpr std::array<std::pair<std::string_view, Type>, 4> kTypes{
      {{"bert", Type::bert}, {"gpt2", Type::gpt2}, {"llama", Type::llama}, {"mistral", Type::llama}}};
  const Type type = config["model_type"].choice<Type>(kTypes);
  ConfigReading out(config);
  switch (type) {
    case Type::bert:
      out.text("family", "bert");
      out.require("layers", {"num_hidden_layers"});
      out.require("heads", {"num_attention_heads"});
      out.require("hidden", {"hidden_size"});
      out.require("vocabulary", {"vocab_size"});
      out.copy("feed_forward", {"intermediate_size"});
      out.copy("max_positions", {"max_position_embeddings"});
      out.copy("type_vocabulary", {"type_vocab_size"});
      out.copy("dropout", {"hidden_dropout_prob"});
      out.copy("attention_dropout", {"attention_probs_dropout_prob"});
      out.text("activation", activation_of(config["hidden_act"], "gelu"));
      out.text("head", bert_head(config));
      if (config["id2label"].is_mapping()) out.text("labels", std::to_string(config["id2label"].node().entries.size()));
      else out.copy("labels", {"num_labels"});
      break;
    case Type::gpt2:
      out.text("family", "gpt2");
      out.require("layers", {"n_layer"});
      out.require("heads", {"n_head"});
      out.require("hidden", {"n_embd"});
      out.require("vocabulary", {"vocab_size"});
      out.copy("feed_forward", {"n_inner"});
      out.copy("max_positions", {"n_positions", "n_ctx"});
      out.copy("dropout", {"resid_pdrop"});
      out.copy("attention_dropout", {"attn_pdrop"});
      out.copy("tie_embeddings", {"tie_word_embeddings"});
      out.text("activation", activation_of(config["activation_function"], "gelu-tanh"));
      break;
    case Type::llama:
      out.text("family", "llama");
      out.require("layers", {"num_hidden_layers"});
      out.require("heads", {"num_attention_heads"});
      out.require("hidden", {"hidden_size"});
      out.require("vocabulary", {"vocab_size"});
      out.require("feed_forward", {"intermediate_size"});
      out.copy("key_value_heads", {"num_key_value_heads"});
      out.copy("max_positions", {"max_position_embeddings"});
      out.copy("tie_embeddings", {"tie_word_embeddings"});
      out.text("activation", activation_of(config["hidden_act"], "swiglu"));
      break;
  }
  return out.take();
}

}  // namespace ridgeline
