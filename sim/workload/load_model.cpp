#include "sim/workload/load_model.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/nearest_name.h"
#include "sim/workload/huggingface_config.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Node;
using config::Override;
using config::Value;

constexpr std::array<std::pair<std::string_view, ModelFamily>, 3> kFamilies{
    {{"gpt2", ModelFamily::gpt2}, {"bert", ModelFamily::bert}, {"llama", ModelFamily::llama}}};
constexpr std::array<std::pair<std::string_view, Activation>, 4> kActivations{{{"gelu", Activation::gelu},
                                                                               {"gelu-tanh", Activation::gelu_tanh},
                                                                               {"relu", Activation::relu},
                                                                               {"swiglu", Activation::swiglu}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kSparsities{{{"none", false}, {"2:4", true}}};
constexpr std::array<std::pair<std::string_view, ModelHead>, 5> kHeads{
    {{"language-model", ModelHead::language_model},
     {"sequence-classification", ModelHead::sequence_classification},
     {"question-answering", ModelHead::question_answering},
     {"masked-lm", ModelHead::masked_lm},
     {"pretraining", ModelHead::pretraining}}};

/// What a family assumes where the description is silent.
struct FamilyDefaults {
  std::int64_t max_positions;
  double dropout;
  bool bias, tie_embeddings;
  Activation activation;
  ModelHead head;
};
FamilyDefaults defaults_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::gpt2: return {1024, 0.0, true, true, Activation::gelu_tanh, ModelHead::language_model};
    case ModelFamily::bert: return {512, 0.1, true, true, Activation::gelu, ModelHead::sequence_classification};
    case ModelFamily::llama: return {2048, 0.0, false, false, Activation::swiglu, ModelHead::language_model};
  }
  return {};
}

constexpr config::IntegerRange kLayers{1, 10000}, kWidth{1, 1 << 24}, kRows{1, std::int64_t{1} << 32};

ModelDescription read_description(const Value& value, std::string fallback_name) {
  const Mapping m(value, {"name", "family", "layers", "heads", "key_value_heads", "hidden", "feed_forward",
                          "vocabulary", "max_positions", "type_vocabulary", "dropout", "attention_dropout", "bias",
                          "activation", "tie_embeddings", "weight_sparsity", "head", "labels"});
  ModelDescription d;
  d.name = m["name"].text(std::move(fallback_name));
  d.family = m["family"].choice<ModelFamily>(kFamilies);
  const FamilyDefaults defaults = defaults_of(d.family);
  d.layers = m["layers"].integer(kLayers);
  d.heads = m["heads"].integer(kWidth);
  d.hidden = m["hidden"].integer(kWidth);
  d.key_value_heads = m["key_value_heads"].integer(kWidth, d.heads);
  d.feed_forward = m["feed_forward"].integer(kWidth, 4 * d.hidden);
  d.vocabulary = m["vocabulary"].integer(kRows);
  d.max_positions = m["max_positions"].integer(kRows, defaults.max_positions);
  d.type_vocabulary = m["type_vocabulary"].integer(kRows, 2);
  d.dropout = m["dropout"].number({0.0, 0.999}, defaults.dropout);
  d.attention_dropout = m["attention_dropout"].number({0.0, 0.999}, d.dropout);
  d.bias = m["bias"].boolean(defaults.bias);
  d.activation = m["activation"].choice<Activation>(kActivations, defaults.activation);
  d.tie_embeddings = m["tie_embeddings"].boolean(defaults.tie_embeddings);
  d.sparse_weights = m["weight_sparsity"].choice<bool>(kSparsities, false);
  d.head = m["head"].choice<ModelHead>(kHeads, defaults.head);
  d.labels = m["labels"].integer(kWidth, 2);
  if (d.hidden % d.heads != 0)
    m["heads"].fail(fmt::format("hidden {} is not a multiple of {} heads", d.hidden, d.heads));
  if (d.heads % d.key_value_heads != 0)
    m["key_value_heads"].fail(
        fmt::format("{} heads cannot share {} key-value heads evenly", d.heads, d.key_value_heads));
  if (d.family != ModelFamily::llama && d.key_value_heads != d.heads)
    m["key_value_heads"].fail("only family llama shares key-value heads");
  if ((d.family == ModelFamily::bert) == (d.head == ModelHead::language_model))
    m["head"].fail(d.family == ModelFamily::bert
                       ? "a bert has one of: sequence-classification, question-answering, masked-lm, pretraining"
                       : "only family bert has a choice of heads");
  if ((d.activation == Activation::swiglu) != (d.family == ModelFamily::llama))
    m["activation"].fail("swiglu is the activation of family llama, and only of it");
  try {
    check_model(d);
  } catch (const config::ConfigError&) {
    throw;
  } catch (const UserError& e) {
    value.fail(e.what());
  }
  return d;
}

ModelDescription read_tree(Node tree, std::string name, const std::vector<Override>& overrides) {
  for (const Override& change : overrides) config::apply_override(tree, change);
  return read_description(Value(tree), std::move(name));
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".json");
}

Node file_tree(const std::string& path) {
  Node tree = config::load_yaml(path);
  const Value root(tree);
  if (tree.find("model_type")) return description_from_huggingface(root);
  if (path.ends_with(".json") && !tree.find("family"))
    root.fail("model_type is missing: this is not a HuggingFace config.json");
  return tree;
}

/// `value` is where the name was written, for the message; null for a name from elsewhere.
ModelDescription load_named(const std::string& name, const Value* value, const std::vector<Override>& overrides) {
  if (is_path(name)) return read_tree(file_tree(name), std::filesystem::path(name).stem().string(), overrides);
  const auto known = model_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string message = fmt::format("no model '{}'; did you mean '{}'? Known: {}", name,
                                            nearest_name(name, known), fmt::join(known, ", "));
    if (value) value->fail(message);
    throw config::ConfigError({}, "model", message);
  }
  return read_tree(file_tree((config::data_folder("models") / (name + ".yaml")).string()), name, overrides);
}

}  // namespace

ModelDescription load_model(std::string_view name_or_path, const std::vector<Override>& overrides) {
  return load_named(std::string(name_or_path), nullptr, overrides);
}

ModelDescription load_model(const Value& value, const std::vector<Override>& overrides) {
  if (value.is_mapping()) return read_tree(value.node(), "model", overrides);
  return load_named(value.text(), &value, overrides);
}

std::vector<std::string> model_names() { return config::yaml_names(config::data_folder("models")); }

}  // namespace ridgeline
