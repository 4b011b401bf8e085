// The graph that torch.compile sees of a micro-batch: values instead of storages, and what becomes of each.
#include "sim/workload/compile/build_graph.h"

#include <gtest/gtest.h>

#include "tests/support/graph_listing.h"
#include "tests/support/trace_sketch.h"

namespace ridgeline::compile {
namespace {

using testing_support::TraceSketch;

Pointwise each(PointwiseFunction function, std::int64_t elements = 12, DType out = DType::fp32) {
  return {.function = function, .rows = 1, .cols = elements, .output = out};
}
std::string built(TraceSketch& t, std::uint32_t number = 0) {
  const PartStorages shared(t.trace);
  const Graph graph = build_graph(t.trace, number, shared);
  std::string text = "\n" + nodes_of(graph, t.trace.ops) + values_of(graph) + "freed inside:";
  for (const StorageId storage : graph.freed_inside) text += fmt::format(" {}", storage);
  return text + "\n";
}

// x times w, an activation, the loss, which the script scales; the gradient of w stays, that of the activation dies.
// What the script made and the graphs free is freed inside; a script's use of a value between the passes holds it.
TEST(BuildGraph, ValuesAreContentsOfStorages) {
  TraceSketch t;
  const StorageId w = t.allocate(48, Category::weights), x = t.allocate(40, Category::inputs),
                  mask = t.allocate(12, Category::inputs);
  t.phase = Phase::forward;
  CompiledRange range;
  range.forward.begin = t.here();
  t.host(HostClass::linear);
  const StorageId y = t.made(Matmul{.m = 3, .n = 4, .k = 4}, {x, w}, 48);
  const StorageId a = t.made(each(PointwiseFunction::tanh), {y}, 48);
  t.op(each(PointwiseFunction::masked_fill), {a, mask}, {a});  // in place
  t.free(mask);
  const StorageId probe = t.made(each(PointwiseFunction::add), {y}, 48);
  const StorageId loss = t.made(Reduction{ReductionKind::sum_all, DType::fp32, 3, 4}, {a}, 4);
  range.forward.end = t.here();
  const StorageId scaled = t.made(each(PointwiseFunction::mul, 1), {loss, probe}, 4);
  t.free(probe);
  t.phase = Phase::backward;
  range.backward.begin = t.here();
  const StorageId da = t.made(each(PointwiseFunction::tanh_backward), {scaled, a}, 48, Category::temporaries);
  t.free(y), t.free(a);
  const StorageId dw = t.made(Matmul{.m = 4, .n = 4, .k = 3, .layout = Layout::tn}, {x, da}, 48, Category::gradients);
  t.free(da), t.free(scaled);
  range.backward.end = t.here();
  t.trace.compiled_ranges.push_back(range);
  EXPECT_EQ(built(t), R"(
library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 0:40 1:48 -> 2:48
pointwise tanh 1x12 fp32 x30: 2:48 -> 3:48
pointwise where 1x12 fp32 x1: 3:48 4:12 -> 5:48
pointwise add 1x12 fp32 x1: 2:48 -> 6:48
columns sum 12x1 fp32 x1 sums 1: 5:48 -> 7:4
backward pointwise tanh_backward 1x12 fp32 x1: 8:4 5:48 -> 9:48
backward library mm 4x4 fp32 [mm 4x4x3 tn fp32]: 0:40 9:48 -> 10:48
0: 40 stored in storage 1
1: 48 stored in storage 0
2: 48 by 0
3: 48 by 1
4: 12 stored in storage 2
5: 48 by 2
6: 48 leaves stored by 3 in storage 5
7: 4 leaves stored kept by 4 in storage 6
8: 4 stored in storage 7
9: 48 by 5
10: 48 leaves stored by 6 in storage 9
freed inside: 2 7
)");
  EXPECT_EQ(dw, 9u);
}

// The scores, before they are cast, are held; zeros stand for their gradient in front of the loss's.
TEST(BuildGraph, ScoresGivenToTheScriptAreHeld) {
  for (const bool returned : {true, false}) {
    TraceSketch t;
    const StorageId w = t.allocate(48, Category::weights);
    CompiledRange range;
    range.returns_scores = returned;
    range.forward.begin = t.here();
    t.phase = Phase::forward;
    const StorageId scores = t.made(Matmul{.type = DType::bf16, .m = 3, .n = 4, .k = 4}, {w, w}, 24);
    const StorageId wide = t.made(each(PointwiseFunction::cast), {scores}, 48);
    const StorageId logs = t.made(Softmax{.log = true, .rows = 3, .cols = 4}, {wide}, 48);
    const StorageId loss = t.made(Reduction{ReductionKind::sum_all, DType::fp32, 3, 4}, {logs}, 4);
    range.forward.end = range.backward.begin = t.here();
    t.phase = Phase::backward;
    const StorageId g = t.made(Softmax{.log = true, .backward = true, .rows = 3, .cols = 4}, {loss, logs}, 48);
    for (const StorageId dead : {scores, wide, logs}) t.free(dead);
    range.backward.end = t.here();
    t.trace.compiled_ranges.push_back(range);
    EXPECT_EQ(built(t), returned ? R"(
library mm 3x4 bf16 [mm 3x4x4 nn bf16]: 0:48 0:48 -> 1:24
casting pointwise _to_copy 1x12 fp32 x1: 1:24 -> 2:48
rows _log_softmax 3x4 fp32 x12: 2:48 -> 4:24
pointwise _log_softmax 3x4 fp32 x12: 2:48 4:24 -> 3:48
columns sum 12x1 fp32 x1 sums 1: 3:48 -> 5:4
backward library full 1x12 bf16 [fill 1x12 bf16]: -> 6:24
backward rows _log_softmax_backward_data 3x4 fp32 x12: 6:24 5:4 3:48 -> 7:48
0: 48 stored in storage 0
1: 24 held by 0
2: 48 by 1
3: 48 by 3
4: 24 kept by 2
5: 4 leaves stored kept by 4 in storage 4
6: 24 of caller kept by 5
7: 48 leaves stored by 6 in storage 5
freed inside:
)"
                                 : R"(
library mm 3x4 bf16 [mm 3x4x4 nn bf16]: 0:48 0:48 -> 1:24
casting pointwise _to_copy 1x12 fp32 x1: 1:24 -> 2:48
rows _log_softmax 3x4 fp32 x12: 2:48 -> 4:24
pointwise _log_softmax 3x4 fp32 x12: 2:48 4:24 -> 3:48
columns sum 12x1 fp32 x1 sums 1: 3:48 -> 5:4
backward rows _log_softmax_backward_data 3x4 fp32 x12: 5:4 3:48 -> 6:48
0: 48 stored in storage 0
1: 24 by 0
2: 48 by 1
3: 48 by 3
4: 24 kept by 2
5: 4 leaves stored kept by 4 in storage 4
6: 48 leaves stored by 5 in storage 5
freed inside:
)");
    EXPECT_EQ(g, 5u);
  }
}

// autocast casts a weight for each use; the compiler sees that they are equal. The script's own are not touched.
TEST(BuildGraph, EqualCastsAreOne) {
  TraceSketch t;
  const StorageId w = t.allocate(48, Category::weights), v = t.allocate(48, Category::weights);
  CompiledRange range;
  range.forward.begin = t.here();
  const Pointwise cast = each(PointwiseFunction::cast, 12, DType::bf16);
  std::vector<StorageId> casts;
  for (const StorageId of : {w, w, v}) casts.push_back(t.made(cast, {of}, 24));
  for (Call& call : t.trace.calls) call.op = 0;  // equal operations share an entry
  t.made(each(PointwiseFunction::add, 12, DType::bf16), {casts[0], casts[1], casts[2]}, 24);
  range.forward.end = range.backward.begin = range.backward.end = t.here();
  t.trace.compiled_ranges.push_back(range);
  EXPECT_EQ(built(t), R"(
casting pointwise _to_copy 1x12 bf16 x1: 0:48 -> 1:24
casting pointwise _to_copy 1x12 bf16 x1: 2:48 -> 3:24
pointwise add 1x12 bf16 x1: 1:24 1:24 3:24 -> 4:24
0: 48 stored in storage 0
1: 24 leaves stored by 0 in storage 3
2: 48 stored in storage 1
3: 24 leaves stored by 1 in storage 4
4: 24 leaves stored by 2 in storage 5
freed inside:
)");
}

// The second micro-batch adds to a gradient that exists, behind the graph; a fan-in inside of it is the graph's own.
TEST(BuildGraph, WhatIsAddedToGradientsIsTheScripts) {
  TraceSketch t;
  const StorageId x = t.allocate(48), dw = t.allocate(48, Category::gradients);
  CompiledRange range;
  range.forward = {t.here(), t.here()};
  range.backward.begin = t.here();
  t.phase = Phase::backward;
  t.host(HostClass::mm_backward);
  const StorageId g = t.made(each(PointwiseFunction::mul), {x}, 48, Category::temporaries);
  t.host(HostClass::fan_in_add);
  t.op(each(PointwiseFunction::add_in_place), {g, x}, {g});
  t.host(HostClass::accumulate_grad_add);
  t.op(each(PointwiseFunction::add_in_place), {dw, g}, {dw});
  t.host(HostClass::view_backward);
  t.op(each(PointwiseFunction::other), {x}, {g});
  range.backward.end = t.here();
  t.trace.compiled_ranges.push_back(range);
  EXPECT_EQ(built(t), R"(
backward pointwise mul 1x12 fp32 x1: 0:48 -> 1:48
backward pointwise add 1x12 fp32 x1: 1:48 0:48 -> 2:48
backward after library add 1x1 fp32 [add_ 1x12 fp32]: 3:48 2:48 -> 4:48
backward pointwise mul 1x12 fp32 x1: 0:48 -> 5:48
0: 48 stored in storage 0
1: 48 by 0
2: 48 by 1
3: 48 stored in storage 1
4: 48 stored by 2 in storage 1
5: 48 leaves stored by 3 in storage 2
freed inside:
)");
}

// What a collective changes lies where it lay.
TEST(BuildGraph, ACollectiveChangesWhatItIsGiven) {
  TraceSketch t;
  const StorageId x = t.allocate(48);
  CompiledRange range;
  range.forward.begin = t.here();
  const StorageId y = t.made(Matmul{.m = 3, .n = 4, .k = 4}, {x, x}, 48);
  t.op(Collective{.ranks = 2, .bytes = 48}, {y}, {y});
  t.made(Collective{.kind = CollectiveKind::all_gather, .ranks = 2, .bytes = 96}, {y}, 96);
  range.forward.end = range.backward.begin = range.backward.end = t.here();
  t.trace.compiled_ranges.push_back(range);
  EXPECT_EQ(built(t), R"(
library mm 3x4 fp32 [mm 3x4x4 nn fp32]: 0:48 0:48 -> 1:48
library mm 1x1 fp32 [all_reduce 48 bytes fp32, 2 ranks]: 1:48 -> 2:48
library mm 1x1 fp32 [all_gather 96 bytes fp32, 2 ranks]: 2:48 -> 3:96
0: 48 stored in storage 0
1: 48 by 0
2: 48 leaves stored by 1 in storage 1 over 1
3: 96 leaves stored by 2 in storage 2
freed inside:
)");
}

}  // namespace
}  // namespace ridgeline::compile
