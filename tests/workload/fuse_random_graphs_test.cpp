// Fusion of random graphs against its definition: every value that is read elsewhere is written once, kernels are made
// of what their nodes are, run in an order that can be, and only what is cheap is computed again.
#include "sim/workload/compile/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/draws.h"

namespace ridgeline::compile {
namespace {

using testing_support::Draws;
using Kind = Node::Kind;

/// Values from outside, then a node after another that reads what was made before it.
Graph random_graph(Draws& draws) {
  Graph graph;
  const auto value = [&](std::int64_t bytes) {
    graph.values.push_back({.bytes = bytes});
    return static_cast<ValueId>(graph.values.size() - 1);
  };
  for (int i = 0; i < 3; ++i) value(1 << (6 + draws.index(14)));
  const std::size_t count = 4 + draws.index(20), backward_from = draws.index(count + 1);
  for (NodeId id = 0; id < count; ++id) {
    Node node;
    const double kind = draws.share();
    node.kind = kind < 0.6 ? Kind::pointwise : kind < 0.75 ? Kind::rows : kind < 0.85 ? Kind::columns : Kind::library;
    node.backward = id >= backward_from;
    node.rows = draws.share() < 0.7 ? 64 : 128;
    node.cols = draws.share() < 0.7 ? 32 : 1;
    node.type = draws.share() < 0.5 ? DType::fp32 : DType::bf16;
    node.arithmetic = node.operations = 1 + static_cast<std::int64_t>(draws.index(24));
    if (node.kind == Kind::library) node.op = id;
    if (node.kind == Kind::columns) node.column_results = 1;
    node.gathers = node.kind == Kind::pointwise && draws.share() < 0.05;
    node.alone = node.kind == Kind::pointwise && draws.share() < 0.05;
    node.realizes = node.kind == Kind::pointwise && draws.share() < 0.05;
    const std::size_t reads = draws.index(node.kind == Kind::pointwise ? 5 : 3);
    std::set<ValueId> read;
    for (std::size_t i = 0; i < reads; ++i) {
      const std::size_t near = std::min<std::size_t>(graph.values.size(), 6);
      read.insert(static_cast<ValueId>(graph.values.size() - 1 -
                                       draws.index(draws.share() < 0.7 ? near : graph.values.size())));
    }
    for (const ValueId v : read) node.inputs.push_back({v, graph.values[v].bytes});
    const ValueId made = value(node.rows * node.cols * bytes_of(node.type));
    graph.values[made].producer = id;
    graph.values[made].kept = draws.share() < 0.05;
    graph.values[made].leaves = draws.share() < 0.15;
    graph.values[made].stored = draws.share() < 0.05;
    node.outputs = {{made, graph.values[made].bytes}};
    graph.nodes.push_back(node);
  }
  graph.values.back().leaves = true;
  return graph;
}

struct Fused {
  Graph before, after;
  std::vector<Group> groups;
  std::map<NodeId, std::size_t> group_of;
  std::map<ValueId, std::size_t> writer;
};
Fused fused(const Graph& graph) {
  Fused result{graph, graph, {}, {}, {}};
  result.groups = fuse(result.after);
  for (std::size_t g = 0; g < result.groups.size(); ++g) {
    for (const NodeId node : result.groups[g].nodes) {
      EXPECT_FALSE(result.group_of.contains(node)) << "node " << node << " runs twice";
      result.group_of[node] = g;
    }
    for (const Use& use : result.groups[g].writes) {
      EXPECT_FALSE(result.writer.contains(use.value)) << "value " << use.value << " is written twice";
      result.writer[use.value] = g;
    }
  }
  return result;
}

template <typename Check>
void for_random_graphs(int turns, Check check) {
  const std::uint64_t seed = testing_support::changing_seed();
  SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed);
  Draws draws(seed);
  for (int turn = 0; turn < turns; ++turn) {
    SCOPED_TRACE(::testing::Message() << "graph " << turn);
    check(fused(random_graph(draws)));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(FuseRandomGraphs, WhatIsReadWasWrittenByAnEarlierKernelOrComesFromOutside) {
  for_random_graphs(400, [](const Fused& f) {
    for (std::size_t g = 0; g < f.groups.size(); ++g)
      for (const Use& use : f.groups[g].reads) {
        if (f.before.values[use.value].producer == kNone) continue;
        const auto writer = f.writer.find(use.value);
        ASSERT_NE(writer, f.writer.end()) << "value " << use.value << " is read and not written";
        EXPECT_LT(writer->second, g) << "value " << use.value << " is read before it is written";
      }
    for (ValueId v = 0; v < f.before.values.size(); ++v)
      if (f.before.values[v].leaves && f.before.values[v].producer != kNone) {
        EXPECT_TRUE(f.writer.contains(v)) << "value " << v << " leaves and is not written";
      }
  });
}

TEST(FuseRandomGraphs, NothingIsWrittenThatNobodyReads) {
  for_random_graphs(400, [](const Fused& f) {
    std::set<ValueId> read;
    for (const Group& group : f.groups)
      for (const Use& use : group.reads) read.insert(use.value);
    for (const auto& [v, g] : f.writer) {
      const bool of_library = f.groups[g].kind == Kind::library;
      EXPECT_TRUE(read.contains(v) || f.before.values[v].leaves || of_library) << "value " << v;
      EXPECT_TRUE(!of_library || read.contains(v) || f.before.values[v].leaves || f.before.values[v].stored);
    }
  });
}

TEST(FuseRandomGraphs, AKernelReadsWhatItsNodesReadAndNoneOfThemMakes) {
  for_random_graphs(400, [](const Fused& f) {
    for (const Group& group : f.groups) {
      std::map<ValueId, std::int64_t> expected;
      const std::set<NodeId> own(group.nodes.begin(), group.nodes.end());
      for (const NodeId id : group.nodes)
        for (const Use& use : f.after.nodes[id].inputs)
          if (const NodeId producer = f.before.values[use.value].producer; producer == kNone || !own.contains(producer))
            expected[use.value] = std::max(expected[use.value], use.bytes);
      std::map<ValueId, std::int64_t> found;
      for (const Use& use : group.reads) found[use.value] = use.bytes;
      EXPECT_EQ(found, expected);
    }
  });
}

TEST(FuseRandomGraphs, AKernelIsWhatItsNodesAre) {
  for_random_graphs(400, [](const Fused& f) {
    for (const Group& group : f.groups) {
      std::int64_t arithmetic = 0, columns = 0, widest = 0;
      bool gathers = false, alone = false;
      const Node* shape = nullptr;
      for (const NodeId id : group.nodes) {
        const Node& node = f.after.nodes[id];
        arithmetic += node.arithmetic;
        columns += node.column_results;
        widest = std::max<std::int64_t>(widest, bytes_of(node.type));
        gathers = gathers || node.gathers;
        alone = alone || node.alone;
        if (shape == nullptr && node.kind != Kind::pointwise) shape = &node;
        EXPECT_EQ(node.backward, group.backward);
      }
      EXPECT_EQ(group.arithmetic, arithmetic);
      EXPECT_EQ(group.column_results, columns);
      EXPECT_EQ(bytes_of(group.type), widest);
      EXPECT_EQ(group.gathers, gathers);
      EXPECT_EQ(group.alone, alone);
      if (gathers || alone || group.kind == Kind::library) {
        EXPECT_EQ(group.nodes.size(), 1u);
      }
      EXPECT_EQ(group.kind, shape != nullptr ? shape->kind : Kind::pointwise);
      const Node& like = shape != nullptr ? *shape : f.after.nodes[group.nodes.front()];
      EXPECT_EQ(group.rows * group.cols, like.rows * like.cols);
      if (shape != nullptr) {
        EXPECT_EQ(group.rows, like.rows);
        EXPECT_EQ(group.cols, like.cols);
      }
    }
  });
}

/// Nodes that read what a node makes.
std::vector<const Node*> users_of(const Graph& graph, NodeId id) {
  std::vector<const Node*> users;
  for (const Node& node : graph.nodes)
    for (const Use& use : node.inputs)
      if (use.value == graph.nodes[id].outputs.front().value) users.push_back(&node);
  return users;
}

/// Nodes whose results are computed again by each user: those that run in no kernel of their own though somebody that
/// runs needs them.
TEST(FuseRandomGraphs, OnlyCheapPointwiseResultsOfTheSamePassAreComputedAgain) {
  int inlined = 0, written = 0;
  for_random_graphs(400, [&](const Fused& f) {
    for (NodeId id = 0; id < f.before.nodes.size(); ++id) {
      const Node& node = f.before.nodes[id];
      const ValueId made = node.outputs.front().value;
      const Value& value = f.before.values[made];
      const std::vector<const Node*> users = users_of(f.before, id);
      const bool only_of_kernels = std::ranges::all_of(
          users, [&](const Node* user) { return user->kind != Kind::library && user->backward == node.backward; });
      // Who reads the node's result after fusion reads it, and does not compute it.
      const bool read = std::ranges::any_of(f.after.nodes, [&](const Node& user) {
        return std::ranges::any_of(user.inputs, [&](const Use& use) { return use.value == made; });
      });
      const bool again = !users.empty() && !read;
      if (again) {
        ++inlined;
        EXPECT_EQ(node.kind, Kind::pointwise);
        EXPECT_TRUE(only_of_kernels);
        EXPECT_FALSE(value.leaves || value.stored || value.kept || node.realizes) << id;
        if (users.size() > 1) {
          EXPECT_LE(f.after.nodes[id].operations, 30) << id;
        }
        if (users.size() > 1) {
          EXPECT_LE(f.after.nodes[id].inputs.size(), 4u) << id;
        }
      } else if (users.size() == 1 && only_of_kernels && node.kind == Kind::pointwise) {
        ++written;
        EXPECT_TRUE(value.leaves || value.stored || value.kept || node.realizes)
            << id << " has one user, and is written";
      }
    }
  });
  EXPECT_GT(inlined, 300);
  EXPECT_GT(written, 50);
}

/// Instructions of what a node computes with all that it computes again.
TEST(FuseRandomGraphs, WhatIsComputedAgainCostsItsInstructionsAgain) {
  for_random_graphs(400, [](const Fused& f) {
    std::vector<std::int64_t> expected(f.before.nodes.size());
    for (NodeId id = 0; id < f.before.nodes.size(); ++id) {
      const Node& node = f.before.nodes[id];
      expected[id] = node.arithmetic;
      for (const Use& use : node.inputs) {
        const bool still_read =
            std::ranges::any_of(f.after.nodes[id].inputs, [&](const Use& after) { return after.value == use.value; });
        if (!still_read) expected[id] += expected[f.before.values[use.value].producer];
      }
      EXPECT_EQ(f.after.nodes[id].arithmetic, expected[id]) << id;
      EXPECT_EQ(f.after.nodes[id].operations, expected[id]) << id;
    }
  });
}

TEST(FuseRandomGraphs, BackwardKernelsComeLast) {
  for_random_graphs(200, [](const Fused& f) {
    bool backward = false;
    for (const Group& group : f.groups) {
      EXPECT_TRUE(group.backward || !backward);
      backward = group.backward;
    }
  });
}

}  // namespace
}  // namespace ridgeline::compile
