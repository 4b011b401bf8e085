#include "sim/workload/compile/partition.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

namespace ridgeline::compile {
namespace {

class Partitioner {
 public:
  explicit Partitioner(Graph& graph) : graph_(graph), read_by_library_(graph.values.size(), false) {}

  /// `saved`: forward nodes whose results are kept where the backward graph needs them.
  void run_checkpointed(std::vector<bool> saved) {
    checkpointed_ = true;
    saved_ = std::move(saved);
    insert_copies();
  }

  void run() {
    for (const Node& node : graph_.nodes)
      if (node.backward && node.kind == Node::Kind::library)
        for (const Use& use : node.inputs) read_by_library_[use.value] = true;
    // First what has to be kept: it costs nothing to use it again.
    for (const Node& node : graph_.nodes)
      if (node.backward)
        for (const Use& use : node.inputs)
          if (of_forward(use.value) && !can_compute_again(use.value)) graph_.values[use.value].stored = true;
    for (const Node& node : graph_.nodes)
      if (node.backward)
        for (const Use& use : node.inputs)
          if (of_forward(use.value)) decide(use.value);
    insert_copies();
  }

 private:
  [[nodiscard]] bool of_forward(ValueId value) const {
    const NodeId producer = graph_.values[value].producer;
    return producer != kNone && !graph_.nodes[producer].backward;
  }
  [[nodiscard]] bool can_compute_again(ValueId id) const {
    const Value& value = graph_.values[id];
    const Node& producer = graph_.nodes[value.producer];
    if (producer.kind != Node::Kind::pointwise || value.kept || value.leaves) return false;
    return !read_by_library_[id];
  }
  [[nodiscard]] bool at_hand(ValueId id) const { return !of_forward(id) || graph_.values[id].stored; }

  /// Bytes that must be kept besides, to have `id` in the backward graph; collects what they are.
  std::int64_t cost_of_again(ValueId id, std::vector<ValueId>& kept, int depth) const {
    constexpr int kDeepest = 24;
    std::int64_t sum = 0;
    for (const Use& use : graph_.nodes[graph_.values[id].producer].inputs) {
      if (at_hand(use.value) || std::find(kept.begin(), kept.end(), use.value) != kept.end()) continue;
      std::vector<ValueId> deeper;
      const std::int64_t own = graph_.values[use.value].bytes;
      if (depth < kDeepest && can_compute_again(use.value)) {
        const std::int64_t again = cost_of_again(use.value, deeper, depth + 1);
        if (again <= own) {
          sum += again;
          kept.insert(kept.end(), deeper.begin(), deeper.end());
          continue;
        }
      }
      sum += own;
      kept.push_back(use.value);
    }
    return sum;
  }

  void decide(ValueId id) {
    if (at_hand(id) || decided_.contains(id)) return;
    std::vector<ValueId> kept;
    // What is made of padded rows is a little shorter than they are.
    const std::int64_t own = graph_.values[id].bytes;
    if (cost_of_again(id, kept, 0) <= own + own / kPaddingShare) {
      decided_[id] = true;
      for (const ValueId value : kept) graph_.values[value].stored = true;
    } else {
      graph_.values[id].stored = true;
    }
  }

  void insert_copies() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      Node next = node;
      if (node.backward)
        for (Use& use : next.inputs) use.value = in_backward(use.value, node);
      push(std::move(next));
    }
  }
  void push(Node node) {
    for (const Use& use : node.outputs) graph_.values[use.value].producer = static_cast<NodeId>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
  }
  /// The value itself, or a copy made again for the backward graph.
  ValueId in_backward(ValueId id, const Node& user) {
    if (const auto found = copies_.find(id); found != copies_.end()) return found->second;
    const Value& value = graph_.values[id];
    if (value.again != kNone) return value.again;
    if (value.gone) graph_.saved_inputs.insert(value.storage);
    // What leaves the forward graph may be gone: the script's, as casts that autocast remembers.
    if (value.producer == kNone || (value.stored && !(checkpointed_ && value.leaves))) return id;
    const Node& producer = graph_.nodes[value.producer];
    if (producer.backward || (!checkpointed_ && producer.kind != Node::Kind::pointwise)) return id;
    if (checkpointed_ && saved_[value.producer]) {
      graph_.values[id].stored = true;
      return id;
    }
    Node again = producer;
    again.backward = true;
    again.phase = user.phase;
    for (Use& use : again.inputs) use.value = in_backward(use.value, user);
    for (Use& use : again.outputs) {
      Value copy = graph_.values[use.value];
      copy.stored = copy.leaves = copy.ends_here = false;
      copy.storage = kNone;
      copy.category = Category::temporaries;
      if (const auto place = copies_.find(copy.in_place_of); place != copies_.end()) copy.in_place_of = place->second;
      graph_.values.push_back(copy);
      copies_[use.value] = static_cast<ValueId>(graph_.values.size() - 1);
      use.value = copies_[use.value];
    }
    push(std::move(again));
    return copies_[id];
  }

  Graph& graph_;
  std::vector<bool> read_by_library_;
  bool checkpointed_ = false;
  std::vector<bool> saved_;  ///< of a checkpointed graph, by forward node
  std::unordered_map<ValueId, bool> decided_;
  std::unordered_map<ValueId, ValueId> copies_;
};

/// Products without a bias, which linear layers with one are not: every second one of them; attention and sums over
/// ranks that each keeps a part of. (pytorch/torchtitan@9dec370:torchtitan/parallelisms/parallelize_llama.py)
std::vector<bool> saved_by_operation(const Graph& graph, const OpTrace& trace) {
  std::vector<bool> saved(graph.nodes.size(), false);
  std::size_t products = 0;
  for (NodeId i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.backward || node.kind != Node::Kind::library || node.op == kNone) continue;
    const Op& op = trace.ops[node.op];
    if (const auto* product = std::get_if<Matmul>(&op)) {
      if (product->batch == 1 && !product->bias) saved[i] = ++products % 2 == 1;
    } else if (const auto* collective = std::get_if<Collective>(&op)) {
      saved[i] = collective->kind == CollectiveKind::reduce_scatter;
    } else {
      saved[i] = std::holds_alternative<Attention>(op);
    }
  }
  return saved;
}

}  // namespace

void partition(Graph& graph, const OpTrace& trace, Recomputation recomputation) {
  switch (recomputation) {
    case Recomputation::none: return Partitioner(graph).run();
    case Recomputation::all: return Partitioner(graph).run_checkpointed(std::vector<bool>(graph.nodes.size(), false));
    case Recomputation::operations: return Partitioner(graph).run_checkpointed(saved_by_operation(graph, trace));
  }
}

}  // namespace ridgeline::compile
