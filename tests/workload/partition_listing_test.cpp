// What the forward graph keeps and the backward graph computes again: whole graphs before and after.
#include <gtest/gtest.h>

#include "sim/workload/compile/partition.h"
#include "tests/support/graph_listing.h"

namespace ridgeline::compile {
namespace {

using Kind = Node::Kind;

/// A graph under construction: each node makes one value.
struct Sketch {
  Graph graph;
  OpTrace trace;

  ValueId given(std::int64_t bytes) {
    graph.values.push_back(
        {.bytes = bytes, .storage = 90 + static_cast<StorageId>(graph.values.size()), .stored = true});
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  ValueId node(Kind kind, std::string_view name, const std::vector<ValueId>& in, std::int64_t bytes,
               bool backward = false) {
    Node node;
    node.kind = kind;
    node.name = name;
    node.backward = backward;
    node.phase = backward ? Phase::backward : Phase::forward;
    node.arithmetic = node.operations = 1;
    for (const ValueId v : in) node.inputs.push_back({v, graph.values[v].bytes});
    graph.values.push_back({.bytes = bytes, .producer = static_cast<NodeId>(graph.nodes.size())});
    const auto made = static_cast<ValueId>(graph.values.size() - 1);
    node.outputs = {{made, bytes}};
    graph.nodes.push_back(node);
    return made;
  }
  ValueId pointwise(std::string_view name, const std::vector<ValueId>& in, std::int64_t bytes, bool backward = false) {
    return node(Kind::pointwise, name, in, bytes, backward);
  }
  ValueId library(Op op, const std::vector<ValueId>& in, std::int64_t bytes, bool backward = false) {
    const ValueId made = node(Kind::library, "mm", in, bytes, backward);
    trace.ops.push_back(std::move(op));
    graph.nodes.back().op = static_cast<std::uint32_t>(trace.ops.size() - 1);
    return made;
  }
  /// Of the first `count` values those that are kept.
  std::string partitioned(Recomputation how = Recomputation::none) {
    const std::size_t count = graph.values.size();
    partition(graph, trace, how);
    std::string text = "\n" + nodes_of(graph);
    text += "stored:";
    for (ValueId v = 0; v < count; ++v)
      if (graph.values[v].stored && graph.values[v].producer != kNone) text += fmt::format(" {}", v);
    return text + "\n";
  }
};
const Matmul kProduct{.m = 2, .n = 3, .k = 4};

// x -> tanh -> product with w -> add -> loss. The product's gradient reads the activation, so that it is kept; what the
// gradient of the activation reads is x itself.
TEST(PartitionListing, WhatABackwardLibraryCallReadsIsKept) {
  Sketch s;
  const ValueId x = s.given(100), w = s.given(50);
  const ValueId activation = s.pointwise("gelu", {x}, 100);
  const ValueId y = s.library(kProduct, {activation, w}, 60);
  s.pointwise("add", {y}, 60);
  const ValueId gradient = s.given(60);
  s.library(kProduct, {activation, gradient}, 50, true);
  s.pointwise("gelu_backward", {x, gradient}, 100, true);
  EXPECT_EQ(s.partitioned(), R"(
pointwise gelu 1x1 fp32 x1: 0:100 -> 2:100
library mm 1x1 fp32: 2:100 1:50 -> 3:60
pointwise add 1x1 fp32 x1: 3:60 -> 4:60
backward library mm 1x1 fp32: 2:100 5:60 -> 6:50
backward pointwise gelu_backward 1x1 fp32 x1: 0:100 5:60 -> 7:100
stored: 2
)");
}

// Two point-wise nodes behind x are computed again, one from the other, for two readers.
TEST(PartitionListing, PointwiseResultsAreComputedAgainFromWhatIsAtHand) {
  Sketch s;
  const ValueId x = s.given(100);
  const ValueId a = s.pointwise("tanh", {x}, 100), b = s.pointwise("mul", {a, x}, 100);
  const ValueId g = s.given(100);
  const ValueId first = s.pointwise("mul", {g, b}, 100, true);
  s.pointwise("mul", {first, a, b}, 100, true);
  EXPECT_EQ(s.partitioned(), R"(
pointwise tanh 1x1 fp32 x1: 0:100 -> 1:100
pointwise mul 1x1 fp32 x1: 1:100 0:100 -> 2:100
backward pointwise tanh 1x1 fp32 x1: 0:100 -> 6:100
backward pointwise mul 1x1 fp32 x1: 6:100 0:100 -> 7:100
backward pointwise mul 1x1 fp32 x1: 3:100 7:100 -> 4:100
backward pointwise mul 1x1 fp32 x1: 4:100 6:100 7:100 -> 5:100
stored:
)");
}

// Statistics of rows are kept whatever they cost; so is what cannot be drawn again.
TEST(PartitionListing, StatisticsAndRandomNumbersAreKept) {
  Sketch s;
  const ValueId x = s.given(100);
  const ValueId row = s.node(Kind::rows, "norm", {x}, 500), column = s.node(Kind::columns, "sum", {x}, 500),
                mask = s.pointwise("rand", {}, 500), scaled = s.pointwise("mul", {x}, 500);
  s.graph.values[mask].kept = true;
  s.pointwise("mul", {row, column, mask, scaled}, 100, true);
  EXPECT_EQ(s.partitioned(), R"(
rows norm 1x1 fp32 x1: 0:100 -> 1:500
columns sum 1x1 fp32 x1: 0:100 -> 2:500
pointwise rand 1x1 fp32 x1: -> 3:500
pointwise mul 1x1 fp32 x1: 0:100 -> 4:500
backward pointwise mul 1x1 fp32 x1: 0:100 -> 6:500
backward pointwise mul 1x1 fp32 x1: 1:500 2:500 3:500 6:500 -> 5:100
stored: 1 2 3
)");
}

// A result of 2560 bytes may be longer by ten (rows of padded products) where it is computed again from another one.
TEST(PartitionListing, AResultIsKeptWhereWhatItIsMadeOfIsLarger) {
  for (const std::int64_t source : {1, 2560, 2570, 2571, 9999}) {
    Sketch s;
    const ValueId x = s.given(100), rows = s.node(Kind::rows, "norm", {x}, source),
                  result = s.pointwise("mul", {rows}, 2560);
    s.pointwise("mul", {result}, 100, true);
    const std::string text = s.partitioned();
    EXPECT_EQ(text.substr(text.find("stored")), source <= 2570 ? "stored: 1\n" : "stored: 2\n") << source;
    EXPECT_EQ(s.graph.nodes.size(), source <= 2570 ? 4u : 3u);
  }
}

// 60 + 40 bytes of statistics behind a result of 100, directly or behind another one.
TEST(PartitionListing, CostsOfAllThatMustBeKeptAddUp) {
  const auto stored = [](std::int64_t result, std::int64_t between, std::int64_t first, std::int64_t second) {
    Sketch s;
    const ValueId x = s.given(10), a = s.node(Kind::rows, "a", {x}, first), b = s.node(Kind::rows, "b", {x}, second),
                  c = s.pointwise("c", {a, x}, between), d = s.pointwise("d", {c, b, a, x}, result);
    s.pointwise("mul", {d}, 10, true);
    const std::string text = s.partitioned();
    return text.substr(text.find("stored"));
  };
  EXPECT_EQ(stored(100, 60, 60, 40), "stored: 1 2\n");  // c from a, d from c, b and a
  EXPECT_EQ(stored(99, 60, 60, 40), "stored: 4\n");
  EXPECT_EQ(stored(200, 59, 60, 40), "stored: 1 2 3\n");  // c is smaller than a: it is kept beside a, which d reads
  EXPECT_EQ(stored(158, 59, 60, 40), "stored: 4\n");
}

// Of a chain of results the smallest is kept.
TEST(PartitionListing, OfAChainTheSmallestIsKept) {
  Sketch s;
  const ValueId x = s.given(10), rows = s.node(Kind::rows, "norm", {x}, 80), a = s.pointwise("a", {rows}, 40),
                b = s.pointwise("b", {a}, 60), c = s.pointwise("c", {b}, 70);
  s.pointwise("mul", {c}, 10, true);
  EXPECT_EQ(s.partitioned(), R"(
rows norm 1x1 fp32 x1: 0:10 -> 1:80
pointwise a 1x1 fp32 x1: 1:80 -> 2:40
pointwise b 1x1 fp32 x1: 2:40 -> 3:60
pointwise c 1x1 fp32 x1: 3:60 -> 4:70
backward pointwise b 1x1 fp32 x1: 2:40 -> 6:60
backward pointwise c 1x1 fp32 x1: 6:60 -> 7:70
backward pointwise mul 1x1 fp32 x1: 7:70 -> 5:10
stored: 2
)");
}

// The loss leaves: its value is in memory, and a graph that is not checkpointed reads it there.
TEST(PartitionListing, WhatLeavesIsReadWhereItIs) {
  Sketch s;
  const ValueId x = s.given(10), out = s.pointwise("a", {x}, 40);
  s.graph.values[out].leaves = s.graph.values[out].stored = true;
  s.graph.values[out].storage = 5;
  s.pointwise("mul", {out}, 10, true);
  EXPECT_EQ(s.partitioned(), R"(
pointwise a 1x1 fp32 x1: 0:10 -> 1:40
backward pointwise mul 1x1 fp32 x1: 1:40 -> 2:10
stored: 1
)");
}

// Of a value that is gone there is another one for the backward graph; without one the input is saved.
TEST(PartitionListing, InputsThatAreGoneAreGatheredAgainOrSaved) {
  Sketch s;
  const ValueId weight = s.given(10), cast = s.given(20), anew = s.given(10);
  s.graph.values[weight].gone = s.graph.values[cast].gone = true;
  s.graph.values[weight].again = anew;
  s.pointwise("mul", {weight, cast}, 10, true);
  EXPECT_EQ(s.partitioned(), R"(
backward pointwise mul 1x1 fp32 x1: 2:10 1:20 -> 3:10
stored:
)");
  EXPECT_EQ(s.graph.saved_inputs, (std::set<StorageId>{91}));
}

/// Two products without a bias, one with, a batch of them, attention, two sums over ranks, a norm; all of them are
/// read by the backward graph.
Sketch block() {
  Sketch s;
  ValueId x = s.given(10);
  const ValueId w = s.given(30);
  Matmul with_bias = kProduct, batch = kProduct;
  with_bias.bias = true;
  batch.batch = 3;
  std::vector<ValueId> made;
  for (const Op& op : {Op{kProduct}, Op{with_bias}, Op{batch}, Op{kProduct}, Op{kProduct}, Op{Attention{}},
                       Op{Collective{.kind = CollectiveKind::reduce_scatter}},
                       Op{Collective{.kind = CollectiveKind::all_reduce}}, Op{kProduct}})
    made.push_back(x = s.library(op, {x, w}, 10));
  made.push_back(s.node(Kind::rows, "norm", {x}, 10));
  s.node(Kind::pointwise, "mul", made, 10, true);
  return s;
}

// Nothing is kept: all of it runs again, in front of its reader.
TEST(PartitionListing, ACheckpointedGraphRunsAgain) {
  Sketch s = block();
  EXPECT_EQ(s.partitioned(Recomputation::all), R"(
library mm 1x1 fp32: 0:10 1:30 -> 2:10
library mm 1x1 fp32: 2:10 1:30 -> 3:10
library mm 1x1 fp32: 3:10 1:30 -> 4:10
library mm 1x1 fp32: 4:10 1:30 -> 5:10
library mm 1x1 fp32: 5:10 1:30 -> 6:10
library mm 1x1 fp32: 6:10 1:30 -> 7:10
library mm 1x1 fp32: 7:10 1:30 -> 8:10
library mm 1x1 fp32: 8:10 1:30 -> 9:10
library mm 1x1 fp32: 9:10 1:30 -> 10:10
rows norm 1x1 fp32 x1: 10:10 -> 11:10
backward library mm 1x1 fp32: 0:10 1:30 -> 13:10
backward library mm 1x1 fp32: 13:10 1:30 -> 14:10
backward library mm 1x1 fp32: 14:10 1:30 -> 15:10
backward library mm 1x1 fp32: 15:10 1:30 -> 16:10
backward library mm 1x1 fp32: 16:10 1:30 -> 17:10
backward library mm 1x1 fp32: 17:10 1:30 -> 18:10
backward library mm 1x1 fp32: 18:10 1:30 -> 19:10
backward library mm 1x1 fp32: 19:10 1:30 -> 20:10
backward library mm 1x1 fp32: 20:10 1:30 -> 21:10
backward rows norm 1x1 fp32 x1: 21:10 -> 22:10
backward pointwise mul 1x1 fp32 x1: 13:10 14:10 15:10 16:10 17:10 18:10 19:10 20:10 21:10 22:10 -> 12:10
stored:
)");
}

// The first and the third product, attention and the sum of which each rank keeps a part (values 2, 6, 7 and 8).
TEST(PartitionListing, APolicyKeepsEverySecondProductAttentionAndReduceScatters) {
  Sketch s = block();
  EXPECT_EQ(s.partitioned(Recomputation::operations), R"(
library mm 1x1 fp32: 0:10 1:30 -> 2:10
library mm 1x1 fp32: 2:10 1:30 -> 3:10
library mm 1x1 fp32: 3:10 1:30 -> 4:10
library mm 1x1 fp32: 4:10 1:30 -> 5:10
library mm 1x1 fp32: 5:10 1:30 -> 6:10
library mm 1x1 fp32: 6:10 1:30 -> 7:10
library mm 1x1 fp32: 7:10 1:30 -> 8:10
library mm 1x1 fp32: 8:10 1:30 -> 9:10
library mm 1x1 fp32: 9:10 1:30 -> 10:10
rows norm 1x1 fp32 x1: 10:10 -> 11:10
backward library mm 1x1 fp32: 2:10 1:30 -> 13:10
backward library mm 1x1 fp32: 13:10 1:30 -> 14:10
backward library mm 1x1 fp32: 14:10 1:30 -> 15:10
backward library mm 1x1 fp32: 8:10 1:30 -> 16:10
backward library mm 1x1 fp32: 16:10 1:30 -> 17:10
backward rows norm 1x1 fp32 x1: 17:10 -> 18:10
backward pointwise mul 1x1 fp32 x1: 2:10 13:10 14:10 15:10 6:10 7:10 8:10 16:10 17:10 18:10 -> 12:10
stored: 2 6 7 8
)");
}

// What leaves a checkpointed graph may be gone when the backward graph runs: it is computed again. Copies are of no
// storage, and lie in place of copies.
TEST(PartitionListing, CopiesBelongToTheBackwardGraph) {
  Sketch s;
  const ValueId x = s.given(10), zeros = s.pointwise("full", {}, 40), sum = s.pointwise("scatter", {x, zeros}, 40);
  Value& out = s.graph.values[sum];
  out.leaves = out.stored = out.ends_here = true;
  out.storage = 5;
  out.in_place_of = zeros;
  s.pointwise("mul", {sum}, 10, true);
  EXPECT_EQ(s.partitioned(Recomputation::all), R"(
pointwise full 1x1 fp32 x1: -> 1:40
pointwise scatter 1x1 fp32 x1: 0:10 1:40 -> 2:40
backward pointwise full 1x1 fp32 x1: -> 4:40
backward pointwise scatter 1x1 fp32 x1: 0:10 4:40 -> 5:40
backward pointwise mul 1x1 fp32 x1: 5:40 -> 3:10
stored: 2
)");
  EXPECT_EQ(values_of(s.graph, 4), "4: 40 by 2\n5: 40 by 3 over 4\n");
  EXPECT_EQ(s.graph.values[5].category, Category::temporaries);
  EXPECT_EQ(s.graph.nodes[2].phase, Phase::backward);
  EXPECT_EQ(words_of(s.graph.values[sum]), "40 leaves ends here stored by 1 in storage 5 over 1");
}

}  // namespace
}  // namespace ridgeline::compile
