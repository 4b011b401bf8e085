#include "sim/workload/huggingface_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <set>

#include "sim/config/data_folder.h"
#include "sim/config/make_node.h"
#include "sim/config/parse_yaml.h"
#include "sim/units/nearest_name.h"
#include "sim/workload/huggingface_keys.h"
#include "sim/workload/huggingface_values.h"

namespace ridgeline {
namespace {

using config::Entry;
using config::Node;
using config::Value;

std::string type_of_network(const Value& config) {
  return config[config["model_type"].exists() ? "model_type" : "_class_name"].text();
}
bool is_said(const Value& value) { return value.exists() && value.node().kind != Node::Kind::null; }

constexpr std::string_view kOfTokens = "ForTokenClassification";

class TableReading {
 public:
  /// `base`: the table whose entries hold where `table` says nothing else; absent: none.
  TableReading(const Value& table, const Value& base, const Value& config)
      : table_(table), base_(base), config_(config) {}

  HuggingFaceDescription read() {
    check_fixed();
    HuggingFaceDescription result;
    result.tree = config::mapping_node(config_.origin());
    const bool program = table_["program"].exists();
    put(result.tree, "family", config::scalar_node(program ? "program" : "composed", config_.origin()));
    if (program) put(result.tree, "program", config::scalar_node(table_["program"].text(), config_.origin()));
    const std::string on_top = head();
    if (!program) put(result.tree, "head", config::scalar_node(on_top, config_.origin()));
    if (table_["text"].exists()) read_part(table_["text"], false, result.tree, result.unread);
    reads_base_ = true;
    if (base_.exists()) section(base_, result.tree);
    reads_base_ = false;
    section(table_, result.tree);
    if (!program && on_top.ends_with("classification")) count_labels(result.tree);
    const Value named = config_["architectures"];
    if (!program && is_said(named) && named.is_list() && !named.list().empty() &&
        named.list().front().text().ends_with(kOfTokens))
      put(result.tree, "pooler", config::scalar_node("none", config_.origin()));  // each token is read as it is
    const bool base_encodes = base_.exists() && base_["encoder"].exists();
    if (table_["encoder"].exists() || base_encodes || table_["vision"].exists()) {
      Node encoder = config::mapping_node(config_.origin());
      if (table_["vision"].exists()) read_part(table_["vision"], true, encoder, result.unread);
      if (base_encodes) section(base_["encoder"], encoder);
      if (table_["encoder"].exists()) section(table_["encoder"], encoder);
      put(result.tree, "encoder", std::move(encoder));
    }
    for (const Entry& entry : config_.node().entries) {
      if (!read_.contains(entry.key) && !config_key_changes_nothing(entry.key)) result.unread.push_back(entry.key);
      add_unread_of_part(entry, result.unread);
    }
    return result;
  }

 private:
  static void put(Node& tree, const std::string& key, Node value) {
    std::erase_if(tree.entries, [&](const Entry& entry) { return entry.key == key; });
    const config::Origin origin = value.origin;
    tree.entries.push_back(Entry{key, origin, std::move(value)});
  }

  /// The statements of another model type's table on a part of the configuration: the main stack, or a tower beside it.
  void read_part(const Value& place, bool tower, Node& tree, std::vector<std::string>& unread) {
    const std::string key = place.list().front().text(), own = type_of_network(config_);
    const bool apart = config_[key].is_mapping();
    read_.insert(key);
    Node& part = parts_.emplace_back((apart ? config_[key] : config_).node());
    std::string type = place.list().back().text();
    if (const Value said = config_[key];
        apart && said["model_type"].exists() && !said["model_type"].text().starts_with(own)) {
      type = said["model_type"].text();
      const std::vector<std::string> known = family_table_names();
      if (std::find(known.begin(), known.end(), type) == known.end())
        said["model_type"].fail(fmt::format("no network '{}' is built here beside another", type));
    }
    std::erase_if(part.entries, [&](const Entry& entry) {
      return entry.key == "architectures" || (!apart && entry.key.ends_with("_config"));
    });
    HuggingFaceDescription read = description_by_table(type, Value(part));
    constexpr std::array kOfNetworks{std::string_view("family"), std::string_view("head"), std::string_view("labels"),
                                     std::string_view("pooler")};
    for (Entry& entry : read.tree.entries)
      if (!tower || std::find(kOfNetworks.begin(), kOfNetworks.end(), entry.key) == kOfNetworks.end())
        put(tree, entry.key, std::move(entry.value));
    if (!apart) {
      for (const Entry& entry : part.entries)
        if (std::find(read.unread.begin(), read.unread.end(), entry.key) == read.unread.end()) read_.insert(entry.key);
      return;
    }
    for (const std::string& name : read.unread)
      if (!config_key_is_of_generation(name)) unread.push_back(key + "." + name);
  }

