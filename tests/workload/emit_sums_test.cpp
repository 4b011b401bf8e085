// Sums over rows in generated code: cut into stretches as the GPU's size asks for, or left by each block.
#include <gtest/gtest.h>

#include "sim/workload/compile/emit.h"
#include "tests/support/graph_sketch.h"
#include "tests/support/record_listing.h"

namespace ridgeline::compile {
namespace {

using Kind = Node::Kind;

/// The records of a graph's forward pass behind those that enter it.
std::string emitted(GraphSketch& s, int sms) {
  OpTrace trace;
  for (const Value& value : s.graph.values) trace.storages.push_back({value.bytes});
  trace.ops.resize(1, Memset{});
  const std::vector<Group> groups = fuse(s.graph);
  std::vector<Record> records;
  Emitter(trace, records, s.graph, groups, sms).forward(1, false);
  trace.records = records;
  testing_support::RecordListing listing(trace);
  for (ValueId v = 0; v < s.graph.values.size(); ++v)
    if (s.graph.values[v].storage != kNone)
      listing.call(s.graph.values[v].storage, fmt::format("x{}", s.graph.values[v].storage));
  return "\n" + listing.lines(1);
}

/// Two sums over the rows of x and y.
std::string two_sums(std::int64_t rows, std::int64_t cols, int sms) {
  GraphSketch s;
  const ValueId x = s.given(rows * cols * 4), y = s.given(rows * cols * 2);
  s.leaves(s.node(Kind::columns, "sum", {rows, cols}, {x, y}));
  s.last().arithmetic = 3;
  s.leaves(s.node(Kind::columns, "mean", {rows, cols}, {x}, DType::bf16));
  return emitted(s, sms);
}

// 1024 sums for each of 4 SMs, 100 columns: up to 40 stretches, of 128 rows or more each.
TEST(EmitSums, LongColumnsAreCutIntoStretchesAndSummedAgain) {
  EXPECT_EQ(two_sums(300, 100, 4), R"(
new x2: 400 activations
new x3: 200 activations
host generated_kernel
new 1: 1200 temporaries
new 2: 1200 temporaries
-- forward
triton_red_fused_mean_sum 300x100 fp32, 2 in, 2 out x4 sums 2: x0 120000, x1 60000 -> 1 1200, 2 1200
host generated_kernel
triton_red_fused_mean_sum 3x100 fp32, 1 in, 1 out x1 sums 1: 1 1200 -> x2 400
host generated_kernel
triton_red_fused_mean_sum 3x100 fp32, 1 in, 1 out x1 sums 1: 2 1200 -> x3 200
free 1
free 2
)");
  EXPECT_EQ(two_sums(128, 100, 4), R"(
new x2: 400 activations
new x3: 200 activations
host generated_kernel
-- forward
triton_red_fused_mean_sum 128x100 fp32, 2 in, 2 out x4 sums 2: x0 51200, x1 25600 -> x2 400, x3 200
)");
}

/// Stretches that a sum is cut into: rows of the kernel that adds them up.
std::int64_t stretches(std::int64_t rows, std::int64_t cols, int sms) {
  GraphSketch s;
  s.leaves(s.node(Kind::columns, "sum", {rows, cols}, {s.given(rows * cols * 4)}));
  OpTrace trace;
  trace.storages.resize(s.graph.values.size());
  const std::vector<Group> groups = fuse(s.graph);
  std::vector<Record> records;
  Emitter(trace, records, s.graph, groups, sms).forward(1, false);
  if (trace.calls.size() == 1) return 1;
  EXPECT_EQ(trace.calls.size(), 2u);
  return std::get<FusedKernel>(trace.ops[trace.calls[1].op]).rows;
}
TEST(EmitSums, StretchesAreAsManyAsRowsOrMultiprocessorsAllow) {
  // By rows: 128 each.
  for (const auto& [rows, count] : {std::pair(1, 1), {128, 1}, {129, 2}, {256, 2}, {257, 3}, {1280, 10}})
    EXPECT_EQ(stretches(rows, 100, 132), count) << rows;
  // By multiprocessors: 1024 sums each, over the columns, rounded down; one at least.
  for (const auto& [cols, count] :
       {std::pair(1024, 3), {1025, 2}, {1536, 2}, {1537, 1}, {3072, 1}, {3073, 1}, {99999, 1}})
    EXPECT_EQ(stretches(100000, cols, 3), count) << cols;
  EXPECT_EQ(stretches(100000, 1, 1), 782);
  EXPECT_EQ(stretches(1000000, 1, 1), 1024);
}

/// A row's kernel that sums two columns as well, by blocks.
std::string block_sums_of(std::int64_t rows, std::int64_t cols) {
  GraphSketch s;
  const ValueId x = s.given(rows * cols * 4);
  s.leaves(s.node(Kind::rows, "norm_backward", {rows, cols}, {x}));
  s.graph.nodes[0].outputs[0].bytes = s.graph.values[s.graph.nodes[0].outputs[0].value].bytes = rows * cols * 4;
  s.leaves(s.output(cols * 4));
  s.leaves(s.output(cols * 2));
  s.last().by_block = true;
  s.last().column_results = 2;
  s.last().arithmetic = 4;
  return emitted(s, 4);
}

// A block for 16 rows, from 1 to 1024 of them; each leaves a row of every sum in a workspace.
TEST(EmitSums, BlocksLeaveTheirSumsInAWorkspace) {
  EXPECT_EQ(block_sums_of(100, 8), R"(
new x1: 3200 activations
new x2: 32 activations
new x3: 16 activations
new 1: 384 temporaries
host generated_kernel
-- forward
triton_per_fused_norm_backward 100x8 fp32, 1 in, 2 out x4 sums 2: x0 3200 -> x1 3200, 1 384
host compiled_call
sum 6x8 fp32: 1 192 -> x2 32
host compiled_call
sum 6x8 fp32: 1 192 -> x3 16
free 1
)");
  for (const auto& [rows, blocks] : {std::pair(15, 1), {16, 1}, {31, 1}, {32, 2}, {16384, 1024}, {16400, 1024}})
    EXPECT_NE(block_sums_of(rows, 8).find(fmt::format("new 1: {} temporaries\n", blocks * 8 * 4 * 2)),
              std::string::npos)
        << rows;
}

}  // namespace
}  // namespace ridgeline::compile
