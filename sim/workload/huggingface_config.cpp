#include "sim/workload/huggingface_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/meant_name.h"
#include "sim/workload/huggingface_keys.h"
#include "sim/workload/huggingface_table.h"

namespace ridgeline {
namespace {

using config::Entry;
using config::Node;
using config::Value;

/// There, and not null, which is as if it were not.
bool is_given(const Value& value) { return value.exists() && value.node().kind != Node::Kind::null; }

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
    read_.insert(names.begin(), names.end());
    for (const char* name : names) {
      const Value value = config_[name];
      if (!value.exists() || value.node().kind != Node::Kind::scalar) continue;
      tree_.entries.push_back(Entry{key, value.origin(), value.node()});
      return true;
    }
    return false;
  }
  /// The same; `otherwise` is what the class of Transformers takes where none is there.
  void copy(const char* key, const char* name, int otherwise) {
    if (!copy(key, {name})) text(key, std::to_string(otherwise));
  }
  /// A key that is looked at elsewhere.
  void note_read(const char* name) { read_.insert(name); }
  [[nodiscard]] bool has_read(const std::string& name) const { return read_.contains(name); }
  Node take() { return std::move(tree_); }

 private:
  const Value& config_;
  Node tree_;
  std::set<std::string, std::less<>> read_;
};

enum class Type { bert, llama };

