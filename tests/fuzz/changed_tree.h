// Descriptions as fuzz targets are given them: shipped ones with some lines of changes, or YAML of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"

namespace ridgeline {

/// "@NAME" on the first line, then changes: `key=value` as after --set, `-key` for a key that is taken out.
struct DescribedChange {
  std::string name;  ///< empty: the text is a description by itself
  std::vector<config::Override> changes;
  std::vector<std::string> left_out;  ///< keys
};
DescribedChange described_change(std::string_view text);

struct ShippedTree {
  std::string name;  ///< its path below the folder without the extension
  config::Node tree;
};
/// The .yaml and .json files below a folder beside hw/, in ascending order. Not those below `except`.
std::vector<ShippedTree> shipped_trees(const std::string& folder, const std::string& except = "no such folder");

/// One of `names`, whatever `name` is.
std::size_t entry_of(std::string_view name, const std::vector<std::string>& names);

/// The tree that the text means. Throws config::ConfigError for text that is no YAML and changes that cannot be made.
config::Node changed_tree(std::string_view text, const std::vector<ShippedTree>& shipped);

}  // namespace ridgeline
