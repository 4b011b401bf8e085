// Nodes of values that no YAML text says: worked out, or read from another format.
#pragma once

#include <string>
#include <utility>

#include "sim/config/node.h"

namespace ridgeline::config {

inline Node scalar_node(std::string text, const Origin& origin) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.scalar = std::move(text);
  node.origin = origin;
  return node;
}

inline Node mapping_node(const Origin& origin) {
  Node node;
  node.kind = Node::Kind::mapping;
  node.origin = origin;
  return node;
}

}  // namespace ridgeline::config
