#include "sim/workload/eager/tape.h"

#include <algorithm>
#include <unordered_map>

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {
namespace {

/// A node that runs earlier compares greater; std::push_heap then orders ties as PyTorch's priority queue does.
bool runs_later(const Node* a, const Node* b) { return a->sequence < b->sequence; }

}  // namespace

void Tape::run(Eager& eager, std::span<const Tensor> roots, std::vector<Tensor> gradients) {
  std::vector<Node*> ready = start(eager, roots, std::move(gradients));
  if (!ready.empty()) work_off(eager, ready, nullptr);
}

// The engine's graph root leads to all of them: a root inside the graph of another one waits for its other gradients.
std::vector<Node*> Tape::start(Eager& eager, std::span<const Tensor> roots, std::vector<Tensor> gradients) {
  ++run_;
  for (const Tensor& root : roots) {
    if (root.node == nullptr) continue;
    if (root.node->run_ != run_) count_dependencies(*root.node);
    ++root.node->dependencies_;
  }
  std::vector<Node*> ready;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    Node* node = roots[i].node;
    if (node == nullptr) continue;
    add(eager, {node, roots[i].output}, std::move(gradients[i]));
    if (--node->dependencies_ > 0) continue;
    ready.push_back(node);
    std::push_heap(ready.begin(), ready.end(), runs_later);
  }
  return ready;
}

void Tape::work_off(Eager& eager, std::vector<Node*>& ready, Weights* later) {
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, false);
  const std::int16_t layer = eager.recorder.layer;
  const std::uint16_t module = eager.recorder.module;
  while (!ready.empty()) {
    Node& node = *ready.front();
    std::pop_heap(ready.begin(), ready.end(), runs_later);
    ready.pop_back();
    eager.recorder.layer = node.layer;
    if (follows_streams) eager.recorder.stream = node.stream;
    if (before_node && node.sequence != kAccumulate) before_node(node);
    if (node.sequence != kAccumulate) eager.recorder.module = node.module;  // else that of the gradient
    if (later != nullptr)
      for (Weights::Split& split : later->splits)
        if (split.node == &node) split.incoming = *node.buffer_;
    evaluate(eager, node, ready, later != nullptr);
  }
  eager.recorder.layer = layer;
  eager.recorder.module = module;
  eager.gradients_enabled = gradients_enabled;
}

Tape::Weights Tape::run_inputs(Eager& eager, std::span<const Tensor> roots, std::vector<Tensor> gradients,
                               const std::vector<const Node*>& inputs) {
  Weights later;
  const auto is_input = [&](const Node* node) { return std::find(inputs.begin(), inputs.end(), node) != inputs.end(); };
  // Nodes that lead to the inputs are marked, children before parents, as a graph without cycles allows.
  std::unordered_map<Node*, bool> leads;
  std::vector<std::pair<Node*, bool>> pending;
  for (auto root = roots.rbegin(); root != roots.rend(); ++root)
    if (root->node != nullptr) pending.emplace_back(root->node, false);
  while (!pending.empty()) {
    auto [node, below_known] = pending.back();
    pending.pop_back();
    if (!below_known && !leads.try_emplace(node, is_input(node)).second) continue;
    if (!below_known) pending.emplace_back(node, true);
    for (int i = 0; i < node->edge_count; ++i) {
      Node* next = node->edges[static_cast<std::size_t>(i)].node;
      if (next == nullptr) continue;
      if (!below_known) pending.emplace_back(next, false);
      else leads[node] = leads[node] || leads[next];
    }
  }
  struct Cut {
    Node* node;
    std::size_t edge;
    Node* to;
  };
  std::vector<Cut> cuts;
  for (const auto& [node, on_the_way] : leads) {
    if (!on_the_way || is_input(node)) continue;
    Weights::Split split;
    split.node = node;
    const std::size_t before = cuts.size();
    for (std::size_t i = 0; i < node->edge_count; ++i) {
      Node* next = node->edges[i].node;
      split.to_input[i] = next != nullptr && leads[next];
      if (next != nullptr && !leads[next]) cuts.push_back({node, i, next});
    }
    if (cuts.size() > before) later.splits.push_back(std::move(split));
    else later.others.push_back(node);
  }
  std::sort(later.splits.begin(), later.splits.end(),
            [](const auto& a, const auto& b) { return a.node->sequence > b.node->sequence; });
  std::sort(later.others.begin(), later.others.end(), [](const Node* a, const Node* b) { return runs_later(b, a); });
  eager.recorder.host(HostClass::pipeline_split, static_cast<std::int64_t>(leads.size()));
  for (const Cut& cut : cuts) cut.node->edges[cut.edge].node = nullptr;
  std::vector<Node*> ready = start(eager, roots, std::move(gradients));
  work_off(eager, ready, &later);
  for (const Cut& cut : cuts) cut.node->edges[cut.edge].node = cut.to;
  // Nothing leads back to nodes above the first that parts: roots are taken off the graph.
  if (!later.splits.empty())
    std::erase_if(later.others, [&](Node* node) {
      const bool above = node->sequence > later.splits.front().node->sequence;
      if (above) node->release();
      return above;
    });
  return later;
}

