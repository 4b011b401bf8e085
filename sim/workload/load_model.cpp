#include "sim/workload/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/config/make_node.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/shipped_names.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"
#include "sim/workload/composition_keys.h"
#include "sim/workload/config_part.h"
#include "sim/workload/huggingface_config.h"
#include "sim/workload/huggingface_keys.h"
#include "sim/workload/huggingface_table.h"
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
  for (const Override& change : overrides)
    if (change.key != "part") config::apply_override(tree, change);
  return read_description(Value(tree), std::move(name));
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".json") ||
         text.ends_with(".block");
}

/// The type of a configuration of 2019, which does not say it; empty where its keys do not tell.
std::string type_by_keys(const Node& tree) {
  const auto has = [&](std::string_view key) { return tree.find(key) != nullptr; };
  if (has("type_vocab_size") && has("hidden_size") && has("num_hidden_layers") && has("num_attention_heads")) {
    const Node* vocabulary = tree.find("vocab_size");
    if (has("embedding_size")) return has("num_hidden_groups") ? "albert" : "electra";
    return vocabulary != nullptr && vocabulary->scalar == "50265" ? "roberta" : "bert";
  }
  if (has("n_embd") && has("n_layer") && has("n_head") && has("vocab_size"))
    return tree.find("vocab_size")->scalar == "40478" ? "openai-gpt" : "gpt2";
  if (has("d_kv") && has("d_ff") && has("num_layers")) return "t5";
  if (has("dim") && has("hidden_dim") && has("n_layers") && has("sinusoidal_pos_embds")) return "distilbert";
  return "";
}

/// Refuses a key that nothing reads and that would make another network.
void refuse_shaping_keys(const Node& tree, const std::vector<std::string>& unread) {
  for (const std::string& key : unread) {
    const Node* found = &tree;
    std::string_view rest = key;
    while (found != nullptr && !rest.empty()) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      found = found->find(rest.substr(0, dot));
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    if (found != nullptr && config_key_shapes_a_network(std::string_view(key).substr(key.rfind('.') + 1), *found))
      throw config::ConfigError(found->origin, key,
                                "nothing here reads this key, which may make another network: take it out to build the "
                                "network without it");
  }
}

struct FileTree {
  Node tree;
  std::vector<std::string> unread;
};

/// The part that a change names of a multimodal network; empty where none does.
std::string part_said(const std::vector<Override>& overrides) {
  std::string part;
  for (const Override& change : overrides)
    if (change.key == "part") part = change.value;
  return part;
}

FileTree file_tree(const std::string& path, const std::string& part = "") {
  if (path.ends_with(".block")) return {networks::tree_of_program(path), {}};
  Node tree = config::load_yaml(path);
  if (path.ends_with(".yaml"))  // said of the description, not of the network
    std::erase_if(tree.entries, [](const config::Entry& entry) {
      return entry.key == "aliases" || entry.key == "source" || entry.key == "parameters";
    });
  if (path.ends_with(".json") && !tree.find("model_type") && !tree.find("_class_name"))
    if (std::string type = type_by_keys(tree); !type.empty())
      tree.entries.push_back({"model_type", tree.origin, config::scalar_node(std::move(type), tree.origin)});
  if (!part.empty()) tree = part_of_config(std::move(tree), part);
  const Value root(tree);
  if (tree.find("model_type") || tree.find("_class_name")) {
    HuggingFaceDescription read = description_from_huggingface(root);
    refuse_shaping_keys(tree, read.unread);
    return {std::move(read.tree), std::move(read.unread)};
  }
  if (path.ends_with(".json") && !tree.find("family"))
    root.fail("model_type is missing: this is not a HuggingFace config.json");
  return {std::move(tree), {}};
}

/// A server does not tell whether a file that it may not open is there.
bool is_there(const std::string& path) {
  try {
    check_readable(path);
  } catch (const UserError&) {
    return false;
  }
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// "meta-llama/Llama-3.1-8B" gives "Llama-3.1-8B" where no file or folder has that path; empty for other paths.
std::string name_in_hub(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos || slash == 0 || path.find('/', slash + 1) != std::string::npos) return "";
  if (path.starts_with('.') || path.starts_with('~') || is_there(path)) return "";
  for (const std::string_view ending : {".yaml", ".json", ".block"})
    if (path.ends_with(ending)) return "";
  return path.substr(slash + 1);
}