  /// Keys of a part (text_config, vision_config) of which some are read, and these are not.
  void add_unread_of_part(const Entry& entry, std::vector<std::string>& unread) const {
    const std::string within = entry.key + ".";
    const auto first = read_.lower_bound(within);
    for (const char* part : {"text", "vision"})
      if (table_[part].exists() && table_[part].list().front().is(entry.key)) return;
    if (!entry.key.ends_with("_config") || first == read_.end() || !first->starts_with(within)) return;
    for (const Entry& key : entry.value.entries)
      if (!read_.contains(within + key.key) && !config_key_changes_nothing(key.key) &&
          !config_key_is_of_generation(key.key))
        unread.push_back(within + key.key);
  }

  /// The value of a dotted name, or an absent one.
  Value look_up(const std::string& name) {
    read_.insert(name);
    read_.insert(name.substr(0, name.find('.')));
    Value at = config_;
    for (std::size_t from = 0; from != std::string::npos;) {
      const std::size_t dot = name.find('.', from);
      if (at.is_list() && !at.list().empty()) {
        for (const Value& item : at.list())
          if (!name.starts_with("architectures") && item.text() != at.list().front().text())
            item.fail("differs from the first of its list, which is not built");
        return at.list().front();
      }
      if (!at.is_mapping()) return default_of(name);
      at = at[name.substr(from, dot == std::string::npos ? dot : dot - from)];
      from = dot == std::string::npos ? dot : dot + 1;
    }
    return at.exists() ? at : default_of(name);
  }
  /// What Transformers takes where a configuration does not have a key.
  Value default_of(const std::string& name) const {
    for (const Value* table : {&table_, &base_})
      if (table->exists() && (*table)["defaults"].exists() && (*table)["defaults"][name].exists())
        return (*table)["defaults"][name];
    return Value::absent(name, config_.origin());
  }
  Value first_given(const Value& names) {
    if (!names.is_list()) return look_up(names.text());
    Value found = Value::absent("", config_.origin());
    for (const Value& name : names.list()) {
      const Value value = look_up(name.text());
      if (!is_said(found)) found = value;
    }
    return found;
  }

  /// A number, or the value of a key.
  double factor(const Value& times) {
    const std::string text = times.text();
    return text.find_first_not_of("0123456789") == std::string::npos ? times.number() : look_up(text).number();
  }

  void read_key(const std::string& key, const Value& from, Node& tree) {
    const bool plain = !from.is_mapping();
    const Value value = first_given(plain ? from : from["key"]);
    if (is_said(value)) {
      if (!plain && from["count"].exists()) {
        const std::size_t entries = value.is_mapping() ? value.node().entries.size() : value.node().items.size();
        return put(tree, key, config::scalar_node(std::to_string(entries), value.origin()));
      }
      if (!plain && from["values"].exists()) return put(tree, key, translated(value, from["values"]));
      if (!plain && from["letters"].exists()) return put(tree, key, spelled(value, from["letters"]));
      if (!plain && (from["times"].exists() || from["plus"].exists() || from["over"].exists())) {
        double number = value.number() + static_cast<double>(from["plus"].integer({}, 0));
        if (from["times"].exists()) number *= factor(from["times"]);
        if (from["over"].exists()) number /= static_cast<double>(from["over"].integer());
        constexpr double kMost = 9e15;  // whole numbers are exact up to there
        if (!(std::abs(number) <= kMost)) value.fail(fmt::format("{} is too large a number", value.text()));
        return put(tree, key, config::scalar_node(std::to_string(static_cast<std::int64_t>(number)), value.origin()));
      }
      return put(tree, key, value.node());
    }
    // Transformers names so many labels where a configuration names none.
    if (const Value number = look_up("num_labels"); !plain && from["count"].exists() && is_said(number))
      return put(tree, key, number.node());
    // What the table itself reads elsewhere its base need not find.
    const bool elsewhere = reads_base_ && table_["keys"].exists() && table_["keys"][key].exists();
    if (plain && !elsewhere && (key == "layers" || key == "heads" || key == "hidden" || key == "vocabulary"))
      config_.fail(fmt::format("{} is missing, which a {} needs",
                               from.is_list() ? from.list().front().text() : from.text(), type_of_network(config_)));
    if (plain || !from["otherwise"].exists()) return;
    const Value otherwise = from["otherwise"];
    if (from["values"].exists()) return put(tree, key, translated(otherwise, from["values"]));
    put(tree, key, otherwise.is_list() ? otherwise.node() : config::scalar_node(otherwise.text(), config_.origin()));
  }

