// What each operation becomes under torch.compile: all nodes with their spaces, instructions and operands.
#include <gtest/gtest.h>

#include "sim/workload/compile/decompose.h"
#include "tests/support/graph_listing.h"

namespace ridgeline::compile {
namespace {

/// Values by number: those from outside first.
class DecomposeSession {
 public:
  Use given(std::int64_t bytes) {
    graph.values.push_back({.bytes = bytes});
    return {static_cast<ValueId>(graph.values.size() - 1), bytes};
  }
  /// What the operation adds to the graph.
  std::string add(const Op& op, std::vector<Use> in, std::vector<Use> out, bool backward = false, bool after = false) {
    trace.ops.push_back(op);
    Call call;
    call.op = static_cast<std::uint32_t>(trace.ops.size() - 1);
    call.phase = backward ? Phase::backward : Phase::forward;
    const std::size_t nodes = graph.nodes.size(), values = graph.values.size();
    decomposer.returns_scores = returns_scores;
    decomposer.add(call, std::move(in), std::move(out), backward, after);
    return "\n" + nodes_of(graph, trace.ops, nodes) + values_of(graph, values);
  }
  OpTrace trace;
  Graph graph;
  Decomposer decomposer{trace, graph};
  bool returns_scores = false;
};

/// An operation on operands of these sizes alone.
std::string decomposed(const Op& op, const std::vector<std::int64_t>& in, const std::vector<std::int64_t>& out,
                       bool backward = false) {
  DecomposeSession session;
  std::vector<Use> inputs, outputs;
  for (const std::int64_t bytes : in) inputs.push_back(session.given(bytes));
  for (const std::int64_t bytes : out) outputs.push_back(session.given(bytes));
  return session.add(op, inputs, outputs, backward);
}

// aten's name of each, and instructions an element: 1, but 42 for an error function, 30 for a hyperbolic tangent, 12
// for an exponential and as many more for a derivative with one.
TEST(DecomposeListing, PointwiseFunctionsHaveANameAndACost) {
  using F = PointwiseFunction;
  struct Expected {
    F function;
    const char* name;
    int cost;
  };
  for (const Expected& one : {Expected{F::add, "add", 1},
                              {F::add_in_place, "add", 1},
                              {F::mul, "mul", 1},
                              {F::scale, "mul", 1},
                              {F::gelu, "gelu", 42},
                              {F::gelu_tanh, "gelu", 30},
                              {F::gelu_backward, "gelu_backward", 54},
                              {F::gelu_tanh_backward, "gelu_backward", 42},
                              {F::silu, "silu", 12},
                              {F::silu_backward, "silu_backward", 12},
                              {F::relu, "relu", 1},
                              {F::relu_backward, "threshold_backward", 1},
                              {F::tanh, "tanh", 30},
                              {F::tanh_backward, "tanh_backward", 1},
                              {F::pow2, "pow", 1},
                              {F::square_root, "rsqrt", 1},
                              {F::reciprocal, "div", 1},
                              {F::divide, "div", 1},
                              {F::equal, "eq", 1},
                              {F::masked_fill, "where", 1},
                              {F::fill, "full", 1},
                              {F::arange, "arange", 1},
                              {F::dropout_backward, "native_dropout_backward", 1},
                              {F::clamp, "clamp", 1},
                              {F::power, "pow", 1},
                              {F::index, "index", 1},
                              {F::gather, "gather", 1},
                              {F::roll, "roll", 1},
                              {F::other, "mul", 1}}) {
    const Pointwise op{.function = one.function, .rows = 3, .cols = 5, .output = DType::bf16};
    EXPECT_EQ(decomposed(op, {60}, {30}),
              fmt::format("\npointwise {} 3x5 bf16 x{}: 0:60 -> 1:30\n", one.name, one.cost));
  }
  const auto special = [](F function) {
    return decomposed(Pointwise{.function = function, .rows = 3, .cols = 5, .output = DType::fp32}, {60}, {60});
  };
  EXPECT_EQ(special(F::cast), "\ncasting pointwise _to_copy 3x5 fp32 x1: 0:60 -> 1:60\n");
  EXPECT_EQ(special(F::rope), "\npointwise cos 3x5 fp32 x40/1: 0:60 -> 1:60\n");  // computed by whoever needs it
  EXPECT_EQ(special(F::complex_mul), "\nlibrary mul 1x1 fp32 [complex_mul 3x5 fp32]: 0:60 -> 1:60\n");
}

// Statistics of rows and a point-wise part. In fp32 the normalised rows are kept, of 16 bits the input is read again.
TEST(DecomposeListing, ANormIsStatisticsAndAPointwisePart) {
  EXPECT_EQ(decomposed(Norm{.type = DType::fp32, .rows = 6, .cols = 10}, {240, 40, 40}, {240, 24, 24}), R"(
rows native_layer_norm 6x10 fp32 x1: 0:240 -> 6:240 7:24
pointwise native_layer_norm 6x10 fp32 x2: 6:240 7:24 1:40 2:40 -> 3:240
6: 240 kept by 0
7: 24 kept by 0
)");
  EXPECT_EQ(decomposed(Norm{.type = DType::bf16, .rows = 6, .cols = 10}, {120, 20, 20}, {120, 24, 24}), R"(
rows native_layer_norm 6x10 fp32 x1: 0:120 -> 6:24
pointwise native_layer_norm 6x10 bf16 x2: 6:24 0:120 1:20 2:20 -> 3:120
6: 24 kept by 0
)");
  EXPECT_EQ(
      decomposed(Norm{.rms = true, .bias = false, .type = DType::fp32, .rows = 6, .cols = 10}, {240, 40}, {240, 24}),
      R"(
rows _fused_rms_norm 6x10 fp32 x1: 0:240 -> 4:24
pointwise _fused_rms_norm 6x10 fp32 x2: 4:24 0:240 1:40 -> 2:240
4: 24 kept by 0
)");
}

// The gradient of the input a row at a time, the sums for the weights over rows; both read what the forward pass kept.
TEST(DecomposeListing, TheGradientOfANormReadsWhatWasKept) {
  const auto both = [](DType type, bool rms) {
    DecomposeSession session;
    const std::int64_t whole = 60 * bytes_of(type), column = 10 * bytes_of(type);
    std::vector<Use> in{session.given(whole), session.given(column)}, out{session.given(whole)};
    if (!rms) in.push_back(session.given(column)), out.push_back(session.given(24));
    out.push_back(session.given(24));
    session.add(Norm{.rms = rms, .bias = !rms, .type = type, .rows = 6, .cols = 10}, in, out);
    std::vector<Use> read{session.given(whole), in[0], in[1]}, made{session.given(whole), session.given(column)};
    read.insert(read.end(), out.begin() + 1, out.end());
    if (!rms) made.push_back(session.given(column));
    return session.add(Norm{.rms = rms, .backward = true, .bias = !rms, .type = type, .rows = 6, .cols = 10}, read,
                       made, true);
  };
  EXPECT_EQ(both(DType::fp32, false), R"(
backward rows native_layer_norm_backward 6x10 fp32 x4: 8:240 6:240 7:24 1:40 -> 9:240
backward columns native_layer_norm_backward 6x10 fp32 x1 sums 2: 8:240 6:240 7:24 -> 10:40 11:40
)");
  EXPECT_EQ(both(DType::bf16, false), R"(
backward rows native_layer_norm_backward 6x10 bf16 x4: 7:120 0:120 6:24 1:20 -> 8:120
backward columns native_layer_norm_backward 6x10 fp32 x1 sums 2: 7:120 0:120 6:24 -> 9:20 10:20
)");
  EXPECT_EQ(both(DType::bf16, true), R"(
backward rows _fused_rms_norm_backward 6x10 bf16 x4: 5:120 0:120 4:24 1:20 -> 6:120
backward columns _fused_rms_norm_backward 6x10 fp32 x1 sums 1: 5:120 0:120 4:24 -> 7:20
)");
  // Without a forward pass in the graph all operands are read; the sums are no wider than fp32.
  EXPECT_EQ(decomposed(Norm{.backward = true, .type = DType::fp32, .rows = 6, .cols = 10}, {240, 240, 40, 24, 24},
                       {240, 41, 40}, true),
            R"(
backward rows native_layer_norm_backward 6x10 fp32 x4: 0:240 1:240 2:40 3:24 4:24 2:40 -> 5:240
backward columns native_layer_norm_backward 6x10 fp32 x1 sums 2: 0:240 1:240 2:40 3:24 4:24 -> 6:40 7:40
)");
}

// From 5 Mi elements on, with at least twice as many rows as columns, and rows that fit in registers.
TEST(DecomposeListing, LargeNormsSumTheirWeightGradientsInTheKernelOfTheInputs) {
  const auto whether = [](std::int64_t rows, std::int64_t cols) {
    const std::string text =
        decomposed(Norm{.backward = true, .type = DType::bf16, .rows = rows, .cols = cols}, {9, 9, 9, 9, 9}, {9, 9, 9});
    EXPECT_EQ(text.find("by block") != text.npos, text.find("columns") == text.npos);
    return text.find("by block") != text.npos;
  };
  EXPECT_TRUE(whether(5120, 1024));  // 5 Mi
  EXPECT_FALSE(whether(5119, 1024));
  EXPECT_FALSE(whether(1 << 20, 1025));
  EXPECT_TRUE(whether(5242880, 1));
  EXPECT_FALSE(whether(5242879, 1));
  EXPECT_EQ(decomposed(Norm{.backward = true, .type = DType::bf16, .rows = 5120, .cols = 1024}, {10, 20, 30, 40, 50},
                       {60, 70, 80}, true),
            R"(
backward by block rows native_layer_norm_backward 5120x1024 bf16 x4 sums 2: 0:10 1:20 2:30 3:40 4:50 2:30 -> 5:60 6:70 7:80
)");
}

TEST(DecomposeListing, SoftmaxIsStatisticsAndAPointwisePart) {
  const DType in = DType::bf16, out = DType::fp32;
  EXPECT_EQ(decomposed(Softmax{.input = in, .output = out, .rows = 6, .cols = 10}, {120}, {240}), R"(
rows _softmax 6x10 bf16 x12: 0:120 -> 2:48
pointwise _softmax 6x10 fp32 x12: 0:120 2:48 -> 1:240
2: 48 kept by 0
)");
  EXPECT_EQ(decomposed(Softmax{.log = true, .input = in, .output = out, .rows = 6, .cols = 1025}, {120}, {240}),
            R"(
long rows _log_softmax 6x1025 bf16 x36: 0:120 -> 2:48
pointwise _log_softmax 6x1025 fp32 x12: 0:120 2:48 -> 1:240
2: 48 kept by 0
)");
  EXPECT_EQ(
      decomposed(Softmax{.backward = true, .input = out, .output = in, .rows = 6, .cols = 10}, {240, 240}, {120}, true),
      R"(
backward rows _softmax_backward_data 6x10 bf16 x3: 0:240 1:240 -> 2:120
)");
  EXPECT_EQ(decomposed(Softmax{.log = true, .backward = true, .input = out, .output = in, .rows = 6, .cols = 1025},
                       {240, 240}, {120}, true),
            R"(
backward long rows _log_softmax_backward_data 6x1025 bf16 x12: 0:240 1:240 -> 2:120
)");
}

// A gather reads as much of the table as it writes; its gradient scatters into zeros.
TEST(DecomposeListing, AnEmbeddingGathersAndScatters) {
  const Embedding op{.type = DType::bf16, .tokens = 6, .vocabulary = 50, .hidden = 10};
  EXPECT_EQ(decomposed(op, {1000, 48}, {120}), R"(
real pointwise embedding 6x10 bf16 x4: 0:120 1:48 -> 2:120
)");
  Embedding back = op;
  back.backward = true;
  EXPECT_EQ(decomposed(back, {120, 48}, {1000}, true), R"(
backward pointwise embedding_dense_backward 50x10 bf16 x1: -> 3:1000
backward pointwise embedding_dense_backward 6x10 bf16 x4: 0:120 1:48 3:120 -> 2:120
3: 1000 kept by 0
)");
  back.tokens = 60;  // more than rows
  EXPECT_EQ(decomposed(back, {1200, 480}, {1000}, true), R"(
backward pointwise embedding_dense_backward 50x10 bf16 x1: -> 3:1000
backward pointwise embedding_dense_backward 60x10 bf16 x4: 0:1200 1:480 3:1000 -> 2:1000
3: 1000 kept by 0
)");
}

TEST(DecomposeListing, DropoutDrawsAMaskOfItsOwnAndKeepsWhatSoftmaxMade) {
  EXPECT_EQ(decomposed(Dropout{.type = DType::bf16, .elements = 60}, {120}, {120, 60}), R"(
pointwise native_dropout 1x60 bf16 x150: -> 2:60
pointwise native_dropout 1x60 bf16 x1: 0:120 2:60 -> 1:120
)");
  for (const bool behind_softmax : {false, true}) {
    DecomposeSession session;
    const Use x = session.given(240), y = session.given(240), z = session.given(240), mask = session.given(60);
    if (behind_softmax) session.add(Softmax{.rows = 6, .cols = 10}, {x}, {y});
    else session.add(Pointwise{.function = PointwiseFunction::tanh, .rows = 6, .cols = 10}, {x}, {y});
    session.add(Dropout{.type = DType::fp32, .elements = 60}, {y}, {z, mask});
    EXPECT_EQ(session.graph.values[y.value].kept, behind_softmax);
    EXPECT_TRUE(session.graph.values[mask.value].kept);
    EXPECT_FALSE(session.graph.values[z.value].kept);
  }
}

// Sums of fewer than eight rows are written out; those over all elements are of one column.
TEST(DecomposeListing, SumsAreColumnsOrRows) {
  using K = ReductionKind;
  const auto sum = [](K kind, std::int64_t rows) {
    DecomposeSession session;
    const Use in = session.given(240), out = session.given(40);
    const std::string text = session.add(Reduction{kind, DType::fp32, rows, 10}, {in}, {out});
    EXPECT_EQ(session.graph.values[out.value].kept, text.find("pointwise") == text.npos);
    return text;
  };
  EXPECT_EQ(sum(K::sum_rows, 7), "\npointwise sum 1x10 fp32 x7: 0:240 -> 1:40\n");
  EXPECT_EQ(sum(K::sum_rows, 8), "\ncolumns sum 8x10 fp32 x1 sums 1: 0:240 -> 1:40\n");
  EXPECT_EQ(sum(K::sum_cols, 7), "\nrows sum 7x10 fp32 x1: 0:240 -> 1:40\n");
  EXPECT_EQ(sum(K::mean_cols, 8), "\nrows sum 8x10 fp32 x1: 0:240 -> 1:40\n");
  EXPECT_EQ(sum(K::sum_all, 6), "\ncolumns sum 60x1 fp32 x1 sums 1: 0:240 -> 1:40\n");
  EXPECT_EQ(sum(K::norm_all, 6), "\ncolumns sum 60x1 fp32 x1 sums 1: 0:240 -> 1:40\n");
}

// The loss reads a sector of 32 bytes a row at most, of the logarithms of all classes.
TEST(DecomposeListing, ALossReadsASectorARow) {
  const NllLoss op{.type = DType::fp32, .rows = 6, .classes = 50};
  EXPECT_EQ(decomposed(op, {1200, 48}, {4}), R"(
columns nll_loss_forward 6x1 fp32 x1 sums 1: 0:192 1:48 -> 2:4
)");
  EXPECT_EQ(decomposed(NllLoss{.type = DType::fp32, .rows = 6, .classes = 5}, {120, 48}, {4}), R"(
columns nll_loss_forward 6x1 fp32 x1 sums 1: 0:120 1:48 -> 2:4
)");
  EXPECT_EQ(decomposed(NllLoss{.backward = true, .type = DType::fp32, .rows = 6, .classes = 50}, {4, 48}, {1200}, true),
            R"(
backward pointwise nll_loss_backward 6x50 fp32 x3: 0:4 1:48 -> 2:1200
)");
}

TEST(DecomposeListing, CopiesAreKernelsUnlessTheHostHasAPart) {
  const auto copied = [](CopyKind kind, std::int64_t parts = 1, std::vector<std::int64_t> out = {120}) {
    return decomposed(Copy{kind, DType::bf16, 6, 10, parts}, {120}, out);
  };
  EXPECT_EQ(copied(CopyKind::contiguous), "\npointwise clone 6x10 bf16 x1: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::permute), "\npointwise clone 6x10 bf16 x1: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::transpose), "\ngathering pointwise clone 6x10 bf16 x1: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::concatenate, 3), "\npointwise cat 6x30 bf16 x1: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::concatenate_strided, 3), "\npointwise cat 6x30 bf16 x1: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::contiguous, 3), "\npointwise clone 6x10 bf16 x1: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::pageable_to_device),
            "\nlibrary clone 1x1 bf16 [copy_to_device 6x10 bf16]: 0:120 -> 1:120\n");
  EXPECT_EQ(copied(CopyKind::pageable_to_device, 1, {}), "\n");
  EXPECT_EQ(copied(CopyKind::host_to_device), "\n");
  EXPECT_EQ(copied(CopyKind::device_to_host), "\n");
}

