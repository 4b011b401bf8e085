#include "sim/workload/load_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/nearest_name.h"
#include "sim/workload/composition_keys.h"
#include "sim/workload/huggingface_config.h"
#include "sim/workload/model_keys.h"
#include "sim/workload/networks/program_model.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Node;
using config::Override;
using config::Value;

ModelDescription read_description(const Value& value, std::string fallback_name) {
  if (value.is_mapping() && value["family"].is("composed")) return read_composition(value, std::move(fallback_name));
  if (value.is_mapping() && value["family"].is("program"))
    return networks::read_program(value, std::move(fallback_name));
  std::vector<std::string> keys{"name"};
  for (const ModelKey& key : model_keys()) keys.emplace_back(key.name);
  const Mapping m(value, keys);
  ModelDescription d;
  d.name = m["name"].text(std::move(fallback_name));
  for (const ModelKey& key : model_keys()) key.read(m[key.name], d);
  for (const char* key : {"type_vocabulary", "labels", "adds_mask", "sequence_first", "activation_adds_bias"})
    if (m[key].exists() && d.family != ModelFamily::bert) m[key].fail("only family bert has it");
  for (const char* key : {"head_dim", "attention_bias", "feed_forward_bias", "window"})
    if (m[key].exists() && d.family != ModelFamily::llama) m[key].fail("only family llama has it");
  if (d.head_width % 2 != 0) m["head_dim"].fail(fmt::format("{} is odd: rotary positions turn pairs", d.head_width));
  // What is stated as it would be without the key.
  if (d.head_width * d.heads == d.hidden) d.head_width = 0;
  if (d.plain == (d.family == ModelFamily::gpt2)) d.plain.reset();
  if (d.attention_bias == d.bias) d.attention_bias.reset();
  if (d.feed_forward_bias == d.bias) d.feed_forward_bias.reset();
  if (d.head_width == 0 && d.hidden % d.heads != 0)
    m["heads"].fail(fmt::format("hidden {} is not a multiple of {} heads", d.hidden, d.heads));
  if (d.heads % d.key_value_heads != 0)
    m["key_value_heads"].fail(
        fmt::format("{} heads cannot share {} key-value heads evenly", d.heads, d.key_value_heads));
  if (d.family != ModelFamily::llama && d.family != ModelFamily::gpt2 && d.key_value_heads != d.heads)
    m["key_value_heads"].fail("only families llama and, under Megatron-LM, gpt2 share key-value heads");
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
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".json") ||
         text.ends_with(".block");
}

struct FileTree {
  Node tree;
  std::vector<std::string> unread;
};

FileTree file_tree(const std::string& path) {
  if (path.ends_with(".block")) return {networks::tree_of_program(path), {}};
  Node tree = config::load_yaml(path);
  const Value root(tree);
  if (tree.find("model_type") || tree.find("_class_name")) {
    HuggingFaceDescription read = description_from_huggingface(root);
    return {std::move(read.tree), std::move(read.unread)};
  }
  if (path.ends_with(".json") && !tree.find("family"))
    root.fail("model_type is missing: this is not a HuggingFace config.json");
  return {std::move(tree), {}};
}

/// `value` is where the name was written, for the message; null for a name from elsewhere.
ModelDescription load_named(const std::string& name, const Value* value, const std::vector<Override>& overrides) {
  if (is_path(name)) {
    FileTree file = file_tree(name);
    ModelDescription d = read_tree(std::move(file.tree), std::filesystem::path(name).stem().string(), overrides);
    d.unread = std::move(file.unread);
    return d;
  }
  const auto programs = program_names();
  if (std::find(programs.begin(), programs.end(), name) != programs.end())
    return read_tree(file_tree((config::data_folder("models") / "blocks" / (name + ".yaml")).string()).tree, name,
                     overrides);
  const auto known = model_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string message = fmt::format("no model '{}'; did you mean '{}'? Known: {}", name,
                                            nearest_name(name, known), fmt::join(known, ", "));
    if (value) value->fail(message);
    throw config::ConfigError({}, "model", message);
  }
  return read_tree(file_tree((config::data_folder("models") / (name + ".yaml")).string()).tree, name, overrides);
}

}  // namespace

ModelDescription load_model(std::string_view name_or_path, const std::vector<Override>& overrides) {
  return load_named(std::string(name_or_path), nullptr, overrides);
}

ModelDescription load_model(const Value& value, const std::vector<Override>& overrides) {
  const char* const type = value.is_mapping() && value["_class_name"].exists() ? "_class_name" : "model_type";
  if (value.is_mapping() && value[type].exists()) {  // a config.json in the place of its path
    HuggingFaceDescription read = description_from_huggingface(value);
    ModelDescription d = read_tree(std::move(read.tree), value[type].text(), overrides);
    d.unread = std::move(read.unread);
    return d;
  }
  if (value.is_mapping()) return read_tree(value.node(), "model", overrides);
  return load_named(value.text(), &value, overrides);
}

std::vector<std::string> program_names() { return config::yaml_names(config::data_folder("models") / "blocks"); }

std::vector<std::string> model_names() { return config::yaml_names(config::data_folder("models")); }

}  // namespace ridgeline