  void section(const Value& from, Node& tree) {
    if (from["set"].exists())
      for (const Entry& entry : from["set"].node().entries) put(tree, entry.key, entry.value);
    if (from["keys"].exists())
      for (const Entry& entry : from["keys"].node().entries) read_key(entry.key, from["keys"][entry.key], tree);
    if (!from["when"].exists()) return;
    for (const Value& rule : from["when"].list()) {
      const Value value = first_given(rule["key"]);
      const std::string text = is_said(value) && value.node().kind == Node::Kind::scalar ? value.text()
                               : is_said(value)                                          ? "given"
                                                : rule["otherwise"].text("null");
      const bool holds = rule["is"].exists() ? rule["is"].is(text) : !rule["is_not"].is(text);
      if (holds) section(rule, tree);
    }
  }

  /// How many a classifier has whose table does not say, and the loss that Transformers takes for them.
  void count_labels(Node& tree) {
    count_labels_of_table(tree);
    const auto labels = std::find_if(tree.entries.begin(), tree.entries.end(),
                                     [](const Entry& entry) { return entry.key == "labels"; });
    const bool one = labels != tree.entries.end() && labels->value.scalar == "1";
    const Value problem = look_up("problem_type");
    const bool tokens = head() == "token-classification";
    if (tokens || (!one && !is_said(problem))) return;
    const bool numbers = is_said(problem) ? problem.is("regression") : one;
    if (numbers) put(tree, "class_loss", config::scalar_node("squares", config_.origin()));
    else if (problem.is("multi_label_classification"))
      put(tree, "class_loss", config::scalar_node("each-label", config_.origin()));
  }
  void count_labels_of_table(Node& tree) {
    const auto says = [&](std::string_view key) {
      return std::any_of(tree.entries.begin(), tree.entries.end(),
                         [&](const Entry& entry) { return entry.key == key; });
    };
    if (says("labels")) return;
    if (const Value names = look_up("id2label"); names.is_mapping())
      put(tree, "labels", config::scalar_node(std::to_string(names.node().entries.size()), names.origin()));
    else if (const Value number = look_up("num_labels"); is_said(number)) put(tree, "labels", number.node());
  }

  /// What the class that the file names has on top.
  std::string head() {
    const Value known = table_["architectures"], named = config_["architectures"];
    std::vector<std::string> names;
    for (const Entry& entry : known.node().entries) names.push_back(entry.key);
    if (!is_said(named)) return known[names.front()].text();
    if (!named.is_list()) named.fail(fmt::format("expected a list of names, as [\"{}\"]", names.front()));
    if (named.list().empty()) return known[names.front()].text();
    const Value name = named.list().front();
    if (known[name.text()].exists()) return known[name.text()].text();
    for (const std::string& one : names)  // LLaMAForCausalLM of early 2023
      if (in_small_letters(one) == in_small_letters(name.text())) return known[one].text();
    // A backbone without a head trains with one: a classifier's where there is such a class.
    const std::string backbone =
        names.front().substr(0, std::min(names.front().find("For"), names.front().find("LMHead")));
    if (name.is(backbone + "Model")) {
      for (const std::string& one : names)
        if (known[one].is("sequence-classification")) return known[one].text();
      return known[names.front()].text();
    }
    // Heads that Transformers gives all decoders (modeling_layers.py), and all encoders but those whose table says no.
    const std::pair<std::string_view, bool> fronts[] = {
        {"ForCausalLM", true}, {"LMHeadModel", true}, {"ForMaskedLM", false}};
    for (const auto& [front, decodes] : fronts) {
      if (!names.front().ends_with(front)) continue;
      const std::string stem = names.front().substr(0, names.front().size() - front.size());
      if (decodes && name.is(stem + "ForSequenceClassification")) return "sequence-classification";
      if (name.is(stem + std::string(kOfTokens)) && !table_["own_heads"].exists()) return "token-classification";
    }
    name.fail(fmt::format("'{}' has no head here; expected {}", name.text(), fmt::join(names, " or ")));
  }

