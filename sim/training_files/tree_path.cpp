#include "sim/training_files/tree_path.h"

#include <string>
#include <utility>

namespace ridgeline::training_files {

using config::Node;

void set_path(Node& root, std::string_view path, Node value) {
  Node* at = &root;
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string step(path.substr(0, dot));
    if (at->kind != Node::Kind::mapping) {
      *at = Node{};
      at->kind = Node::Kind::mapping;
      at->origin = root.origin;
    }
    Node* next = at->find(step);
    if (next == nullptr) {
      at->entries.push_back({step, value.origin, Node{}});
      next = &at->entries.back().value;
      next->origin = root.origin;
    }
    at = next;
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  *at = std::move(value);
}

const Node* find_path(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (at != nullptr) {
    const std::size_t dot = path.find('.');
    at = at->find(path.substr(0, dot));
    if (dot == std::string_view::npos) return at;
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

}  // namespace ridgeline::training_files
