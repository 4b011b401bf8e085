#include "sim/workload/huggingface_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config/make_node.h"

namespace ridgeline {

using config::Entry;
using config::Node;
using config::Value;

Node translated(const Value& value, const Value& values) {
  if (value.is_list()) {
    Node list;
    list.kind = Node::Kind::list;
    list.origin = value.origin();
    // Lists in lists are flattened, and numbers without a meaning (how often a part is repeated) left out.
    for (const Value& item : value.list()) {
      if (item.is_list()) {
        for (Node& inner : translated(item, values).items) list.items.push_back(std::move(inner));
      } else if (values[item.text()].exists() || item.text().find_first_not_of("0123456789") != std::string::npos) {
        list.items.push_back(translated(item, values));
      }
    }
    return list;
  }
  const std::string text = value.text();
  if (text.find('|') != std::string::npos) {  // a list in one word: p2c|c2p
    Node list;
    list.kind = Node::Kind::list;
    list.origin = value.origin();
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t end = std::min(text.find('|', from), text.size());
      const Node one = config::scalar_node(text.substr(from, end - from), value.origin());
      list.items.push_back(translated(Value(one), values));
      from = end + 1;
    }
    return list;
  }
  const Value becomes = values[text];
  if (becomes.exists()) return config::scalar_node(becomes.text(), value.origin());
  std::vector<std::string> known;
  for (const Entry& entry : values.node().entries) known.push_back(entry.key);
  value.fail(fmt::format("'{}' is not built here; expected {}", text, fmt::join(known, " or ")));
}

Node spelled(const Value& value, const Value& letters) {
  Node list;
  list.kind = Node::Kind::list;
  list.origin = value.origin();
  for (const char letter : value.text())
    list.items.push_back(translated(Value(config::scalar_node({letter}, value.origin())), letters));
  return list;
}

}  // namespace ridgeline