  /// Weights that were published in 8 or 4 bits for the network's own use are expanded before they are trained; others
  /// were quantised afterwards.
  static void check_quantised(const Value& how) {
    if (!is_said(how)) return;
    const Value method = how["quant_method"];
    if (!method.exists() || (!method.is("fp8") && !method.is("mxfp4")))
      how.fail(
          fmt::format("weights quantised by {} are not trained; expected the configuration of the network before it "
                      "was quantised, with training.lora.frozen_weights: nf4 for QLoRA",
                      method.exists() ? method.text() : "an unnamed method"));
  }

  void check_fixed() {
    static const std::pair<const char*, const char*> kEvery[] = {{"chunk_size_feed_forward", "0"},
                                                                 {"gradient_checkpointing", "false"},
                                                                 {"output_attentions", "false"},
                                                                 {"output_hidden_states", "false"},
                                                                 {"torchscript", "false"}};
    for (const auto& [key, allowed] : kEvery) {
      const Value value = look_up(key);
      if (is_said(value) && !value.is(allowed))
        value.fail(fmt::format("not built; expected {} or no such key", allowed));
    }
    const Value both = look_up("is_encoder_decoder"), cross = look_up("add_cross_attention");
    const bool encodes = table_["encoder"].exists() || (base_.exists() && base_["encoder"].exists());
    const char* expected = encodes && !table_["vision"].exists() && head() != "contrastive" ? "true" : "false";
    if (is_said(both) && !both.is(expected) && !table_["program"].exists())
      both.fail(fmt::format("such a network is not built; expected {}", expected));
    if (is_said(cross) && !cross.is("false")) cross.fail("cross-attention of a decoder alone is not built");
    const Value quantised = look_up("quantization_config"), problem = look_up("problem_type");
    check_quantised(quantised);
    if (is_said(quantised)) read_.erase("quantization_config");  // a report names it
    if (is_said(problem) && !problem.is("single_label_classification") && !problem.is("regression") &&
        !problem.is("multi_label_classification"))
      problem.fail("expected single_label_classification, multi_label_classification or regression");
    const Value pruned = look_up("pruned_heads");
    if (pruned.is_mapping() && !pruned.node().entries.empty()) pruned.fail("pruned heads are not built");
    for (const Value* table : {&base_, &table_}) {
      if (!table->exists()) continue;
      if ((*table)["fixed"].exists())
        for (const Entry& entry : (*table)["fixed"].node().entries)
          if (table == &table_ || !table_["fixed"].exists() || !table_["fixed"][entry.key].exists())
            check_fixed(entry.key, (*table)["fixed"][entry.key]);
      if ((*table)["ignored"].exists())
        for (const Value& name : (*table)["ignored"].list()) read_.insert(name.text());
    }
  }
  void check_fixed(const std::string& key, const Value& values) {
    const Value value = look_up(key);
    if (!is_said(value) || (value.is_list() && value.list().empty())) return;
    std::vector<std::string> allowed;
    for (const Value& item : values.list()) allowed.push_back(item.text());
    if (std::none_of(allowed.begin(), allowed.end(), [&](const std::string& text) { return value.is(text); }))
      value.fail(fmt::format("such a network is not built; expected {}no such key",
                             allowed.empty() ? "" : fmt::format("{} or ", fmt::join(allowed, " or "))));
  }

  const Value table_, base_, config_;
  bool reads_base_ = false;
  std::deque<Node> parts_;  ///< of the configuration that other tables describe
  std::set<std::string> read_{"architectures", "model_type", "id2label", "num_labels", "use_cache", "is_decoder"};
};

}  // namespace

std::vector<std::string> family_table_names() { return config::yaml_names(config::data_folder("models") / "families"); }

HuggingFaceDescription description_by_table(const std::string& model_type, const Value& config) {
  const auto load = [](const std::string& name) {
    return config::load_yaml((config::data_folder("models") / "families" / (name + ".yaml")).string());
  };
  const Node own = load(model_type);
  const Value named = config["architectures"], elsewhere = Value(own)["elsewhere"];
  Value other = Value::absent("elsewhere", config.origin());
  for (const Value& variant : Value(own)["variants"].exists() ? Value(own)["variants"].list() : std::vector<Value>{})
    if (const Value given = config[variant["key"].text()]; is_said(given) && variant["is"].is(given.text()))
      return description_by_table(variant["table"].text(), config);
  if (elsewhere.exists() && is_said(named) && named.is_list() && !named.list().empty())
    other = elsewhere[named.list().front().text()];
  const Node table = other.exists() ? load(other.text()) : own;
  const Value like = Value(table)["like"];
  if (!like.exists()) return TableReading(Value(table), like, config).read();
  const Node base = load(like.text());
  return TableReading(Value(table), Value(base), config).read();
}

}  // namespace ridgeline
