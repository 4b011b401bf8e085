#include "sim/workload/compile/inline_results.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace ridgeline::compile {
namespace {

/// A result with several users is written when it reads more operands than this, or takes more instructions.
constexpr std::size_t kMostReads = 4;
constexpr std::int64_t kMostInstructions = 30;

class Inliner {
 public:
  explicit Inliner(Graph& graph) : graph_(graph), inlined_(graph.nodes.size(), false), users_(graph.values.size()) {}

  std::vector<bool> run() {
    for (NodeId i = 0; i < graph_.nodes.size(); ++i)
      for (const Use& use : graph_.nodes[i].inputs) users_[use.value].push_back(i);
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.kind != Node::Kind::library) expand(node);
      if (may_inline(node)) inlined_[i] = true;
    }
    return inlined_;
  }

 private:
  void expand(Node& node) {
    std::vector<Use> inputs;
    for (const Use& use : node.inputs) {
      const NodeId producer = graph_.values[use.value].producer;
      if (producer != kNone && producer < inlined_.size() && inlined_[producer] &&
          graph_.nodes[producer].backward == node.backward) {
        const Node& source = graph_.nodes[producer];
        // Of what is read in part, only that part is computed.
        const Value& value = graph_.values[use.value];
        const double share = value.bytes > use.bytes && use.bytes * 8 < value.bytes
                                 ? static_cast<double>(use.bytes) / static_cast<double>(value.bytes)
                                 : 1.0;
        for (Use operand : source.inputs) {
          operand.bytes = std::max<std::int64_t>(4, std::llround(share * static_cast<double>(operand.bytes)));
          add_use(inputs, operand);
        }
        node.arithmetic += source.arithmetic;
        node.operations += source.operations;
        node.gathers = node.gathers || source.gathers;
        node.alone = node.alone || source.alone;
        node.inner.insert(node.inner.end(), source.inner.begin(), source.inner.end());
        node.inner.push_back(source.name);
      } else {
        add_use(inputs, use);
      }
    }
    node.inputs = std::move(inputs);
  }
  [[nodiscard]] bool may_inline(const Node& node) const {
    if (node.kind != Node::Kind::pointwise || node.realizes || node.outputs.size() != 1) return false;
    const ValueId id = node.outputs.front().value;
    const Value& value = graph_.values[id];
    if (value.stored || value.leaves || value.kept || value.in_place_of != kNone) return false;
    for (const NodeId user : users_[id]) {
      const Node& u = graph_.nodes[user];
      if (u.kind == Node::Kind::library || u.backward != node.backward) return false;
    }
    if (users_[id].empty()) return true;
    return users_[id].size() == 1 || (reads_of(node) <= kMostReads && node.operations <= kMostInstructions);
  }
  /// The result of a row's kernel is itself point-wise, of the row's operands and sums.
  [[nodiscard]] std::size_t reads_of(const Node& node) const {
    std::size_t reads = 0;
    for (const Use& use : node.inputs) {
      const NodeId producer = graph_.values[use.value].producer;
      const bool of_row = producer != kNone && graph_.nodes[producer].kind != Node::Kind::library &&
                          graph_.nodes[producer].kind != Node::Kind::pointwise &&
                          graph_.nodes[producer].backward == node.backward;
      reads += of_row ? graph_.nodes[producer].inputs.size() + 1 : 1;
    }
    return reads;
  }

  Graph& graph_;
  std::vector<bool> inlined_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

void add_use(std::vector<Use>& uses, const Use& use) {
  for (Use& known : uses)
    if (known.value == use.value) {
      known.bytes = std::max(known.bytes, use.bytes);
      return;
    }
  uses.push_back(use);
}

std::vector<bool> inline_results(Graph& graph) { return Inliner(graph).run(); }

}  // namespace ridgeline::compile
