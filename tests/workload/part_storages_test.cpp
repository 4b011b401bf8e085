// A network that is compiled in two parts: whose memory is whose, the graph of each part, and the whole trace.
#include "sim/workload/compile/part_storages.h"

#include <gtest/gtest.h>

#include "sim/workload/compile/build_graph.h"
#include "sim/workload/compile/compile_trace.h"
#include "tests/support/graph_listing.h"
#include "tests/support/record_listing.h"
#include "tests/support/two_parts.h"

namespace ridgeline::compile {
namespace {

using testing_support::TwoParts;

TEST(PartStoragesListing, AStorageEndsInThePartThatUsesItLast) {
  const TwoParts t;
  const PartStorages storages(t.trace);
  EXPECT_FALSE(storages.empty());
  struct Expected {
    StorageId storage;
    bool shared;
    std::uint32_t ends_in;
  };
  for (const Expected& one : {Expected{t.w, true, kNone},
                              {t.v, false, kNone},
                              {t.table, true, kNone},
                              {t.x, true, 0},
                              {t.own, false, 0},
                              {t.h, true, 1},
                              {t.again, true, kNone},
                              {t.loss, false, kNone},
                              {t.g, true, 1},
                              {t.dh, true, 0},
                              {t.dv, false, kNone},
                              {t.dw, true, kNone}}) {
    EXPECT_EQ(storages.shared(one.storage), one.shared) << one.storage;
    EXPECT_EQ(storages.ends_in(one.storage), one.ends_in) << one.storage;
  }
  // v came anew as `again`, that once more as the next one.
  EXPECT_EQ(storages.refilled(t.v), t.again);
  EXPECT_NE(storages.refilled(t.again), kNone);
  EXPECT_EQ(storages.refilled(storages.refilled(t.again)), kNone);
  EXPECT_EQ(storages.refilled(t.w), kNone);
  // `again` is given back between the passes of the second part.
  const CompiledRange& second = t.trace.compiled_ranges[1];
  EXPECT_TRUE(storages.gone_before(t.again, second.backward.begin));
  EXPECT_TRUE(storages.gone_before(t.again, second.forward.end + 1));
  EXPECT_FALSE(storages.gone_before(t.again, second.forward.end));
  EXPECT_FALSE(storages.gone_before(t.w, second.backward.begin));
  EXPECT_FALSE(storages.gone_before(t.h, second.backward.end));  // freed inside of a part
}

TEST(PartStoragesListing, WithoutPartsNothingIsKnown) {
  TwoParts t;
  for (CompiledRange& range : t.trace.compiled_ranges) range.parameters = 0;
  const PartStorages storages(t.trace);
  EXPECT_TRUE(storages.empty());
  EXPECT_FALSE(storages.shared(t.h));
  EXPECT_EQ(storages.ends_in(t.h), kNone);
  EXPECT_EQ(storages.refilled(t.v), kNone);
  EXPECT_FALSE(storages.gone_before(t.again, 1000));
}

TEST(PartStoragesListing, AnEndMayBeMoved) {
  const TwoParts t;
  PartStorages storages(t.trace);
  storages.end_in(t.h, 0);
  EXPECT_EQ(storages.ends_in(t.h), 0u);
  EXPECT_TRUE(storages.shared(t.h));
}

std::string part_of(TwoParts& t, std::uint32_t number) {
  const PartStorages storages(t.trace);
  const Graph graph = build_graph(t.trace, number, storages);
  std::string text = "\n" + nodes_of(graph, t.trace.ops) + values_of(graph) + "freed inside:";
  for (const StorageId storage : graph.freed_inside) text += fmt::format(" {}", storage);
  return text + "\n";
}

// What part 1 needs of part 0 leaves it; what part 0 made and part 1 uses last ends there. Adding to a gradient that
// both parts have is the script's.
TEST(PartStoragesListing, EachPartHasAGraphOfItsOwn) {
  TwoParts t;
  EXPECT_EQ(part_of(t, 0), R"(
pointwise tanh 1x12 fp32 x30: 0:64 -> 1:48
library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 1:48 2:48 -> 3:48
backward pointwise tanh_backward 1x12 fp32 x1: 1:48 4:48 -> 5:48
backward library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 5:48 0:64 -> 6:48
backward after library add 1x1 fp32 [add_ 1x12 fp32]: 7:48 5:48 -> 8:48
0: 64 stored in storage 3
1: 48 by 0
2: 48 stored in storage 0
3: 48 leaves stored by 1 in storage 5
4: 48 stored in storage 10
5: 48 by 2
6: 48 leaves stored by 3 in storage 13
7: 48 stored in storage 2
8: 48 stored by 4 in storage 2
freed inside: 3 10
)");
  EXPECT_EQ(part_of(t, 1), R"(
library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 0:48 1:56 -> 2:4
backward library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 3:4 4:56 -> 5:48
backward library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 3:4 0:48 -> 6:56
backward after library add 1x1 fp32 [add_ 1x12 fp32]: 7:48 5:48 -> 8:48
0: 48 stored in storage 5
1: 56 gone stored in storage 6 again as 4
2: 4 leaves stored by 0 in storage 7
3: 4 stored in storage 9
4: 56 stored in storage 8
5: 48 leaves stored by 1 in storage 10
6: 56 leaves stored by 2 in storage 11
7: 48 stored in storage 2
8: 48 stored by 3 in storage 2
freed inside: 5 9
)");
}

// A sum of gradients that the part goes on from is the graph's: it is read again.
TEST(PartStoragesListing, ASumThatIsReadAgainIsTheGraphs) {
  TwoParts t;
  CompiledRange& first = t.trace.compiled_ranges[0];
  // Before the frees of part 0's backward pass: something reads the sum.
  const Record copied = t.trace.records[first.backward.end - 5];
  ASSERT_EQ(copied.kind, Record::Kind::op);
  t.op(TwoParts::each(PointwiseFunction::other), {t.table}, {t.dw});
  t.trace.records[first.backward.end - 1] = t.trace.records.back();  // in place of the last free
  EXPECT_EQ(part_of(t, 0), R"(
pointwise tanh 1x12 fp32 x30: 0:64 -> 1:48
library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 1:48 2:48 -> 3:48
backward pointwise tanh_backward 1x12 fp32 x1: 1:48 4:48 -> 5:48
backward library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 5:48 0:64 -> 6:48
backward pointwise add 1x12 fp32 x1: 7:48 5:48 -> 8:48
backward pointwise mul 1x12 fp32 x1: 8:48 -> 9:48
0: 64 stored in storage 3
1: 48 by 0
2: 48 stored in storage 0
3: 48 leaves stored by 1 in storage 5
4: 48 stored in storage 10
5: 48 by 2
6: 48 by 3
7: 48 stored in storage 2
8: 48 stored by 4 in storage 2
9: 48 leaves stored by 5 in storage 13
freed inside: 10
)");
}

TEST(PartStoragesListing, TheWholeTraceIsGraphsAndWhatTheScriptDoes) {
  const TwoParts t;
  const OpTrace trace = compile_trace(t.trace, 4);
  EXPECT_TRUE(trace.compiled_ranges.empty());
  EXPECT_TRUE(trace.refills.empty());
  testing_support::RecordListing listing(trace);
  EXPECT_EQ("\n" + listing.lines(0), R"(
new 1: 48 weights
new 2: 56 weights
new 3: 48 gradients
new 4: 64 inputs
host compiled_forward
host per_parameter_compiled_forward
new 5: 48 temporaries
host generated_kernel
-- forward
triton_poi_fused_tanh 1x12 fp32, 1 in, 1 out x30: 4 64 -> 5 48
new 6: 48 activations
host compiled_call
mm 3x4x4 nn fp32: 5 48, 1 48 -> 6 48
free 5
free 2
new 7: 56 weights
host fsdp_hooks
host per_parameter_compiled_forward 2
new 8: 4 activations
host compiled_call
mm 3x4x4 nn fp32: 6 48, 7 56 -> 8 4
free 7
new 9: 56 weights
new 10: 4 temporaries
-- backward
fill 1x1 fp32: -> 10 4
host compiled_backward
new 11: 48 temporaries
host compiled_call
mm 3x4x4 nn fp32: 10 4, 9 56 -> 11 48
new 12: 56 gradients
host compiled_call
mm 3x4x4 nn fp32: 10 4, 6 48 -> 12 56
free 10
free 6
host accumulate_grad_add
add_ 1x12 fp32: 3 48, 11 48 -> 3 48
host per_parameter_compiled_backward 2
free 9
host generated_kernel
triton_poi_fused_tanh_tanh_backward 1x12 fp32, 2 in, 1 out x31: 4 64, 11 48 -> 11 48
new 13: 48 gradients
host compiled_call
mm 3x4x4 nn fp32: 11 48, 4 64 -> 13 48
free 4
host accumulate_grad_add
add_ 1x12 fp32: 3 48, 11 48 -> 3 48
free 11
host per_parameter_compiled_backward
-- optimizer
add_ 1x12 fp32: 1 48, 13 48 -> 1 48
free 13
free 12
free 8
)");
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].begin, 4u);
  EXPECT_EQ(trace.steps[0].end, trace.records.size());
}

}  // namespace
}  // namespace ridgeline::compile
