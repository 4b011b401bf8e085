#include "fit/yaml_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace ridgeline::fit {

using config::ConfigError;
using config::Entry;
using config::Node;

const Node& field_of(const Node& node, std::string_view key) {
  const Node* found = node.find(key);
  if (found == nullptr) throw ConfigError(node.origin, key, "is missing");
  return *found;
}

std::string text_of(const Node& node, std::string_view key) {
  const Node& found = field_of(node, key);
  if (found.kind != Node::Kind::scalar)
    throw ConfigError(found.origin, key, fmt::format("expected a text, not {}", found.describe()));
  return found.scalar;
}

double number_of(const Node& scalar) {
  double value = 0.0;
  const std::string& text = scalar.scalar;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (scalar.kind != Node::Kind::scalar || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    throw ConfigError(scalar.origin, "", fmt::format("expected a number, not {}", scalar.describe()));
  return value;
}

double number_of(const Node& node, std::string_view key) { return number_of(field_of(node, key)); }

std::optional<double> find_number(const Node& node, std::string_view key) {
  const Node* found = node.find(key);
  return found == nullptr ? std::nullopt : std::optional(number_of(*found));
}

bool find_flag(const Node& node, std::string_view key) {
  const Node* found = node.find(key);
  if (found == nullptr) return false;
  if (found->scalar != "true" && found->scalar != "false")
    throw ConfigError(found->origin, key, fmt::format("expected true or false, not {}", found->describe()));
  return found->scalar == "true";
}

const std::vector<Node>& items_of(const Node& node, std::string_view key) { return field_of(node, key).items; }

const std::vector<Entry>& entries_of(const Node& node, std::string_view key) {
  static const std::vector<Entry> none;
  const Node* found = node.find(key);
  return found == nullptr ? none : found->entries;
}

void expect_keys(const Node& node, std::initializer_list<std::string_view> known) {
  for (const Entry& entry : node.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw ConfigError(entry.key_origin, entry.key,
                        fmt::format("unknown key; expected one of {}", fmt::join(known, ", ")));
}

}  // namespace ridgeline::fit
