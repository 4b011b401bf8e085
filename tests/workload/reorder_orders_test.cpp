// In which order kernels run: four orders as PyTorch describes them (torch/_inductor/memory.py), written down simply,
// and the one whose buffers need least memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/workload/compile/reorder.h"
#include "tests/support/draws.h"

namespace ridgeline::compile {
namespace {

using testing_support::Draws;
using KernelOrder = std::vector<std::size_t>;

/// Kernels of one graph, in program order.
struct Kernels {
  Graph graph;
  std::vector<Group> groups;
  bool backward = true;

  ValueId value(std::int64_t bytes) {
    graph.values.push_back({.bytes = bytes});
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  void kernel(const std::vector<ValueId>& reads, const std::vector<ValueId>& writes) {
    Group group;
    group.backward = backward;
    group.nodes = {static_cast<NodeId>(graph.nodes.size())};
    for (const ValueId v : reads) group.reads.push_back({v, graph.values[v].bytes});
    for (const ValueId v : writes) {
      group.writes.push_back({v, graph.values[v].bytes});
      graph.values[v].producer = group.nodes.front();
    }
    Node node;
    node.backward = backward;
    graph.nodes.push_back(node);
    groups.push_back(group);
  }
  [[nodiscard]] KernelOrder found() const {
    KernelOrder order;
    for (const Group& group : order_kernels(graph, groups, true)) {
      const auto at = std::ranges::find_if(groups, [&](const Group& g) { return g.nodes == group.nodes; });
      order.push_back(static_cast<std::size_t>(at - groups.begin()));
    }
    return order;
  }
};

/// What a buffer is to the graph that `kernels` are.
class Model {
 public:
  explicit Model(const Kernels& kernels) : k_(kernels) {
    for (std::size_t g = 0; g < k_.groups.size(); ++g)
      for (const Use& use : k_.groups[g].writes) maker_[use.value] = g;
    for (std::size_t g = 0; g < k_.groups.size(); ++g)
      for (const ValueId v : read_by(g)) {
        readers_[v].insert(g);
        if (maker_.contains(v)) needs_[g].insert(maker_.at(v));
      }
  }
  /// Values that the kernel reads, also those it writes over, as far as their memory may end in this graph: made in
  /// it, or for the backward graph in the forward one.
  [[nodiscard]] std::set<ValueId> read_by(std::size_t g) const {
    std::set<ValueId> result;
    const auto add = [&](ValueId v) {
      const bool made_here = maker_.contains(v) && maker_.at(v) != g;
      const NodeId producer = k_.graph.values[v].producer;
      const bool kept = !maker_.contains(v) && producer != kNone && k_.backward && !k_.graph.nodes[producer].backward;
      if (made_here || kept) result.insert(v);
    };
    for (const Use& use : k_.groups[g].reads) add(use.value);
    for (const Use& use : k_.groups[g].writes)
      if (k_.graph.values[use.value].in_place_of != kNone) add(k_.graph.values[use.value].in_place_of);
    return result;
  }
  [[nodiscard]] std::int64_t bytes(ValueId v) const {
    const Value& value = k_.graph.values[v];
    const bool in_place = value.in_place_of != kNone || (value.storage != kNone && value.stored && !value.leaves);
    return in_place ? 0 : value.bytes;
  }
  [[nodiscard]] bool outlives(ValueId v) const {
    const Value& value = k_.graph.values[v];
    return value.leaves || value.held || (maker_.contains(v) && !k_.backward && value.stored);
  }
  [[nodiscard]] std::set<ValueId> all() const {
    std::set<ValueId> result;
    for (const auto& [v, g] : maker_) result.insert(v);
    for (const auto& [v, readers] : readers_) result.insert(v);
    return result;
  }
  [[nodiscard]] std::int64_t peak(const KernelOrder& order) const {
    std::int64_t most = 0;
    std::set<ValueId> live;
    for (const ValueId v : all())
      if (!maker_.contains(v)) live.insert(v);
    std::set<std::size_t> done;
    for (const std::size_t g : order) {
      for (const Use& use : k_.groups[g].writes) live.insert(use.value);
      std::int64_t now = 0;
      for (const ValueId v : live) now += bytes(v);
      most = std::max(most, now);
      done.insert(g);
      std::erase_if(live, [&](ValueId v) {
        const auto readers = readers_.find(v);
        return !outlives(v) && (readers == readers_.end() || std::ranges::includes(done, readers->second));
      });
    }
    return most;
  }
  [[nodiscard]] bool ready(std::size_t g, const KernelOrder& before) const {
    const auto needs = needs_.find(g);
    return std::ranges::find(before, g) == before.end() &&
           (needs == needs_.end() || std::ranges::all_of(needs->second, [&](std::size_t need) {
              return std::ranges::find(before, need) != before.end();
            }));
  }

