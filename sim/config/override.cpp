#include "sim/config/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/config/parse_yaml.h"

namespace ridgeline::config {
namespace {

void set_origin(Node& node, const Origin& origin) {
  node.origin = origin;
  for (Node& item : node.items) set_origin(item, origin);
  for (Entry& entry : node.entries) {
    entry.key_origin = origin;
    set_origin(entry.value, origin);
  }
}

/// Words and numbers that mean themselves in YAML: a sweep sets some of them for every point.
bool is_plain(std::string_view value) {
  const auto letter = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (value.empty() || !letter(value.front()) || value.back() == ' ') return false;
  for (const std::string_view word : {"null", "Null", "NULL"})
    if (value == word) return false;
  constexpr std::string_view kInside = "._-+/% ";
  return value.size() <= 128 && value.find("  ") == std::string_view::npos &&
         std::all_of(value.begin(), value.end(), [&](char c) { return letter(c) || kInside.find(c) != kInside.npos; });
}

Node parsed_value(const Override& change, const Origin& origin) {
  if (is_plain(change.value)) {
    Node node;
    node.kind = Node::Kind::scalar;
    node.scalar = change.value;
    node.origin = origin;
    return node;
  }
  try {
    Node node = parse_yaml(change.value, *origin.name);
    set_origin(node, origin);
    return node;
  } catch (const ConfigError& error) {
    throw ConfigError(origin, change.key, error.message());
  }
}

Node& list_item(Node& list, std::string_view step, const Override& change, const Origin& origin) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc{} || end != step.data() + step.size() || index >= list.items.size()) {
    throw ConfigError(origin, change.key,
                      fmt::format("'{}' is not an item of this list of {}", step, list.items.size()));
  }
  return list.items[index];
}

Node& entry_of(Node& node, std::string_view step, std::string_view done, const Override& change, const Origin& origin) {
  if (node.kind == Node::Kind::list) return list_item(node, step, change, origin);
  if (node.kind == Node::Kind::scalar) {
    throw ConfigError(origin, change.key, fmt::format("{} is {}, not a mapping", done, node.describe()));
  }
  if (node.kind == Node::Kind::null) node.kind = Node::Kind::mapping;
  if (Node* found = node.find(step)) return *found;
  node.entries.push_back({std::string(step), origin, Node{}});
  // A mapping made on the way to the key lacks other keys for its parent's reasons, not for this change's.
  node.entries.back().value.origin = node.origin;
  return node.entries.back().value;
}

}  // namespace

Override parse_override(std::string_view argument) {
  const auto equals = argument.find('=');
  Override change{std::string(argument.substr(0, equals)), "", fmt::format("--set {}", argument)};
  const Origin origin{std::make_shared<const std::string>(change.origin), 0, 0};
  if (equals == std::string_view::npos || change.key.empty()) {
    throw ConfigError(origin, "", "expected KEY=VALUE, such as training.micro_batch=8");
  }
  change.value = argument.substr(equals + 1);
  if (change.value.find_first_not_of(" \t") == std::string::npos)
    throw ConfigError(origin, change.key, "no value after '='");
  return change;
}

namespace {

Origin origin_of(const Override& change) {
  const std::string name = change.origin.empty() ? fmt::format("--set {}={}", change.key, change.value) : change.origin;
  return {std::make_shared<const std::string>(name), 0, 0};
}

}  // namespace

Node value_of(const Override& change) { return parsed_value(change, origin_of(change)); }

void apply_override(Node& root, const Override& change) {
  const Origin origin = origin_of(change);
  Node value = parsed_value(change, origin);
  Node* node = &root;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = change.key.find('.', begin);
    const std::string step = change.key.substr(begin, dot == std::string::npos ? dot : dot - begin);
    if (step.empty()) throw ConfigError(origin, change.key, "a key is words joined by single dots");
    node = &entry_of(*node, step, begin == 0 ? "the document" : change.key.substr(0, begin - 1), change, origin);
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  *node = std::move(value);
}

}  // namespace ridgeline::config
