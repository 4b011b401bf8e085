#include "sim/config/node.h"

namespace ridgeline::config {

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(static_cast<const Node&>(*this).find(key)); }

std::string Node::describe() const {
  constexpr std::size_t kShown = 60;
  switch (kind) {
    case Kind::null: return "nothing";
    case Kind::scalar: return "'" + (scalar.size() > kShown ? scalar.substr(0, kShown) + "..." : scalar) + "'";
    case Kind::list: return "a list";
    case Kind::mapping: return "a mapping";
  }
  return "";
}

}  // namespace ridgeline::config