namespace {

using Splits = std::vector<Tape::Weights::Split*>;

/// Splits whose weights are reached from several of them are one group, as get_param_groups joins them; groups and
/// their members in the order of the modules, from the input on.
std::vector<Splits> groups_of(std::vector<Tape::Weights::Split>& splits) {
  std::unordered_map<const Node*, std::size_t> owner;
  std::vector<Splits> groups;
  for (auto split = splits.rbegin(); split != splits.rend(); ++split) {
    std::size_t group = groups.size();
    groups.push_back({&*split});
    std::vector<const Node*> pending, seen;
    for (std::size_t i = 0; i < split->node->edge_count; ++i)
      if (!split->to_input[i] && split->node->edges[i].node != nullptr) pending.push_back(split->node->edges[i].node);
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      const auto known = owner.try_emplace(node, group);
      if (known.second) {
        for (std::size_t i = 0; i < node->edge_count; ++i)
          if (node->edges[i].node != nullptr) pending.push_back(node->edges[i].node);
      } else if (const std::size_t other = known.first->second; other != group) {
        const auto [first, second] = std::minmax(other, group);
        groups[first].insert(groups[first].end(), groups[second].begin(), groups[second].end());
        groups[second].clear();
        for (auto& [shared, number] : owner)
          if (number == second) number = first;
        group = first;
      }
    }
  }
  std::erase_if(groups, [](const Splits& group) { return group.empty(); });
  return groups;
}

}  // namespace

void Tape::run_weights(Eager& eager, Weights& weights) {
  for (const Splits& group : groups_of(weights.splits)) {
    eager.recorder.host(HostClass::backward_call);
    std::vector<Edge> aside;
    std::vector<Node*> ready;
    for (Weights::Split* split : group)
      for (std::size_t i = 0; i < split->node->edge_count; ++i)
        if (split->to_input[i])
          aside.push_back({std::exchange(split->node->edges[i].node, nullptr), split->node->edges[i].input});
    ++run_;
    for (Weights::Split* split : group) {
      count_dependencies(*split->node);
      split->node->buffer_ = buffer();
      *split->node->buffer_ = std::move(split->incoming);
      ready.push_back(split->node);
      std::push_heap(ready.begin(), ready.end(), runs_later);
    }
    work_off(eager, ready, nullptr);
    auto next = aside.begin();
    for (Weights::Split* split : group)
      for (std::size_t i = 0; i < split->node->edge_count; ++i)
        if (split->to_input[i]) split->node->edges[i].node = (next++)->node;
  }
  for (Node* node : weights.others) node->release();
  weights = Weights{};
}

