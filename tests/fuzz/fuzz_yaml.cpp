// Text that is YAML or looks like it, read as every description is.
#include <algorithm>

#include "sim/config/parse_yaml.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

struct TreeSize {
  std::size_t nodes = 1;
  int depth = 1;
};
TreeSize size_of_tree(const config::Node& node) {
  TreeSize size;
  const auto add = [&](const config::Node& part) {
    const TreeSize inner = size_of_tree(part);
    size.nodes += inner.nodes;
    size.depth = std::max(size.depth, inner.depth + 1);
  };
  for (const config::Node& item : node.items) add(item);
  for (const config::Entry& entry : node.entries) add(entry.value);
  return size;
}

}  // namespace

std::string fuzz_yaml(const std::uint8_t* data, std::size_t size) {
  try {
    const config::Node tree = config::parse_yaml({reinterpret_cast<const char*>(data), size}, "input");
    const TreeSize found = size_of_tree(tree);
    if (found.nodes > 2 * config::kMaxNodes) return "more nodes than a description may have";
    if (found.depth > config::kMaxDepth + 1) return "deeper than a description may be";
    if (!tree.origin.name) return "a document without a place";
  } catch (const config::ConfigError& error) {
    if (error.origin().to_string().find("input") == std::string::npos)
      return std::string("a message that names no place: ") + error.what();
  }
  return {};
}

}  // namespace ridgeline