std::vector<config::ShippedName> shipped_models() {
  std::vector<config::ShippedName> names = config::shipped_names(config::data_folder("models"));
  for (config::ShippedName& program : config::shipped_names(config::data_folder("models") / "blocks"))
    names.push_back(std::move(program));
  return names;
}

/// Whether a word of `given` that `name` lacks is a family of networks: bart-base is no misspelt bert-base.
bool names_another_family(const std::string& given, const std::string& name) {
  const std::vector<std::string> families = family_table_names(), own = name_parts(name), parts = name_parts(given);
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return std::find(own.begin(), own.end(), part) == own.end() &&
           std::find(families.begin(), families.end(), part) != families.end();
  });
}

/// The shipped network of which `given` is a spelling; empty when there is none.
std::string shipped_model(const std::string& given) {
  std::error_code ignored;
  for (const auto& folder : {config::data_folder("models"), config::data_folder("models") / "blocks"})
    if (!given.empty() && given.find('/') == std::string::npos &&
        std::filesystem::is_regular_file(folder / (given + ".yaml"), ignored))
      return given;
  return config::name_spelled(given, shipped_models(), model_spelling());
}

std::string unknown_model(const std::string& given, const std::string& name) {
  std::vector<std::string> meant = config::names_meant(name, shipped_models(), model_spelling());
  std::erase_if(meant, [&](const std::string& one) { return names_another_family(name, one); });
  constexpr std::size_t kSaid = 8;
  const std::size_t count = meant.size();
  if (count > kSaid) meant.resize(kSaid);
  if (count > 0)
    return fmt::format("no network '{}'; did you mean {}{}?", given, fmt::join(meant, ", "),
                       count > kSaid ? fmt::format(", or one of {} more", count - kSaid) : "");
  if (given.ends_with(".safetensors") || given.ends_with(".bin") || given.ends_with(".gguf") || given.ends_with(".pt"))
    return fmt::format("{} holds weights: give the path of the config.json beside it", given);
  if (given.ends_with(".py"))
    return fmt::format("{} is a Python script: ridgeline predict --record {} records its step", given, given);
  return fmt::format(
      "no network '{}' is shipped: save its config.json and give its path. ridgeline models lists those shipped",
      given);
}

/// `value` is where the name was written, for the message; null for a name from elsewhere.
ModelDescription load_named(const std::string& given, const Value* value, const std::vector<Override>& overrides) {
  const std::string in_hub = name_in_hub(given), &wanted = in_hub.empty() ? given : in_hub;
  if (in_hub.empty() && is_path(given)) {
    std::error_code ignored;
    const std::filesystem::path path(given);
    const bool checkpoint = is_there(given) && std::filesystem::is_regular_file(path / "config.json", ignored);
    FileTree file = file_tree(checkpoint ? (path / "config.json").string() : given, part_said(overrides));
    ModelDescription d = read_tree(std::move(file.tree), path.stem().string(), overrides);
    d.unread = std::move(file.unread);
    return d;
  }
  std::string name = shipped_model(wanted);
  if (name.empty()) name = shipped_model(given);  // "ViT-B/16"
  if (name.empty()) {
    const std::string message = unknown_model(given, wanted);
    if (value) value->fail(message);
    throw config::ConfigError({}, "model", message);
  }
  const std::filesystem::path models = config::data_folder("models"), file = name + ".yaml";
  std::error_code ignored;
  const bool described = std::filesystem::exists(models / file, ignored);
  return read_tree(
      file_tree((described ? models / file : models / "blocks" / file).string(), part_said(overrides)).tree, name,
      overrides);
}

}  // namespace

const SpellingRules& model_spelling() {
  static constexpr std::array<std::string_view, 6> kVendors{"meta",   "google",   "microsoft",
                                                            "openai", "facebook", "alibaba"};
  static constexpr std::array<std::string_view, 6> kEndings{"instruct", "chat", "base", "it", "hf", "pt"};
  static const SpellingRules rules{.vendors = kVendors, .endings = kEndings, .any_order = false};
  return rules;
}

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
