// Compiled graphs as records: where results lie, when memory is taken and given back, how sums over rows are cut.
#include <gtest/gtest.h>

#include "sim/workload/compile/emit.h"
#include "tests/support/graph_sketch.h"
#include "tests/support/record_listing.h"

namespace ridgeline::compile {
namespace {

using Kind = Node::Kind;
constexpr GraphSketch::Space kRowsByCols{64, 32};  ///< 8192 bytes of fp32

/// Both passes of a graph. Storages of the script are called by the number of their value: x3.
struct EmitSession {
  OpTrace trace;
  std::vector<Record> records;
  std::vector<Group> groups;
  std::vector<std::string> passes;

  explicit EmitSession(GraphSketch& s, int sms = 4, std::int64_t parameters = 5, bool enters = true) {
    for (const Value& value : s.graph.values) trace.storages.push_back({value.bytes});
    trace.ops.resize(1, Memset{});
    groups = fuse(s.graph);
    Emitter emitter(trace, records, s.graph, groups, sms);
    emitter.forward(parameters, enters);
    const std::size_t half = records.size();
    emitter.backward(parameters, enters);
    trace.records = records;
    testing_support::RecordListing listing(trace);
    for (ValueId v = 0; v < s.graph.values.size(); ++v)
      if (s.graph.values[v].storage != kNone)
        listing.call(s.graph.values[v].storage, fmt::format("x{}", s.graph.values[v].storage));
    passes = {"\n" + listing.lines(0, static_cast<std::uint32_t>(half)),
              "\n" + listing.lines(static_cast<std::uint32_t>(half))};
  }
};

// A result is written over where it dies, also by what the backward pass reads, which lives until its last reader.
TEST(EmitListing, ResultsAreWrittenOverOperandsThatDie) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId a = s.library("mm", kRowsByCols, {x}), b = s.pointwise("gelu", kRowsByCols, {a});
  s[b].stored = true;
  const ValueId c = s.library("mm", kRowsByCols, {b});
  s.leaves(s.pointwise("loss", {1, 1}, {c}));
  s.backward = true;
  const ValueId g = s.library("mm", kRowsByCols, {x}), h = s.pointwise("gelu_backward", kRowsByCols, {g, b});
  s.leaves(s.library("mm", {8, 8}, {h}));
  const EmitSession e(s);
  EXPECT_EQ(e.passes[0], R"(
host compiled_forward
host per_parameter_compiled_forward 5
new 1: 8192 temporaries
host compiled_call
-- forward
memset 0 bytes: x0 8192 -> 1 8192
host generated_kernel
triton_poi_fused_gelu 64x32 fp32, 1 in, 1 out x1: 1 8192 -> 1 8192
new 2: 8192 temporaries
host compiled_call
memset 0 bytes: 1 8192 -> 2 8192
new x4: 4 activations
host generated_kernel
triton_poi_fused_loss 1x1 fp32, 1 in, 1 out x1: 2 8192 -> x4 4
free 2
)");
  EXPECT_EQ(e.passes[1], R"(
host compiled_backward
new 3: 8192 temporaries
host compiled_call
-- backward
memset 0 bytes: x0 8192 -> 3 8192
host generated_kernel
triton_poi_fused_gelu_backward 64x32 fp32, 2 in, 1 out x1: 3 8192, 1 8192 -> 3 8192
free 1
new x7: 256 activations
host compiled_call
memset 0 bytes: 3 8192 -> x7 256
free 3
host per_parameter_compiled_backward 5
)");
}

// A part of the network that is not the first enters no pass; without trained tensors one is counted.
TEST(EmitListing, EnteringAGraphCostsTheHostOnce) {
  GraphSketch s;
  s.leaves(s.pointwise("neg", {2, 2}, {s.given(16)}));
  const EmitSession e(s, 4, 0, false);
  EXPECT_EQ(e.passes[0], R"(
host per_parameter_compiled_forward
new x1: 16 activations
host generated_kernel
-- forward
triton_poi_fused_neg 2x2 fp32, 1 in, 1 out x1: x0 16 -> x1 16
)");
  EXPECT_EQ(e.passes[1], R"(
host per_parameter_compiled_backward
)");
}

// Rows of padded products: up to a part in 256 longer.
TEST(EmitListing, ALittleMoreRoomWillDo) {
  for (const auto& [room, taken] : {std::pair(8188, false), {8192, true}, {8224, true}, {8228, false}}) {
    GraphSketch s;
    const ValueId a = s.library("mm", kRowsByCols, {s.given(8192)});
    s[a].bytes = room;
    s.library("mm", {2, 2}, {s.pointwise("neg", kRowsByCols, {a})});
    s.leaves(s.graph.nodes.back().outputs[0].value);
    const std::string text = EmitSession(s).passes[0];
    EXPECT_EQ(text.find("new 2: 8192 temporaries") == text.npos, taken) << room << text;
  }
}

/// A kernel that reads `a`, which a product made, and dies there unless something holds it.
template <typename Change>
std::string written_over(Change change) {
  GraphSketch s;
  const ValueId x = s.given(8192), a = s.library("mm", kRowsByCols, {x});
  const ValueId b = s.pointwise("neg", kRowsByCols, {a});
  s[b].kept = true;
  change(s, a);
  s.leaves(s.library("mm", {2, 2}, {b}));
  return EmitSession(s).passes[0];
}
TEST(EmitListing, WhatIsHeldLeavesOrIsTheCallersIsNotWrittenOver) {
  const auto fresh = [](const std::string& text) { return text.find("new 2: 8192") != text.npos; };
  EXPECT_FALSE(fresh(written_over([](GraphSketch&, ValueId) {})));
  EXPECT_TRUE(fresh(written_over([](GraphSketch& s, ValueId a) { s[a].held = true; })));
  EXPECT_TRUE(fresh(written_over([](GraphSketch& s, ValueId a) { s[a].of_caller = true; })));
  EXPECT_TRUE(fresh(written_over([](GraphSketch& s, ValueId a) {
    s.leaves(s.pointwise("exp", {1, 2}, {a}));  // read again, by another kernel
  })));
  const std::string left = written_over([](GraphSketch& s, ValueId a) { s.leaves(a); });
  EXPECT_NE(left.find("new 1: 8192 temporaries"), left.npos) << left;
}

// Scores are held until the backward graph has run; what dies inside comes from outside and goes with its last reader.
TEST(EmitListing, WhatTheScriptHoldsGoesAtTheEnd) {
  GraphSketch s;
  const ValueId x = s.given(400), unread = s.given(100);
  const ValueId scores = s.library("mm", {10, 10}, {x});
  s[scores].held = true;
  s.leaves(s.pointwise("loss", {1, 1}, {scores}));
  s.backward = true;
  s.leaves(s.library("mm", {2, 2}, {x}));
  s.graph.freed_inside = {x, unread};
  const EmitSession e(s);
  EXPECT_EQ(e.passes[0], R"(
host compiled_forward
host per_parameter_compiled_forward 5
new 1: 400 temporaries
host compiled_call
-- forward
memset 0 bytes: x0 400 -> 1 400
new x3: 4 activations
host generated_kernel
triton_poi_fused_loss 1x1 fp32, 1 in, 1 out x1: 1 400 -> x3 4
)");
  EXPECT_EQ(e.passes[1], R"(
host compiled_backward
new x4: 16 activations
host compiled_call
-- backward
memset 0 bytes: x0 400 -> x4 16
free x0
host per_parameter_compiled_backward 5
free 1
free x1
)");
}

// A result for another part of the network that goes with this one: behind its last backward reader, or at the end.
TEST(EmitListing, WhatEndsHereGoesWithItsLastBackwardReader) {
  for (const bool read : {true, false}) {
    GraphSketch s;
    const ValueId x = s.given(400), out = s.leaves(s.library("mm", {10, 10}, {x}));
    s[out].ends_here = true;
    s.leaves(s.library("mm", {3, 3}, {out}));  // a reader of the forward pass does not end it
    s.backward = true;
    if (read) s.leaves(s.library("mm", {2, 2}, {out}));
    s.leaves(s.library("mm", {5, 5}, {x}));
    const EmitSession e(s);
    EXPECT_EQ(e.passes[0], R"(
host compiled_forward
host per_parameter_compiled_forward 5
new x1: 400 activations
host compiled_call
-- forward
memset 0 bytes: x0 400 -> x1 400
new x2: 36 activations
host compiled_call
memset 0 bytes: x1 400 -> x2 36
)");
    EXPECT_EQ(e.passes[1], read ? R"(
host compiled_backward
new x3: 16 activations
host compiled_call
-- backward
memset 0 bytes: x1 400 -> x3 16
free x1
new x4: 100 activations
host compiled_call
memset 0 bytes: x0 400 -> x4 100
host per_parameter_compiled_backward 5
)"
                                : R"(
host compiled_backward
new x3: 100 activations
host compiled_call
-- backward
memset 0 bytes: x0 400 -> x3 100
host per_parameter_compiled_backward 5
free x1
)");
  }
}

