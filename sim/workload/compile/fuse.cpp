#include "sim/workload/compile/fuse.h"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/workload/compile/inline_results.h"

namespace ridgeline::compile {
namespace {

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), inlined_(inline_results(graph)), group_of_(graph.nodes.size(), kNone) {
    order_.reserve(graph_.nodes.size());
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) order_.push_back(kept_ += inlined_[i] ? 0 : 1);
    for (NodeId i = 0; i < graph_.nodes.size(); ++i)
      for (const Use& use : graph_.nodes[i].inputs) {
        const NodeId producer = graph_.values[use.value].producer;
        if (producer != kNone && graph_.nodes[producer].inputs.empty()) readers_of_source_[producer].push_back(i);
      }
  }

  std::vector<Group> run() {
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      if (inlined_[i]) continue;
      const Node& node = graph_.nodes[i];
      if (node.outputs.empty() && node.kind != Node::Kind::library) continue;
      const std::uint32_t best = node.kind == Node::Kind::library ? kNone : best_group(node, i);
      if (best == kNone) {
        group_of_[i] = static_cast<std::uint32_t>(groups_.size());
        groups_.push_back(alone(node));
        if (node.kind != Node::Kind::library) index(node, group_of_[i]);
      } else {
        group_of_[i] = best;
        merge(groups_[best], node);
        index(node, best);
      }
      groups_[group_of_[i]].nodes.push_back(i);
      note_younger(i);
      if (node.kind != Node::Kind::library) take_in_sources(i);
    }
    find_writes();
    std::vector<Group> ordered = in_order();
    drop_unused(ordered);
    return ordered;
  }

 private:
  /// A kernel that reads nothing, as random numbers or zeros, becomes part of the first that reads its result and may
  /// take it in: nothing can lead to it.
  void take_in_sources(NodeId id) {
    const std::uint32_t group = group_of_[id];
    for (const Use& use : graph_.nodes[id].inputs) {
      const NodeId producer = graph_.values[use.value].producer;
      if (producer == kNone || group_of_[producer] == kNone || group_of_[producer] == group) continue;
      const std::uint32_t source = group_of_[producer];
      const std::vector<NodeId>& members = groups_[source].nodes;
      if (members.size() != 1 || graph_.nodes[producer].kind == Node::Kind::library ||
          !graph_.nodes[producer].inputs.empty())
        continue;
      if (!compatible(groups_[group], graph_.nodes[producer]) || waits_for_reader(group, producer)) continue;
      groups_[source].nodes.clear();
      group_of_[producer] = group;
      merge(groups_[group], graph_.nodes[producer]);
      std::vector<NodeId>& all = groups_[group].nodes;
      all.insert(std::lower_bound(all.begin(), all.end(), producer), producer);
      for (const NodeId reader : readers_of_source_.at(producer))
        if (group_of_[reader] != kNone && group_of_[reader] != group) {
          behind_[group].push_back(group_of_[reader]);
          make_younger(group_of_[reader], id);
        }
    }
  }

  /// The newest node makes its kernel as young as it is, and every kernel behind that one.
  void note_younger(NodeId id) {
    const std::uint32_t own = group_of_[id];
    behind_.resize(groups_.size());
    youngest_.resize(groups_.size(), 0);
    for (const Use& use : graph_.nodes[id].inputs) {
      const NodeId producer = graph_.values[use.value].producer;
      if (producer != kNone && group_of_[producer] != kNone && group_of_[producer] != own)
        behind_[group_of_[producer]].push_back(own);
    }
    make_younger(own, id);
  }
  void make_younger(std::uint32_t group, NodeId id) {
    std::vector<std::uint32_t> pending{group};
    while (!pending.empty()) {
      const std::uint32_t at = pending.back();
      pending.pop_back();
      if (std::exchange(youngest_[at], id) != id) pending.insert(pending.end(), behind_[at].begin(), behind_[at].end());
    }
  }

  /// Whether `group` waits for another kernel that reads what `producer` makes, which would then wait for `group`.
  [[nodiscard]] bool waits_for_reader(std::uint32_t group, NodeId producer) const {
    std::unordered_set<std::uint32_t> readers;
    for (const NodeId reader : readers_of_source_.at(producer))
      if (group_of_[reader] != kNone && group_of_[reader] != group) readers.insert(group_of_[reader]);
    if (readers.empty()) return false;
    std::vector<std::uint32_t> pending{group};
    std::unordered_set<std::uint32_t> seen{group};
    while (!pending.empty()) {
      const std::uint32_t at = pending.back();
      pending.pop_back();
      if (readers.contains(at)) return true;
      for (const NodeId member : groups_[at].nodes)
        for (const Use& use : graph_.nodes[member].inputs) {
          const NodeId before = graph_.values[use.value].producer;
          if (before != kNone && group_of_[before] != kNone && seen.insert(group_of_[before]).second)
            pending.push_back(group_of_[before]);
        }
    }
    return false;
  }

  static Group alone(const Node& node) {
    Group group;
    group.kind = node.kind;
    group.backward = node.backward;
    group.by_block = node.by_block;
    group.gathers = node.gathers;
    group.alone = node.alone;
    group.after = node.after;
    group.rows = node.rows;
    group.cols = node.cols;
    group.arithmetic = node.arithmetic;
    group.of_product = node.of_product;
    group.column_results = node.column_results;
    group.type = node.type;
    return group;
  }
  static void merge(Group& group, const Node& node) {
    const std::int64_t space = std::max(group.rows * group.cols, node.elements());
    group.of_product = group.of_product || node.of_product;
    const auto a_term = [&](std::int64_t arithmetic, std::int64_t elements) {
      return group.of_product ? arithmetic * elements / space : arithmetic;
    };
    group.arithmetic = a_term(group.arithmetic, group.rows * group.cols) + a_term(node.arithmetic, node.elements());
    if (node.kind != Node::Kind::pointwise && group.kind == Node::Kind::pointwise) {
      group.kind = node.kind;
      group.rows = node.rows;
      group.cols = node.cols;
    }
    group.by_block = group.by_block || node.by_block;
    group.column_results += node.column_results;
    if (bytes_of(node.type) > bytes_of(group.type)) group.type = node.type;
  }

  static bool is_rows(Node::Kind kind) { return kind == Node::Kind::rows || kind == Node::Kind::long_rows; }
  static bool compatible(const Group& group, const Node& node) {
    if (group.kind == Node::Kind::library || group.backward != node.backward || group.after || node.after) return false;
    if (group.gathers || node.gathers || group.alone || node.alone) return false;
    const std::int64_t elements = group.rows * group.cols;
    const bool columns = group.kind == Node::Kind::columns, other_columns = node.kind == Node::Kind::columns;
    if (columns && node.kind == Node::Kind::pointwise) return node.elements() == group.cols && group.rows > 1;
    if (columns || other_columns) return columns && other_columns && group.rows == node.rows && group.cols == node.cols;
    if ((group.by_block && (node.casts || node.by_block)) ||
        (node.by_block && group.nodes.size() > 0 && group.by_block))
      return false;
    if (is_rows(group.kind) && is_rows(node.kind)) return group.rows == node.rows && group.cols == node.cols;
    if (is_rows(group.kind)) return node.elements() == elements || node.elements() == group.rows;
    if (is_rows(node.kind)) return elements == node.elements() || elements == node.rows;
    return elements == node.elements();
  }

  /// The kernel that shares most bytes with the node and may take it in.
  std::uint32_t best_group(const Node& node, NodeId id) {
    std::unordered_map<std::uint32_t, std::int64_t> shared;
    std::unordered_set<std::uint32_t> producers;
    for (const Use& use : node.inputs) {
      const NodeId producer = graph_.values[use.value].producer;
      if (producer != kNone && group_of_[producer] != kNone) {
        shared[group_of_[producer]] += 2 * use.bytes;
        producers.insert(group_of_[producer]);
      }
      if (const auto readers = readers_.find(use.value); readers != readers_.end())
        for (const std::uint32_t reader : readers->second) shared[reader] += use.bytes;
    }
    std::vector<std::pair<std::int64_t, std::uint32_t>> candidates;
    for (const auto& [group, bytes] : shared)
      if (compatible(groups_[group], node) && (producers.contains(group) || near(groups_[group], id)))
        candidates.emplace_back(bytes, group);
    std::sort(candidates.rbegin(), candidates.rend());
    for (const auto& [bytes, group] : candidates)
      if (!comes_back(group, node)) return group;
    return kNone;
  }
  /// Kernels that share what they read alone, and none the other's result, stay apart where many others lie between
  /// them: their buffers would live longer (are_long_distant_nodes of torch/_inductor/scheduler.py). Blocks that run
  /// again read the same positions as the backward pass of the block before.
  [[nodiscard]] bool near(const Group& group, NodeId id) const {
    constexpr std::uint32_t kFarthest = 64;
    return group.nodes.empty() || order_[id] - order_[group.nodes.front()] <= kFarthest;
  }
  /// Whether a path leads from `group` through another one to `node`.
  bool comes_back(std::uint32_t group, const Node& node) {
    std::vector<std::uint32_t> pending;
    std::unordered_set<std::uint32_t> seen;
    const NodeId first = groups_[group].nodes.front();
    const auto visit = [&](ValueId value, bool direct) {
      const NodeId producer = graph_.values[value].producer;
      if (producer == kNone || group_of_[producer] == kNone) return false;
      const std::uint32_t from = group_of_[producer];
      if (from == group) return !direct;
      if (youngest_[from] < first) return false;  // nor does anything before it read what this one makes
      if (seen.insert(from).second) pending.push_back(from);
      return false;
    };
    for (const Use& use : node.inputs) visit(use.value, true);
    while (!pending.empty()) {
      const std::uint32_t at = pending.back();
      pending.pop_back();
      for (const NodeId member : groups_[at].nodes)
        for (const Use& use : graph_.nodes[member].inputs)
          if (visit(use.value, false)) return true;
    }
    return false;
  }
  void index(const Node& node, std::uint32_t group) {
    constexpr std::int64_t kWorthSharing = 4096;
    for (const Use& use : node.inputs) {
      // Tokens and targets are read in parts, each by its own kernel.
      if (use.bytes < kWorthSharing || graph_.values[use.value].category == Category::inputs) continue;
      auto& readers = readers_[use.value];
      if (readers.empty() || readers.back() != group) readers.push_back(group);
    }
  }

  void find_writes() {
    std::vector<bool> written(graph_.values.size(), false);
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      if (group_of_[i] == kNone) continue;
      for (const Use& use : graph_.nodes[i].inputs) {
        const NodeId producer = graph_.values[use.value].producer;
        if (producer != kNone && group_of_[producer] != group_of_[i]) written[use.value] = true;
      }
    }
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      Group& group = groups_[g];
      const bool library = group.kind == Node::Kind::library;
      for (const NodeId member : group.nodes) {
        const Node& node = graph_.nodes[member];
        group.names.insert(group.names.end(), node.inner.begin(), node.inner.end());
        group.names.push_back(node.name);
        for (const Use& use : node.inputs) {
          const NodeId producer = graph_.values[use.value].producer;
          if (library) group.reads.push_back(use);
          else if (producer == kNone || group_of_[producer] != g) add_use(group.reads, use);
        }
        for (const Use& use : node.outputs) {
          const Value& value = graph_.values[use.value];
          if (library || written[use.value] || value.stored || value.leaves) group.writes.push_back(use);
        }
      }
      std::sort(group.names.begin(), group.names.end());
      group.names.erase(std::unique(group.names.begin(), group.names.end()), group.names.end());
    }
  }

  /// Topological, otherwise as the nodes came; forward before backward, what the script adds behind it.
  std::vector<Group> in_order() {
    const auto count = static_cast<std::uint32_t>(groups_.size());
    std::vector<std::vector<std::uint32_t>> next(count);
    std::vector<int> waits(count, 0);
    for (std::uint32_t g = 0; g < count; ++g)
      for (const Use& use : groups_[g].reads) {
        const NodeId producer = graph_.values[use.value].producer;
        if (producer == kNone) continue;
        next[group_of_[producer]].push_back(g);
        ++waits[g];
      }
    using Key = std::pair<std::uint64_t, std::uint32_t>;
    const auto key = [&](std::uint32_t g) {
      const std::uint64_t stage = groups_[g].after ? 2 : groups_[g].backward ? 1 : 0;
      return Key{stage << 32 | groups_[g].nodes.front(), g};
    };
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    for (std::uint32_t g = 0; g < count; ++g)
      if (waits[g] == 0 && !groups_[g].nodes.empty()) ready.push(key(g));
    std::vector<Group> out;
    out.reserve(count);
    while (!ready.empty()) {
      const std::uint32_t g = ready.top().second;
      ready.pop();
      for (const std::uint32_t n : next[g])
        if (--waits[n] == 0) ready.push(key(n));
      out.push_back(std::move(groups_[g]));
      groups_[g].nodes.clear();
    }
    if (std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return !group.nodes.empty(); }))
      throw std::logic_error("kernels of a compiled graph wait for each other");
    return out;
  }

  /// What nobody reads is not computed, and not written.
  void drop_unused(std::vector<Group>& groups) const {
    std::vector<bool> needed(graph_.values.size(), false);
    for (auto g = static_cast<std::size_t>(groups.size()); g-- > 0;) {
      Group& group = groups[g];
      const auto useful = [&](const Use& use) {
        const Value& value = graph_.values[use.value];
        return value.leaves || needed[use.value] || (value.storage != kNone && value.stored);
      };
      if (std::none_of(group.writes.begin(), group.writes.end(), useful)) {
        group.reads.clear();
        group.writes.clear();
        continue;
      }
      if (group.kind != Node::Kind::library) std::erase_if(group.writes, [&](const Use& use) { return !useful(use); });
      for (const Use& use : group.reads) needed[use.value] = true;
      for (const Use& use : group.writes)
        if (const ValueId place = graph_.values[use.value].in_place_of; place != kNone) needed[place] = true;
    }
    std::erase_if(groups, [](const Group& group) { return group.writes.empty(); });
  }

  Graph& graph_;
  std::vector<bool> inlined_;
  std::uint32_t kept_ = 0;
  std::vector<std::uint32_t> order_;  ///< of each node among those that are no part of their readers
  std::vector<std::uint32_t> group_of_;
  std::vector<Group> groups_;
  std::vector<std::vector<std::uint32_t>> behind_;  ///< by group: those that read what it makes
  std::vector<NodeId> youngest_;                    ///< by group: the youngest node of it and of all that it waits for
  std::unordered_map<ValueId, std::vector<std::uint32_t>> readers_;
  std::unordered_map<NodeId, std::vector<NodeId>> readers_of_source_;  ///< of kernels that read nothing
};

}  // namespace

std::vector<Group> fuse(Graph& graph) { return Fuser(graph).run(); }

}  // namespace ridgeline::compile
