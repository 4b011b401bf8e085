#include "sim/hardware/resolve_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/hardware/derived_defaults.h"
#include "sim/hardware/hardware_file.h"

namespace ridgeline {
namespace {

using config::Node;

/// Gives bare values (`count: 58`) the source of the whole file, the measured section too.
void give_source(Node& node, const Node& source) {
  if (node.kind != Node::Kind::mapping) {
    Node field;
    field.kind = Node::Kind::mapping;
    field.origin = node.origin;
    Node value = std::move(node);
    field.entries = {{"value", value.origin, value}, {"source", value.origin, source}};
    node = std::move(field);
    return;
  }
  if (node.find("value")) {
    if (!node.find("source")) node.entries.push_back({"source", node.origin, source});
    return;
  }
  for (config::Entry& entry : node.entries) give_source(entry.value, source);
}

/// The source of the whole file to its bare values; sections keep their shape whatever stands in them.
void spread_source(Node& tree) {
  const Node* source = tree.find("source");
  if (!source) return;
  const Node text = *source;
  for (config::Entry& entry : tree.entries)
    if (entry.key != "title" && entry.key != "aliases" && entry.key != "extends" && entry.key != "source")
      give_source(entry.value, text);
}

void drop(Node& tree, std::string_view key) {
  std::erase_if(tree.entries, [key](const config::Entry& entry) { return entry.key == key; });
}

/// The file that `extends` names: beside the file that says so, or as hardware names and paths go.
std::string extended_file(const config::Value& extends, const std::string& file) {
  const std::string name = extends.text();
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / name;
  std::error_code ignored;
  if (names_a_path(name))
    if (std::filesystem::is_regular_file(beside, ignored)) return beside.string();
  try {
    const std::string found = described_file("hardware", "", name);
    if (!std::filesystem::exists(found, ignored)) (void)config::load_yaml(found);  // throws, with the nearest file
    return found;
  } catch (const config::ConfigError& error) {
    extends.fail(error.message());
  }
}

std::string identity(const std::string& file) {
  std::error_code ignored;
  const auto path = std::filesystem::weakly_canonical(file, ignored);
  return ignored ? file : path.string();
}

ResolvedFile resolve(Node tree, const std::string& file, std::vector<std::string> chain) {
  ResolvedFile result;
  chain.push_back(identity(file));
  if (tree.kind != Node::Kind::mapping) return {tree, tree, {file}};
  spread_source(tree);
  Node measured;
  if (const Node* found = tree.find("measured"); found && found->kind != Node::Kind::null) {
    if (found->kind != Node::Kind::mapping)
      throw config::ConfigError(found->origin, "measured", "expected a mapping, got " + found->describe());
    measured = *found;
  }
  const config::Value extends = config::Value(tree)["extends"];
  if (extends.exists()) {
    const std::string from = extended_file(extends, file);
    if (std::find(chain.begin(), chain.end(), identity(from)) != chain.end()) {
      std::vector<std::string> names;
      for (const std::string& link : chain) names.push_back(std::filesystem::path(link).stem().string());
      extends.fail(fmt::format("leads in a circle: {} -> {}", fmt::join(names, " -> "),
                               std::filesystem::path(from).stem().string()));
    }
    result = resolve(config::load_yaml(from), from, chain);
    for (Node* base : {&result.base, &result.measured}) {
      for (const std::string_view key : {"title", "aliases", "extends", "source", "measured"}) drop(*base, key);
      lay_over(*base, tree);
    }
  } else {
    fill_defaults(tree);
    result.base = result.measured = tree;
  }
  if (measured.kind == Node::Kind::mapping) lay_over(result.measured, measured);
  result.files.push_back(file);
  return result;
}

}  // namespace

ResolvedFile resolve_file(Node tree, const std::string& file) { return resolve(std::move(tree), file, {}); }

void refuse_keys_of_files(std::span<const config::Override> changes) {
  for (const config::Override& change : changes) {
    const std::string key = change.key.substr(0, change.key.find('.'));
    if (key != "extends" && key != "base" && key != "measured") continue;
    throw config::ConfigError(config::value_of(change).origin, change.key,
                              "a file says it for itself, before anything is changed: name another file, or write one");
  }
}

}  // namespace ridgeline