// A gradient that exists already is added to in place: it lies in the script's memory. Written over what dies inside,
// the new content dies in its place.
TEST(EmitListing, WhatIsWrittenInPlaceLiesWhereItWas) {
  GraphSketch s;
  const ValueId gradient = s.given(400), dying = s.given(400), x = s.given(400);
  s.backward = true;
  const ValueId product = s.library("mm", {10, 10}, {x});
  const ValueId sum = s.library("add", {10, 10}, {gradient, product});
  s[sum].storage = gradient;
  s[sum].stored = true;
  const ValueId reduced = s.library("all_reduce", {10, 10}, {dying});
  s[reduced].storage = dying;
  s[reduced].stored = true;
  s.graph.freed_inside = {dying};
  s.leaves(s.library("mm", {2, 2}, {reduced}));
  EXPECT_EQ(EmitSession(s).passes[1], R"(
host compiled_backward
new 1: 400 temporaries
host compiled_call
-- backward
memset 0 bytes: x2 400 -> 1 400
host compiled_call
memset 0 bytes: x0 400, 1 400 -> x0 400
free 1
host compiled_call
memset 0 bytes: x1 400 -> x1 400
new x6: 16 activations
host compiled_call
memset 0 bytes: x1 400 -> x6 16
free x1
host per_parameter_compiled_backward 5
)");
}

