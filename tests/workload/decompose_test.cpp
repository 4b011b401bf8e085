// Operations of every kind as nodes of a graph: what they read and write is read and written, over spaces as large as
// these are, and each node belongs where its operation does.
#include "sim/workload/compile/decompose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/workload/op_operands.h"
#include "tests/support/draws.h"
#include "tests/support/operand_sizes.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline::compile {
namespace {

using Kind = Node::Kind;
constexpr std::int64_t kAnyBytes = 1 << 20;  ///< of operands whose size the operation does not say
constexpr std::int16_t kLayer = 5;
constexpr std::uint16_t kModule = 3;

struct Taken {
  OpTrace trace;
  Graph graph;
  std::vector<Use> inputs, outputs;
  std::vector<bool> sized;  ///< of inputs and outputs, whether the operation says how large they are

  void add(const Op& op, bool backward) {
    const OperandCounts counts = operand_counts(op);
    const auto sizes = testing_support::whole_operands(op).bytes;
    inputs.clear(), outputs.clear(), sized.clear();
    for (int i = 0; i < counts.inputs + counts.outputs; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool known = at < sizes.size() && sizes[at].has_value();
      graph.values.push_back({.bytes = known ? *sizes[at] : kAnyBytes});
      sized.push_back(known);
      (i < counts.inputs ? inputs : outputs)
          .push_back({static_cast<ValueId>(graph.values.size() - 1), graph.values.back().bytes});
    }
    again(op, backward);
  }
  /// With the operands that are there.
  void again(const Op& op, bool backward) {
    trace.ops.push_back(op);
    Call call;
    call.op = static_cast<std::uint32_t>(trace.ops.size() - 1);
    call.phase = backward ? Phase::backward : Phase::forward;
    call.layer = kLayer;
    call.module = kModule;
    Decomposer(trace, graph).add(call, inputs, outputs, backward, false);
  }
};

bool has(const std::vector<Use>& uses, ValueId value) {
  return std::ranges::any_of(uses, [&](const Use& use) { return use.value == value; });
}

bool is_taken(const Op& op) {
  const auto* copy = std::get_if<Copy>(&op);
  return !std::holds_alternative<MultiTensor>(op) && !(copy && leaves_device(copy->kind));
}

template <typename Check>
void for_every_op(int each, Check check) {
  const std::uint64_t seed = testing_support::changing_seed();
  for (const auto& one : testing::RandomKernelCases(seed).of_every_op(each)) {
    if (!is_taken(one.kernel.op)) continue;
    SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed << ", " << one.text);
    for (const bool backward : {false, true}) {
      Taken taken;
      taken.add(one.kernel.op, backward);
      check(taken, one.kernel.op, backward);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Decompose, EveryOperandIsReadAndEveryResultMade) {
  for_every_op(12, [](const Taken& taken, const Op&, bool) {
    for (const Use& input : taken.inputs)
      EXPECT_TRUE(
          std::ranges::any_of(taken.graph.nodes, [&](const Node& node) { return has(node.inputs, input.value); }))
          << "input " << input.value;
    for (const Use& output : taken.outputs) {
      const Value& value = taken.graph.values[output.value];
      if (value.producer == kNone) EXPECT_NE(value.in_place_of, kNone) << "output " << output.value;
      else EXPECT_TRUE(has(taken.graph.nodes[value.producer].outputs, output.value));
    }
  });
}

TEST(Decompose, WhatIsReadWasMadeBefore) {
  for_every_op(6, [](const Taken& taken, const Op&, bool) {
    for (NodeId id = 0; id < taken.graph.nodes.size(); ++id)
      for (const Use& use : taken.graph.nodes[id].inputs) {
        const Value& value = taken.graph.values[use.value];
        const bool given = has(taken.inputs, use.value);
        EXPECT_TRUE(given || (value.producer != kNone && value.producer < id)) << use.value;
        EXPECT_GT(use.bytes, 0);
        EXPECT_LE(use.bytes, value.bytes);
      }
  });
}

TEST(Decompose, NodesBelongWhereTheirOperationDoes) {
  for_every_op(4, [](const Taken& taken, const Op&, bool backward) {
    for (const Node& node : taken.graph.nodes) {
      EXPECT_EQ(node.layer, kLayer);
      EXPECT_EQ(node.module, kModule);
      EXPECT_EQ(node.backward, backward);
      EXPECT_EQ(node.phase, backward ? Phase::backward : Phase::forward);
      EXPECT_FALSE(node.after);
      EXPECT_FALSE(node.name.empty());
      EXPECT_TRUE(node.kind == Kind::library ? node.op != kNone : node.arithmetic > 0 && node.operations > 0);
    }
    for (std::size_t v = taken.inputs.size() + taken.outputs.size(); v < taken.graph.values.size(); ++v) {
      EXPECT_EQ(taken.graph.values[v].layer, kLayer);
      EXPECT_EQ(taken.graph.values[v].module, kModule);
      EXPECT_EQ(taken.graph.values[v].category, backward ? Category::temporaries : Category::activations);
    }
  });
}

/// A point-wise node writes an element of its space with 1 to 8 bytes; one of rows an element a row or one an element;
/// one of columns at most a column's sums each.
TEST(Decompose, SpacesAreAsLargeAsWhatIsWritten) {
  for_every_op(12, [](const Taken& taken, const Op& op, bool) {
    const auto* lookup = std::get_if<Embedding>(&op);
    if (lookup != nullptr && lookup->backward) return;  // of the table's rows some are written
    const auto is_element = [](std::int64_t bytes, std::int64_t count) {
      return count > 0 && bytes % count == 0 && std::set<std::int64_t>{1, 2, 4, 8}.contains(bytes / count);
    };
    for (const Node& node : taken.graph.nodes) {
      if (node.kind == Kind::library) continue;
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const Use& use = node.outputs[i];
        const bool of_operation = use.value < taken.inputs.size() + taken.outputs.size();
        if (of_operation && !taken.sized[use.value]) continue;
        const bool whole = is_element(use.bytes, node.elements()), of_row = is_element(use.bytes, node.rows),
                   of_column = is_element(use.bytes, node.cols), one = use.bytes <= 8;
        switch (node.kind) {
          case Kind::pointwise: EXPECT_TRUE(whole) << use.bytes << " of " << node.rows << 'x' << node.cols; break;
          case Kind::rows:
          case Kind::long_rows: EXPECT_TRUE(whole || of_row || (node.by_block && of_column)); break;
          case Kind::columns: EXPECT_TRUE(of_column || one) << use.bytes << " of " << node.rows << 'x' << node.cols;
          default: break;
        }
      }
    }
  });
}

/// The backward pass of a norm reads what its forward pass kept: the deviation of each row, and the normalised rows in
/// fp32 or, where it is half as large, the input.
TEST(Decompose, TheBackwardPassOfANormReadsWhatTheForwardPassKept) {
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16})
    for (const std::int64_t cols : {8, 1024, 1025, 4096}) {
      constexpr std::int64_t kRows = 48;
      Taken taken;
      taken.add(Norm{false, false, true, type, kRows, cols}, false);
      const std::size_t first_kept = taken.inputs.size() + taken.outputs.size();
      const ValueId x = taken.inputs[0].value, weight = taken.inputs[1].value, mean = taken.outputs[1].value,
                    deviation = taken.outputs[2].value;
      std::vector<std::int64_t> kept;
      for (std::size_t v = first_kept; v < taken.graph.values.size(); ++v) {
        EXPECT_TRUE(taken.graph.values[v].kept);
        kept.push_back(taken.graph.values[v].bytes);
      }
      std::ranges::sort(kept);
      const bool is_wide = type == DType::fp32;
      EXPECT_EQ(kept, is_wide ? (std::vector<std::int64_t>{4 * kRows, 4 * kRows * cols})
                              : (std::vector<std::int64_t>{4 * kRows}));
      const std::size_t nodes = taken.graph.nodes.size();
      const std::int64_t rows_bytes = kRows * cols * bytes_of(type), cols_bytes = cols * bytes_of(type);
      const auto value = [&](std::int64_t bytes) {
        taken.graph.values.push_back({.bytes = bytes});
        return Use{static_cast<ValueId>(taken.graph.values.size() - 1), bytes};
      };
      const auto known = [&](ValueId id) { return Use{id, taken.graph.values[id].bytes}; };
      taken.inputs = {value(rows_bytes), known(x), known(weight), known(mean), known(deviation)};
      taken.outputs = {value(rows_bytes), value(cols_bytes), value(cols_bytes)};
      taken.again(Norm{false, true, true, type, kRows, cols}, true);
      std::set<ValueId> read;
      for (std::size_t i = nodes; i < taken.graph.nodes.size(); ++i)
        for (const Use& use : taken.graph.nodes[i].inputs) read.insert(use.value);
      std::set<ValueId> expected{taken.inputs[0].value, weight};
      for (std::size_t v = first_kept; v < first_kept + kept.size(); ++v) expected.insert(static_cast<ValueId>(v));
      if (!is_wide) expected.insert(x);
      EXPECT_EQ(read, expected) << static_cast<int>(type) << ' ' << cols;
    }
}

