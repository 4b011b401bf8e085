// Memory that a compiled backward graph reads longer than the eager pass does, and gradients that parts hand on: whole
// traces.
#include <gtest/gtest.h>

#include "sim/workload/compile/compile_trace.h"
#include "tests/support/live_storages.h"
#include "tests/support/record_listing.h"
#include "tests/support/trace_sketch.h"

namespace ridgeline::compile {
namespace {

using testing_support::TraceSketch;
using F = PointwiseFunction;

Pointwise of_twelve(PointwiseFunction function, DType out = DType::fp32) {
  return {.function = function, .rows = 1, .cols = 12, .output = out};
}
constexpr Matmul kMatrixProduct{.m = 3, .n = 4, .k = 4};

std::string whole(const TraceSketch& t) {
  const OpTrace trace = compile_trace(t.trace, 4);
  EXPECT_EQ(testing_support::first_inconsistency(trace), "");
  testing_support::RecordListing listing(trace);
  return "\n" + listing.lines(0);
}

// Part 0 keeps a wide copy of h and a tangent of x for its backward pass; compiled it makes both again, of h and x,
// which eager code gives up behind part 1's backward pass. x and h go with part 0's.
TEST(PartMemory, WhatIsMadeAgainIsMadeOfWhatLivesLonger) {
  TraceSketch t;
  CompiledRange first, second;
  first.parameters = second.parameters = 1;
  const StorageId w = t.allocate(48, Category::weights), x = t.allocate(48, Category::inputs);
  t.phase = Phase::forward;
  first.forward.begin = t.here();
  const StorageId h = t.made(kMatrixProduct, {x, w}, 24);
  const StorageId wide = t.made(of_twelve(F::cast), {h}, 48);
  const StorageId tangent = t.made(of_twelve(F::tanh), {x}, 48);
  first.forward.end = second.forward.begin = t.here();
  const StorageId loss = t.made(kMatrixProduct, {h, x}, 4);
  second.forward.end = t.here();
  t.phase = Phase::backward;
  const StorageId g = t.made(of_twelve(F::fill), {loss}, 4);
  second.backward.begin = t.here();
  const StorageId dh = t.made(kMatrixProduct, {g, h, x}, 48);
  t.free(g), t.free(h), t.free(x);
  second.backward.end = first.backward.begin = t.here();
  const StorageId dw = t.made(of_twelve(F::mul), {dh, wide, tangent}, 48, Category::gradients);
  t.free(dh), t.free(wide), t.free(tangent);
  first.backward.end = t.here();
  t.free(dw), t.free(loss);
  t.trace.compiled_ranges = {first, second};
  EXPECT_EQ(whole(t), R"(
new 1: 48 weights
new 2: 48 inputs
host compiled_forward
host per_parameter_compiled_forward
new 3: 24 activations
host compiled_call
-- forward
mm 3x4x4 nn fp32: 2 48, 1 48 -> 3 24
host compiled_forward
host per_parameter_compiled_forward
new 4: 4 activations
host compiled_call
mm 3x4x4 nn fp32: 3 24, 2 48 -> 4 4
new 5: 4 activations
-- backward
fill 1x12 fp32: 4 4 -> 5 4
host compiled_backward
new 6: 48 activations
host compiled_call
mm 3x4x4 nn fp32: 5 4, 3 24, 2 48 -> 6 48
free 5
host per_parameter_compiled_backward
host compiled_backward
new 7: 48 gradients
host generated_kernel
triton_poi_fused__to_copy_mul_tanh 1x12 fp32, 3 in, 1 out x32: 6 48, 3 24, 2 48 -> 7 48
free 6
free 3
free 2
host per_parameter_compiled_backward
free 7
free 4
)");
}

// The script gives an input up between the passes; the backward graph, which makes a tangent of it again, saves it.
TEST(PartMemory, AnInputThatTheBackwardGraphReadsIsSaved) {
  TraceSketch t;
  CompiledRange part;
  part.parameters = 1;
  const StorageId x = t.allocate(48, Category::inputs);
  t.phase = Phase::forward;
  part.forward.begin = t.here();
  const StorageId tangent = t.made(of_twelve(F::tanh), {x}, 48), loss = t.made(kMatrixProduct, {tangent, tangent}, 4);
  part.forward.end = t.here();
  t.free(x);
  t.phase = Phase::backward;
  part.backward.begin = t.here();
  const StorageId dx = t.made(of_twelve(F::tanh_backward), {loss, tangent}, 48);
  t.free(tangent);
  part.backward.end = t.here();
  t.free(dx), t.free(loss);
  t.trace.compiled_ranges = {part};
  EXPECT_EQ(whole(t), R"(
new 1: 48 inputs
host compiled_forward
host per_parameter_compiled_forward
new 2: 48 temporaries
host generated_kernel
-- forward
triton_poi_fused_tanh 1x12 fp32, 1 in, 1 out x30: 1 48 -> 2 48
new 3: 4 activations
host compiled_call
mm 3x4x4 nn fp32: 2 48, 2 48 -> 3 4
free 2
host compiled_backward
new 4: 48 activations
host generated_kernel
-- backward
triton_poi_fused_tanh_tanh_backward 1x12 fp32, 2 in, 1 out x31: 3 4, 1 48 -> 4 48
free 1
host per_parameter_compiled_backward
free 4
free 3
)");
}

// The gradient of a residual stream: part 2 makes it, part 1 adds to it where it lies, part 0 reads it last.
TEST(PartMemory, ASumThatPartsHandOnStaysWhereItLies) {
  TraceSketch t;
  std::vector<CompiledRange> parts(3);
  const StorageId x = t.allocate(48, Category::inputs);
  t.phase = Phase::forward;
  std::vector<StorageId> kept;
  for (CompiledRange& part : parts) {
    part.parameters = 1;
    part.forward.begin = t.here();
    kept.push_back(t.made(kMatrixProduct, {x, x}, 48));
    part.forward.end = t.here();
  }
  t.phase = Phase::backward;
  parts[2].backward.begin = t.here();
  const StorageId stream = t.made(kMatrixProduct, {kept[2], x}, 48, Category::temporaries);
  t.free(kept[2]);
  parts[2].backward.end = parts[1].backward.begin = t.here();
  t.host(HostClass::fan_in_add);
  t.op(of_twelve(F::add_in_place), {stream, kept[1]}, {stream});
  t.free(kept[1]);
  parts[1].backward.end = parts[0].backward.begin = t.here();
  const StorageId dw = t.made(kMatrixProduct, {stream, kept[0]}, 48, Category::gradients);
  t.free(stream), t.free(kept[0]);
  parts[0].backward.end = t.here();
  t.free(dw);
  t.trace.compiled_ranges = parts;
  EXPECT_EQ(whole(t), R"(
new 1: 48 inputs
host compiled_forward
host per_parameter_compiled_forward
new 2: 48 activations
host compiled_call
-- forward
mm 3x4x4 nn fp32: 1 48, 1 48 -> 2 48
host compiled_forward
host per_parameter_compiled_forward
new 3: 48 activations
host compiled_call
mm 3x4x4 nn fp32: 1 48, 1 48 -> 3 48
host compiled_forward
host per_parameter_compiled_forward
new 4: 48 activations
host compiled_call
mm 3x4x4 nn fp32: 1 48, 1 48 -> 4 48
host compiled_backward
new 5: 48 temporaries
host compiled_call
-- backward
mm 3x4x4 nn fp32: 4 48, 1 48 -> 5 48
free 4
host per_parameter_compiled_backward
host compiled_backward
host generated_kernel
triton_poi_fused_add 1x12 fp32, 2 in, 1 out x1: 5 48, 3 48 -> 5 48
free 3
host per_parameter_compiled_backward
host compiled_backward
new 6: 48 gradients
host compiled_call
mm 3x4x4 nn fp32: 5 48, 2 48 -> 6 48
free 5
free 2
host per_parameter_compiled_backward
free 6
)");
}

// Two micro-batches of a whole graph in two steps: equal operations share one entry, storages are numbered as they
// come, steps and the repeated range stand where their records are.
TEST(PartMemory, StepsAndRepeatedRangesMoveWithTheirRecords) {
  TraceSketch t;
  const StorageId w = t.allocate(48, Category::weights);
  for (int step = 0; step < 2; ++step) {
    t.trace.steps.push_back({t.here(), 0});
    t.host(HostClass::python_fixed);
    CompiledRange range;
    t.phase = Phase::forward;
    range.forward.begin = t.here();
    const StorageId y = t.made(of_twelve(F::tanh), {w}, 48), loss = t.made(kMatrixProduct, {y, w}, 4);
    range.forward.end = t.here();
    if (step == 1) t.trace.repeats.push_back({{t.here(), 0}, 3});
    const StorageId g = t.made(of_twelve(F::fill), {}, 4);
    if (step == 1) t.trace.repeats.back().records.end = t.here();
    t.phase = Phase::backward;
    range.backward.begin = t.here();
    const StorageId dw = t.made(of_twelve(F::tanh_backward), {g, y}, 48, Category::gradients);
    t.free(y), t.free(g);
    range.backward.end = t.here();
    t.free(dw), t.free(loss);
    t.trace.steps.back().end = t.here();
    t.trace.compiled_ranges.push_back(range);
  }
  const OpTrace trace = compile_trace(t.trace, 4);
  testing_support::RecordListing listing(trace);
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_EQ("\n" + listing.lines(trace.steps[0].begin, trace.steps[0].end), R"(
host python_fixed
host compiled_forward
host per_parameter_compiled_forward
new 1: 48 temporaries
host generated_kernel
-- forward
triton_poi_fused_tanh 1x12 fp32, 1 in, 1 out x30: 2 48 -> 1 48
new 3: 4 activations
host compiled_call
mm 3x4x4 nn fp32: 1 48, 2 48 -> 3 4
free 1
new 4: 4 activations
fill 1x12 fp32: -> 4 4
host compiled_backward
new 5: 48 gradients
host generated_kernel
-- backward
triton_poi_fused_tanh_tanh_backward 1x12 fp32, 2 in, 1 out x31: 4 4, 2 48 -> 5 48
free 4
host per_parameter_compiled_backward
free 5
free 3
)");
  testing_support::RecordListing second(trace);
  EXPECT_EQ(trace.steps[0].end, trace.steps[1].begin);
  EXPECT_EQ(trace.steps[1].end, trace.records.size());
  ASSERT_EQ(trace.repeats.size(), 1u);
  EXPECT_EQ("\n" + second.lines(trace.repeats[0].records.begin, trace.repeats[0].records.end), R"(
new 1: 4 activations
-- forward
fill 1x12 fp32: -> 1 4
)");
  EXPECT_EQ(trace.repeats[0].times, 3);
  EXPECT_EQ(trace.ops.size(), 6u);  // the product, the fill, two kernels and what was before: tanh and its gradient
  StorageId next = 0;
  for (const Record& record : trace.records)
    if (record.kind == Record::Kind::allocate) {
      EXPECT_EQ(record.index, next++);
    }
}

}  // namespace
}  // namespace ridgeline::compile