  /// Always the kernel that raises the peak least, then the one that leaves least behind, then the first.
  [[nodiscard]] KernelOrder least_memory_first() const {
    std::int64_t live = 0, results = 0;
    for (const ValueId v : all()) {
      if (!maker_.contains(v)) live += bytes(v);
      if (outlives(v)) results += bytes(v);
    }
    std::int64_t most = std::max(live, results);
    KernelOrder order;
    while (order.size() < k_.groups.size()) {
      std::tuple<std::int64_t, std::int64_t, std::size_t> best{};
      bool any = false;
      for (std::size_t g = 0; g < k_.groups.size(); ++g) {
        if (!ready(g, order)) continue;
        const std::tuple cost{std::max(live + made(g), most), made(g) - freed(g, order), g};
        if (!any || cost < best) best = cost;
        any = true;
      }
      const std::size_t g = std::get<2>(best);
      live += made(g);
      most = std::max(most, live);
      live -= freed(g, order);
      order.push_back(g);
    }
    return order;
  }
  /// First whose operands were made first: compared by the places of the kernels they wait for, then by number.
  [[nodiscard]] KernelOrder breadth_first() const {
    KernelOrder order;
    while (order.size() < k_.groups.size()) {
      std::pair<std::vector<std::size_t>, std::size_t> best;
      bool any = false;
      for (std::size_t g = 0; g < k_.groups.size(); ++g) {
        if (!ready(g, order)) continue;
        std::vector<std::size_t> places;
        if (needs_.contains(g))
          for (const std::size_t need : needs_.at(g))
            places.push_back(static_cast<std::size_t>(std::ranges::find(order, need) - order.begin()));
        std::ranges::sort(places);
        std::pair one{places, g};
        if (!any || one < best) best = one;
        any = true;
      }
      order.push_back(best.second);
    }
    return order;
  }
  /// By the bytes they make and read, smallest first, each behind what it needs.
  [[nodiscard]] KernelOrder depth_first() const {
    std::vector<std::pair<std::int64_t, std::size_t>> by_size;
    for (std::size_t g = 0; g < k_.groups.size(); ++g) {
      std::int64_t size = made(g);
      for (const ValueId v : read_by(g)) size += bytes(v);
      by_size.emplace_back(size, g);
    }
    KernelOrder order;
    std::set<std::size_t> seen;
    const auto visit = [&](auto&& self, std::size_t g) -> void {
      if (!seen.insert(g).second) return;
      std::vector<std::pair<std::int64_t, std::size_t>> needs;
      if (needs_.contains(g))
        for (const std::size_t need : needs_.at(g)) needs.push_back(by_size[need]);
      std::ranges::sort(needs);
      for (const auto& [size, need] : needs) self(self, need);
      order.push_back(g);
    };
    std::vector<std::pair<std::int64_t, std::size_t>> roots = by_size;
    std::ranges::sort(roots);
    for (const auto& [size, g] : roots) visit(visit, g);
    return order;
  }
  [[nodiscard]] KernelOrder best(int* which = nullptr) const {
    KernelOrder as_it_is;
    for (std::size_t g = 0; g < k_.groups.size(); ++g) as_it_is.push_back(g);
    const std::vector<KernelOrder> orders{as_it_is, least_memory_first(), breadth_first(), depth_first()};
    std::size_t best = 0;
    for (std::size_t i = 1; i < orders.size(); ++i)
      if (peak(orders[i]) < peak(orders[best])) best = i;
    if (which != nullptr) *which = static_cast<int>(best);
    return orders[best];
  }