TEST(Decompose, ANormByTheRootMeanSquareKeepsItsInputAndOneNumberARow) {
  for (const DType type : {DType::fp32, DType::bf16}) {
    constexpr std::int64_t kRows = 48, kCols = 64;
    Taken taken;
    taken.add(Norm{true, false, false, type, kRows, kCols}, false);
    const std::size_t kept = taken.inputs.size() + taken.outputs.size();
    ASSERT_EQ(taken.graph.values.size(), kept + 1);
    EXPECT_EQ(taken.graph.values[kept].bytes, 4 * kRows);
    EXPECT_EQ(taken.graph.values[taken.outputs[1].value].in_place_of, kept);
    const ValueId x = taken.inputs[0].value, weight = taken.inputs[1].value, deviation = taken.outputs[1].value;
    const std::size_t nodes = taken.graph.nodes.size();
    const std::int64_t rows_bytes = kRows * kCols * bytes_of(type);
    taken.graph.values.resize(kept + 4);
    const auto gradient = static_cast<ValueId>(kept + 1);
    taken.inputs = {{gradient, rows_bytes}, {x, rows_bytes}, {weight, kCols * bytes_of(type)}, {deviation, 4 * kRows}};
    taken.outputs = {{gradient + 1, rows_bytes}, {gradient + 2, kCols * bytes_of(type)}};
    taken.again(Norm{true, true, false, type, kRows, kCols}, true);
    std::set<ValueId> read;
    for (std::size_t i = nodes; i < taken.graph.nodes.size(); ++i)
      for (const Use& use : taken.graph.nodes[i].inputs) read.insert(use.value);
    EXPECT_EQ(read, (std::set<ValueId>{gradient, x, weight, static_cast<ValueId>(kept)}));
  }
}

