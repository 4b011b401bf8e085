// In which order generated code runs its kernels.
#include "sim/workload/compile/reorder.h"

#include <gtest/gtest.h>

namespace ridgeline::compile {
namespace {

/// A backward graph under construction.
class Builder {
 public:
  ValueId value(std::int64_t bytes) {
    graph.values.push_back({.bytes = bytes});
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  void kernel(std::vector<ValueId> reads, std::vector<ValueId> writes) {
    Node node;
    node.backward = true;
    Group group;
    group.backward = true;
    group.nodes = {static_cast<NodeId>(graph.nodes.size())};
    for (const ValueId v : reads) group.reads.push_back({v, graph.values[v].bytes});
    for (const ValueId v : writes) {
      group.writes.push_back({v, graph.values[v].bytes});
      graph.values[v].producer = group.nodes.front();
    }
    graph.nodes.push_back(node);
    groups.push_back(group);
  }
  std::vector<NodeId> ordered(bool for_peak_memory = true) {
    std::vector<NodeId> order;
    for (const Group& group : order_kernels(graph, groups, for_peak_memory)) order.push_back(group.nodes.front());
    return order;
  }
  Graph graph;
  std::vector<Group> groups;
};

TEST(Reorder, keeps_an_order_that_needs_no_more_than_others) {
  Builder b;
  const ValueId x = b.value(100), y = b.value(100), z = b.value(100);
  b.kernel({}, {x});
  b.kernel({x}, {y});
  b.kernel({y}, {z});
  b.graph.values[z].leaves = true;
  EXPECT_EQ(b.ordered(), (std::vector<NodeId>{0, 1, 2}));
}

// Two large buffers, each shrunk by a kernel of its own: one after the other needs half as much as side by side.
TEST(Reorder, takes_large_buffers_one_after_the_other) {
  Builder b;
  const ValueId large = b.value(1000), other = b.value(1000), small = b.value(10), rest = b.value(10);
  b.kernel({}, {large});
  b.kernel({}, {other});
  b.kernel({large}, {small});
  b.kernel({other}, {rest});
  b.graph.values[small].leaves = b.graph.values[rest].leaves = true;
  EXPECT_EQ(b.ordered(), (std::vector<NodeId>{0, 2, 1, 3}));
  EXPECT_EQ(b.ordered(false), (std::vector<NodeId>{0, 1, 2, 3}));  // before PyTorch 2.6
}

TEST(Reorder, runs_the_scripts_own_work_last) {
  Builder b;
  const ValueId x = b.value(10), y = b.value(10);
  b.kernel({}, {x});
  b.kernel({}, {y});
  b.groups[0].after = true;
  b.graph.values[x].leaves = b.graph.values[y].leaves = true;
  EXPECT_EQ(b.ordered(), (std::vector<NodeId>{1, 0}));
}

}  // namespace
}  // namespace ridgeline::compile