/// Llamas have a gated feed-forward part, the others a plain one: their activations are not each other's.
std::string activation_of(const Value& value, Type type) {
  const bool gated = type == Type::llama;
  if (!is_given(value)) return gated ? "swiglu" : "gelu";
  const std::string name = value.text();
  if (gated && (name == "silu" || name == "swish")) return "swiglu";
  if (!gated && name == "gelu") return "gelu";
  if (!gated && (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")) return "gelu-tanh";
  if (!gated && name == "relu") return "relu";
  value.fail(fmt::format("activation '{}' has no kernel here; expected {}", name,
                         gated ? "silu" : "gelu, gelu_new, gelu_pytorch_tanh or relu"));
}

/// A key with the only values for which the network is the one built here.
struct Fixed {
  std::string_view key;
  std::vector<std::string_view> allowed;  ///< null is always
  std::string_view why;
};

const std::vector<Fixed>& fixed_keys(Type type) {
  static const std::vector<Fixed> every{
      {"add_cross_attention", {"false"}, "cross-attention is not built"},
      {"chunk_size_feed_forward", {"0"}, "a feed-forward part in chunks is not built"},
      {"gradient_checkpointing", {"false"}, "say --checkpointing or checkpointing in the training instead"},
      {"is_encoder_decoder", {"false"}, "encoder-decoders are not built"},
      {"output_attentions", {"false"}, "attention probabilities that are given back are not kept here"},
      {"problem_type", {"single_label_classification"}, "losses of regression and of several labels are not built"},
      {"output_hidden_states", {"false"}, "hidden states that are given back are not kept here"},
      {"quantization_config", {}, "quantised weights are not built"},
      {"torchscript", {"false"}, "its copies of tied weights are not built"}};
  static const auto with = [](std::vector<Fixed> own) {
    own.insert(own.end(), every.begin(), every.end());
    return own;
  };
  static const std::vector<Fixed> bert =
      with({{"position_embedding_type", {"absolute"}, "only absolute positions are built"},
            {"is_decoder", {"false"}, "a bert here is an encoder"}});
  static const std::vector<Fixed> llama =
      with({{"pretraining_tp", {"1"}, "projections in slices are not built"},
            {"partial_rotary_factor", {"1", "1.0"}, "rotary positions of a part of each head are not built"}});
  return type == Type::bert ? bert : llama;
}

void check_fixed(const Value& config, Type type, ConfigReading& out) {
  for (const Fixed& fixed : fixed_keys(type)) {
    out.note_read(std::string(fixed.key).c_str());
    const Value value = config[std::string(fixed.key).c_str()];
    if (!is_given(value)) continue;
    if (std::any_of(fixed.allowed.begin(), fixed.allowed.end(), [&](std::string_view text) { return value.is(text); }))
      continue;
    if (fixed.allowed.empty()) value.fail(std::string(fixed.why));
    value.fail(fmt::format("{}; expected {} or no such key", fixed.why, fmt::join(fixed.allowed, " or ")));
  }
  for (const char* rotary : {"rope_parameters", "rope_scaling"}) {
    if (!config[rotary].is_mapping()) continue;
    const Value factor = config[rotary]["partial_rotary_factor"];
    if (is_given(factor) && factor.number({0.0, 1.0}) != 1.0)
      factor.fail("rotary positions of a part of each head are not built; expected 1 or no such key");
  }
  const Value pruned = config["pruned_heads"];
  out.note_read("pruned_heads");
  if (pruned.is_mapping() && !pruned.node().entries.empty()) pruned.fail("pruned heads are not built");
}

/// The class the file is for.
std::string architecture_of(const Value& config) {
  const Value architectures = config["architectures"];
  if (!is_given(architectures)) return "";
  if (!architectures.is_list()) architectures.fail("expected a list of names, as [\"BertForMaskedLM\"]");
  return architectures.list().empty() ? "" : architectures.list().front().text();
}

/// The head of `architectures: [BertForQuestionAnswering]`.
std::string bert_head(const Value& config) {
  const std::string name = architecture_of(config);
  if (name.empty()) return "sequence-classification";
  if (name == "BertForQuestionAnswering") return "question-answering";
  if (name == "BertForMaskedLM") return "masked-lm";
  if (name == "BertForPreTraining") return "pretraining";
  if (name == "BertForSequenceClassification" || name == "BertModel") return "sequence-classification";
  config["architectures"].list().front().fail(
      fmt::format("'{}' has no head here; expected BertForSequenceClassification, BertForQuestionAnswering, "
                  "BertForMaskedLM or BertForPreTraining",
                  name));
}

/// A decoder predicts the next token.
void require_language_model(const Value& config, std::initializer_list<std::string_view> known) {
  const std::string name = architecture_of(config);
  const auto same = [&](std::string_view one) { return in_small_letters(one) == in_small_letters(name); };
  if (name.empty() || std::any_of(known.begin(), known.end(), same)) return;  // LLaMAForCausalLM of early 2023
  config["architectures"].list().front().fail(
      fmt::format("'{}' has no head here; expected {}", name, fmt::join(known, " or ")));
}

void read_bert(const Value& config, ConfigReading& out) {
  out.text("family", "bert");
  out.copy("layers", "num_hidden_layers", 12);
  out.copy("heads", "num_attention_heads", 12);
  out.copy("hidden", "hidden_size", 768);
  out.copy("vocabulary", "vocab_size", 30522);
  out.copy("feed_forward", "intermediate_size", 3072);
  out.copy("max_positions", "max_position_embeddings", 512);
  out.copy("type_vocabulary", "type_vocab_size", 2);
  out.copy("dropout", {"hidden_dropout_prob"});
  out.copy("attention_dropout", {"attention_probs_dropout_prob"});
  out.text("activation", activation_of(config["hidden_act"], Type::bert));
  out.text("head", bert_head(config));
  if (config["id2label"].is_mapping()) out.text("labels", std::to_string(config["id2label"].node().entries.size()));
  else out.copy("labels", {"num_labels"});
  out.copy("tie_embeddings", {"tie_word_embeddings"});
  for (const char* key : {"hidden_act", "num_labels"}) out.note_read(key);
}

void read_llama(const Value& config, ConfigReading& out) {
  require_language_model(config, {"LlamaForCausalLM", "LlamaModel"});
  out.text("family", "llama");
  out.copy("layers", "num_hidden_layers", 32);
  out.copy("heads", "num_attention_heads", 32);
  out.copy("hidden", "hidden_size", 4096);
  out.copy("vocabulary", "vocab_size", 32000);
  out.copy("feed_forward", "intermediate_size", 11008);
  out.copy("key_value_heads", {"num_key_value_heads"});
  out.copy("head_dim", {"head_dim"});
  out.copy("attention_bias", {"attention_bias"});
  out.copy("feed_forward_bias", {"mlp_bias"});
  out.copy("attention_dropout", {"attention_dropout"});
  out.copy("max_positions", {"max_position_embeddings"});
  if (!config["use_sliding_window"].is("false")) out.copy("window", {"sliding_window"});
  for (const char* key : {"sliding_window", "use_sliding_window"}) out.note_read(key);
  out.copy("tie_embeddings", {"tie_word_embeddings"});
  out.text("activation", activation_of(config["hidden_act"], Type::llama));
  out.note_read("hidden_act");
}

}  // namespace

HuggingFaceDescription description_from_huggingface(const Value& config) {
  static constexpr std::array<std::pair<std::string_view, Type>, 2> kTypes{
      {{"bert", Type::bert}, {"llama", Type::llama}}};
  const Value said = config[config["model_type"].exists() ? "model_type" : "_class_name"];  // of diffusers
  const std::string name = said.text();
  const auto* own = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& known) { return known.first == name; });
  if (own == kTypes.end()) {
    std::vector<std::string> known = family_table_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return description_by_table(name, config);
    const Node unbuilt = config::load_yaml((config::data_folder("models") / "unbuilt" / "networks.yaml").string());
    if (const Node* missing = unbuilt.find(name))
      said.fail(fmt::format("'{}' is not built: {}", name, missing->scalar));
    for (const auto& type : kTypes) known.emplace_back(type.first);
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const std::string meant = meant_name(name, known);
    said.fail(
        fmt::format("no network '{}' is built here; {}describe it as a program (docs/networks.md), which also "
                    "lists those that are built",
                    name, meant.empty() ? "" : fmt::format("did you mean '{}'? Or ", meant)));
  }
  // Heads that a family of its own does not have.
  const std::string architecture = architecture_of(config);
  const Value problem = config["problem_type"];
  const bool one_label =
      config["id2label"].is_mapping() ? config["id2label"].node().entries.size() == 1 : config["num_labels"].is("1");
  const bool other_loss = is_given(problem) ? !problem.is("single_label_classification") : one_label;
  if (own->second == Type::bert && config["position_embedding_type"].is("alibi"))
    return description_by_table("jina_bert", config);
  if (architecture.ends_with("ForTokenClassification") ||
      (architecture == "BertForSequenceClassification" && other_loss) ||
      (own->second == Type::llama && architecture.ends_with("ForSequenceClassification")))
    return description_by_table(name, config);
  const Type type = own->second;
  ConfigReading out(config);
  check_fixed(config, type, out);
  switch (type) {
    case Type::bert: read_bert(config, out); break;
    case Type::llama: read_llama(config, out); break;
  }
  HuggingFaceDescription result;
  for (const Entry& entry : config.node().entries)
    if (!out.has_read(entry.key) && !config_key_changes_nothing(entry.key)) result.unread.push_back(entry.key);
  result.tree = out.take();
  return result;
}

}  // namespace ridgeline