// Rows are scattered into zeros, which the table's gradient takes the place of, or into the gradient's own memory.
TEST(EmitListing, AScatterWritesIntoTheZerosBelowIt) {
  for (const bool leaves : {false, true}) {
    GraphSketch s;
    const ValueId x = s.given(80);
    s.backward = true;
    const ValueId zeros = s.pointwise("full", {10, 10}, {});
    s[zeros].kept = true;
    const ValueId table = s.pointwise("scatter", {2, 10}, {x, zeros});
    s[table].in_place_of = zeros;
    s[table].bytes = 400;
    if (leaves) s.leaves(table);
    else s.leaves(s.library("mm", {2, 2}, {table}));
    EXPECT_EQ(EmitSession(s).passes[1], leaves ? R"(
host compiled_backward
new x2: 400 activations
host generated_kernel
-- backward
triton_poi_fused_full 10x10 fp32, 0 in, 1 out x1: -> x2 400
host generated_kernel
triton_poi_fused_scatter 2x10 fp32, 2 in, 1 out x1: x0 80, x2 400 -> x2 80
host per_parameter_compiled_backward 5
)"
                                               : R"(
host compiled_backward
new 1: 400 temporaries
host generated_kernel
-- backward
triton_poi_fused_full 10x10 fp32, 0 in, 1 out x1: -> 1 400
host generated_kernel
triton_poi_fused_scatter 2x10 fp32, 2 in, 1 out x1: x0 80, 1 400 -> 1 80
new x3: 16 activations
host compiled_call
memset 0 bytes: 1 400 -> x3 16
free 1
host per_parameter_compiled_backward 5
)");
  }
}

// Another result of the same kernel does not take the place of what the gradient lies over.
TEST(EmitListing, MemoryOfAGradientIsNotTakenForAnotherResult) {
  GraphSketch s;
  s.backward = true;
  const ValueId zeros = s.pointwise("full", {10, 10}, {});
  s[zeros].kept = true;
  const ValueId other = s.pointwise("scatter", {10, 10}, {zeros}), table = s.output(400);
  s.last().alone = true;
  s[other].kept = true;
  s[table].in_place_of = zeros;
  s.leaves(table);
  s.leaves(s.library("mm", {2, 2}, {other}));
  EXPECT_EQ(EmitSession(s).passes[1], R"(
host compiled_backward
new x2: 400 activations
host generated_kernel
-- backward
triton_poi_fused_full 10x10 fp32, 0 in, 1 out x1: -> x2 400
new 1: 400 temporaries
host generated_kernel
triton_poi_fused_scatter 10x10 fp32, 1 in, 2 out x1: x2 400 -> 1 400, x2 400
new x3: 16 activations
host compiled_call
memset 0 bytes: 1 400 -> x3 16
free 1
host per_parameter_compiled_backward 5
)");
}

// Storages and calls belong to the module of the kernel's last node.
TEST(EmitListing, KernelsBelongWhereTheirLastNodeDoes) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId a = s.leaves(s.pointwise("neg", kRowsByCols, {x}));
  s.last().layer = 3;
  s.last().module = 30;
  const ValueId b = s.pointwise("exp", kRowsByCols, {a});
  s[b].kept = true;
  s[b].layer = 4;
  s[b].module = 40;
  s.last().layer = 5;
  s.last().module = 50;
  s.last().phase = Phase::other;
  s.leaves(s.library("mm", {2, 2}, {b}));
  const EmitSession e(s);
  EXPECT_EQ(e.trace.calls[0].layer, 5);
  EXPECT_EQ(e.trace.calls[0].module, 50);
  EXPECT_EQ(e.trace.calls[0].phase, Phase::other);
  const auto& storage = e.trace.storages[s.graph.values.size()];
  EXPECT_EQ(storage.layer, 4);
  EXPECT_EQ(storage.module, 40);
}

}  // namespace
}  // namespace ridgeline::compile