 private:
  [[nodiscard]] std::int64_t made(std::size_t g) const {
    std::int64_t sum = 0;
    for (const Use& use : k_.groups[g].writes) sum += bytes(use.value);
    return sum;
  }
  /// What goes when `g` runs behind `before`: what it reads last, and what nobody reads of what it makes.
  [[nodiscard]] std::int64_t freed(std::size_t g, const KernelOrder& before) const {
    std::int64_t sum = 0;
    for (const ValueId v : read_by(g)) {
      const bool last = std::ranges::all_of(readers_.at(v), [&](std::size_t reader) {
        return reader == g || std::ranges::find(before, reader) != before.end();
      });
      if (last && !outlives(v)) sum += bytes(v);
    }
    for (const Use& use : k_.groups[g].writes)
      if (!readers_.contains(use.value) && !outlives(use.value)) sum += bytes(use.value);
    return sum;
  }

  const Kernels& k_;
  std::map<ValueId, std::size_t> maker_;
  std::map<ValueId, std::set<std::size_t>> readers_;
  std::map<std::size_t, std::set<std::size_t>> needs_;
};

/// Up to a dozen kernels that read what came before: weights, results of the other graph, of this one.
Kernels random_kernels(Draws& draws) {
  Kernels k;
  k.backward = draws.index(2) == 0;
  std::vector<ValueId> known;
  const auto size = [&] { return static_cast<std::int64_t>(draws.index(4) == 0 ? 1000 : 1 + draws.index(200)); };
  for (std::size_t i = draws.index(4); i-- > 0;) {  // made by the forward graph, or given
    const ValueId v = k.value(size());
    if (draws.index(4) > 0) {
      k.graph.values[v].producer = static_cast<NodeId>(k.graph.nodes.size());
      k.graph.values[v].leaves = draws.index(8) == 0;
      k.graph.nodes.emplace_back();
    }
    known.push_back(v);
  }
  for (std::size_t g = 3 + draws.index(9); g-- > 0;) {
    std::set<ValueId> reads;
    if (!known.empty())
      for (std::size_t i = draws.index(4); i-- > 0;) reads.insert(known[draws.index(known.size())]);
    std::vector<ValueId> writes;
    for (std::size_t i = 1 + draws.index(2); i-- > 0;) {
      const ValueId v = k.value(size());
      Value& value = k.graph.values[v];
      value.leaves = draws.index(8) == 0;
      value.held = draws.index(12) == 0;
      value.stored = draws.index(6) == 0;
      if (draws.index(10) == 0) value.storage = 7;
      if (draws.index(10) == 0 && !known.empty()) value.in_place_of = known[draws.index(known.size())];
      writes.push_back(v);
    }
    k.kernel({reads.begin(), reads.end()}, writes);
    known.insert(known.end(), writes.begin(), writes.end());
  }
  return k;
}

TEST(ReorderOrders, TheOrderIsTheBestOfFour) {
  const std::uint64_t seed = testing_support::changing_seed();
  Draws draws(seed);
  std::map<int, int> chosen;
  for (int turn = 0; turn < 3000; ++turn) {
    const Kernels kernels = random_kernels(draws);
    int which = 0;
    const KernelOrder expected = Model(kernels).best(&which);
    ++chosen[which];
    ASSERT_EQ(kernels.found(), expected) << "RIDGELINE_TEST_SEED=" << seed << ", turn " << turn;
  }
  for (const int which : {0, 1, 2, 3}) EXPECT_GT(chosen[which], 10) << which;
}

}  // namespace
}  // namespace ridgeline::compile