void Tape::count_dependencies(Node& root) {
  std::vector<Node*> pending{&root};
  if (root.run_ != run_) root.dependencies_ = 0;
  root.run_ = run_;
  while (!pending.empty()) {
    Node& node = *pending.back();
    pending.pop_back();
    for (int i = 0; i < node.edge_count; ++i) {
      Node* next = node.edges[static_cast<std::size_t>(i)].node;
      if (next == nullptr) continue;
      if (next->run_ != run_) {
        next->run_ = run_;
        next->dependencies_ = 0;
        pending.push_back(next);
      }
      ++next->dependencies_;
    }
  }
}

void Tape::evaluate(Eager& eager, Node& node, std::vector<Node*>& ready, bool keep) {
  Gradients& outgoing = *buffer();
  {
    Gradients& incoming = *node.buffer_;
    eager.recorder.host(node.host_class);
    node.backward(eager, incoming, outgoing);
    // Results take the size and type of the forward input they belong to.
    for (int i = 0; i < node.edge_count; ++i) {
      Tensor& gradient = outgoing[static_cast<std::size_t>(i)];
      const Node* next = node.edges[static_cast<std::size_t>(i)].node;
      if (next == nullptr || !gradient.defined()) continue;
      if (!next->sizes_differ && !(gradient.sizes == next->output_sizes))
        gradient = aten::sum_to(eager, gradient, next->output_sizes);
      if (gradient.type != next->output_type) {
        eager.recorder.host(HostClass::cast_backward);
        gradient = aten::to(eager, gradient, next->output_type);
      }
    }
    for (Tensor& gradient : incoming)
      if (gradient.defined()) gradient.reset();
    free_buffers_.push_back(std::exchange(node.buffer_, nullptr));
  }
  if (!keep) node.release();
  for (int i = 0; i < node.edge_count; ++i) {
    const Edge& edge = node.edges[static_cast<std::size_t>(i)];
    if (edge.node == nullptr) continue;
    add(eager, edge, std::move(outgoing[static_cast<std::size_t>(i)]));
    if (--edge.node->dependencies_ == 0) {
      ready.push_back(edge.node);
      std::push_heap(ready.begin(), ready.end(), runs_later);
    }
  }
  // What no node takes dies here, the last one first.
  for (auto gradient = outgoing.rbegin(); gradient != outgoing.rend(); ++gradient)
    if (gradient->defined()) gradient->reset();
  free_buffers_.push_back(&outgoing);
}

void Tape::add(Eager& eager, const Edge& edge, Tensor gradient) {
  if (edge.node->buffer_ == nullptr) edge.node->buffer_ = buffer();
  Tensor& place = (*edge.node->buffer_)[edge.input];
  if (!gradient.defined()) return;
  if (!place.defined()) {
    place = std::move(gradient);
    return;
  }
  eager.recorder.host(HostClass::fan_in_add);
  // In place only where nobody else can see the sum: a view shares its storage with what it shows.
  if (place.storage.count() == 1 && !place.view && place.dense()) aten::add_in_place(eager, place, gradient);
  else place = aten::add(eager, place, gradient);
}

Gradients* Tape::buffer() {
  if (free_buffers_.empty()) {
    buffers_.push_back(std::make_unique<Gradients>());
    return buffers_.back().get();
  }
  Gradients* result = free_buffers_.back();
  free_buffers_.pop_back();
  return result;
}

void* Tape::place(std::size_t size, std::size_t alignment) {
  used_ = (used_ + alignment - 1) / alignment * alignment;
  if (chunks_.empty() || used_ + size > kChunk) {
    if (!chunks_.empty()) ++chunk_;
    if (chunk_ == chunks_.size()) chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunk));
    used_ = 0;
  }
  void* result = chunks_[chunk_].get() + used_;
  used_ += size;
  return result;
}

void Tape::destroy_from(std::size_t from) {
  while (nodes_.size() > from) {
    Node* node = nodes_.back();
    nodes_.pop_back();
    node->~Node();
  }
  if (nodes_.empty()) chunk_ = used_ = 0;
}

}  // namespace ridgeline::eager