TEST(DecomposeListing, LibraryCallsAndWhatTheScriptAddsStay) {
  const Attention attention{.batch = 1, .heads = 2, .kv_heads = 2, .seq_q = 3, .seq_k = 3, .head_dim = 8};
  EXPECT_EQ(decomposed(attention, {96, 96, 96}, {96, 24}), R"(
library mm 1x1 fp32 [flash_attention 1x2x3x8 bf16]: 0:96 1:96 2:96 -> 3:96 4:24
)");
  EXPECT_EQ(decomposed(Collective{.ranks = 2, .bytes = 96}, {96}, {96}, true), R"(
backward library mm 1x1 fp32 [all_reduce 96 bytes fp32, 2 ranks]: 0:96 -> 1:96
)");
  DecomposeSession session;
  const Use to = session.given(60), from = session.given(60), sum = session.given(60);
  EXPECT_EQ(session.add(Pointwise{.function = PointwiseFunction::add_in_place, .rows = 3, .cols = 5}, {to, from}, {sum},
                        true, true),
            R"(
backward after library add 1x1 fp32 [add_ 3x5 fp32]: 0:60 1:60 -> 2:60
)");
}

// The gradient of scores that the script got and did not use: zeros in the scores' type.
TEST(DecomposeListing, ZerosStandForTheGradientOfScores) {
  for (const auto& [bytes, type] : {std::pair(160, "fp32"), {159, "bf16"}, {80, "bf16"}}) {
    DecomposeSession session;
    session.given(7);
    const Use scores = session.given(bytes);
    Call call;
    session.trace.ops.emplace_back(Pointwise{.rows = 3, .cols = 5});
    call.layer = 4;
    call.module = 9;
    session.decomposer.add(call, {{0, 7}}, {session.given(60)}, false, true);  // of a block
    session.graph.nodes.clear();
    call.phase = Phase::backward;
    const Use zeros = session.decomposer.zeros_like(call, scores.value, 40);
    EXPECT_EQ(zeros.bytes, bytes);
    EXPECT_EQ(
        nodes_of(session.graph, session.trace.ops) + words_of(session.graph.values[zeros.value]),
        fmt::format("backward library full 1x40 {0} [fill 1x40 {0}]: -> 3:{1}\n{1} of caller kept by 0", type, bytes));
    EXPECT_EQ(session.graph.nodes[0].phase, Phase::backward);
    EXPECT_EQ(session.graph.nodes[0].layer, -1);
    EXPECT_EQ(session.graph.nodes[0].module, 0);
    EXPECT_EQ(session.graph.values[zeros.value].layer, -1);
    EXPECT_EQ(session.graph.values[zeros.value].category, Category::temporaries);
  }
}

}  // namespace
}  // namespace ridgeline::compile