/// Rows stay in registers up to 1024 elements.
TEST(Decompose, LongRowsAreWalkedInALoop) {
  for (const std::int64_t cols : {1, 1024, 1025, 50000})
    for (const Op& op : {Op{Norm{.rows = 64, .cols = cols}}, Op{Softmax{.rows = 64, .cols = cols}},
                         Op{Softmax{.backward = true, .rows = 64, .cols = cols}}}) {
      Taken taken;
      taken.add(op, false);
      EXPECT_EQ(taken.graph.nodes.front().kind, cols <= 1024 ? Kind::rows : Kind::long_rows) << name_of(op) << cols;
    }
}

TEST(Decompose, SumsOfFewRowsAreWrittenOut) {
  for (const std::int64_t rows : {1, 7, 8, 500}) {
    Taken taken;
    taken.add(Reduction{ReductionKind::sum_rows, DType::fp32, rows, 96}, true);
    const Node& node = taken.graph.nodes.front();
    EXPECT_EQ(node.kind, rows < 8 ? Kind::pointwise : Kind::columns) << rows;
    EXPECT_EQ(node.cols, 96);
    EXPECT_EQ(rows < 8 ? node.arithmetic : node.rows, rows);
  }
}

/// Padded sides are multiples of 16 bytes, what is copied has the padded sides, and the result has room for them.
TEST(Decompose, PaddedProductsReadPaddedOperands) {
  testing_support::Draws draws(7);
  int padded = 0;
  for (int turn = 0; turn < 300; ++turn) {
    Matmul op{.type = draws.index(2) == 0 ? DType::bf16 : DType::fp32, .batch = 1};
    op.m = 256 + static_cast<std::int64_t>(draws.index(4000));
    op.n = 256 + static_cast<std::int64_t>(draws.index(4000));
    op.k = 256 + static_cast<std::int64_t>(draws.index(4000));
    op.layout = std::array{Layout::nn, Layout::nt, Layout::tn}[draws.index(3)];
    op.bias = draws.index(2) == 0 && op.layout != Layout::tn;
    Taken taken;
    taken.add(op, false);
    const std::int64_t element = bytes_of(op.type);
    const auto& library = taken.graph.nodes.back();
    ASSERT_EQ(library.kind, Kind::library);
    const auto& run = std::get<Matmul>(taken.trace.ops[library.op]);
    if (run == op) {
      EXPECT_EQ(taken.graph.nodes.size(), 1u);
      continue;
    }
    ++padded;
    for (const auto& [side, before] : {std::pair(run.m, op.m), std::pair(run.n, op.n), std::pair(run.k, op.k)}) {
      EXPECT_TRUE(side == before || side * element % 16 == 0) << side;
      EXPECT_GE(side, before);
      EXPECT_LT((side - before) * element, 16);
    }
    EXPECT_EQ(library.rows, run.m);
    EXPECT_EQ(library.cols, run.n);
    const std::vector<std::int64_t> sides{run.m * run.k, run.k * run.n, run.n};
    for (std::size_t i = 0; i < library.inputs.size(); ++i) {
      const bool copied = library.inputs[i].value >= taken.inputs.size() + taken.outputs.size();
      if (copied) EXPECT_EQ(library.inputs[i].bytes, sides[i] * element) << i;
      else EXPECT_EQ(library.inputs[i].value, taken.inputs[i].value);
    }
    for (std::size_t i = 0; i + 1 < taken.graph.nodes.size(); ++i) {
      EXPECT_EQ(taken.graph.nodes[i].kind, Kind::pointwise);
      EXPECT_TRUE(taken.graph.nodes[i].alone);
    }
    // Rows of more than 1024 elements begin at multiples of 128 bytes.
    const std::int64_t row = run.n > 1024 ? (run.n * element + 127) / 128 * 128 : run.n * element;
    EXPECT_EQ(taken.graph.values[taken.outputs[0].value].bytes, run.m * row);
  }
  EXPECT_GT(padded, 30);
}

}  // namespace
}  // namespace ridgeline::compile
