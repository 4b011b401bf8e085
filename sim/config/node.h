// The tree of a YAML document: scalars as written, lists and mappings in their order, and where each stands.
//
// A plain value without meaning yet: sim/config/value.h reads it with types. Keys of a mapping are distinct. Anchors
// and aliases are expanded. Built by parse_yaml, changed by apply_override.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/config_error.h"

namespace ridgeline::config {

struct Entry;

struct Node {
  enum class Kind : unsigned char { null, scalar, list, mapping };

  Kind kind = Kind::null;
  std::string scalar;          ///< text of a scalar, unquoted
  std::vector<Node> items;     ///< of a list
  std::vector<Entry> entries;  ///< of a mapping
  Origin origin;

  /// The value of `key`; null when this is no mapping or lacks it.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);

  /// "a mapping", "a list", "nothing" or the scalar in quotes, for messages.
  [[nodiscard]] std::string describe() const;
};

struct Entry {
  std::string key;
  Origin key_origin;
  Node value;
};

}  // namespace ridgeline::config
