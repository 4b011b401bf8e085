// Products whose rows tensor cores cannot read aligned: what is padded, copied and read.
#include <gtest/gtest.h>

#include "sim/workload/compile/decompose.h"
#include "sim/workload/compile/padding.h"
#include "tests/support/graph_listing.h"

namespace ridgeline::compile {
namespace {

/// The product's operands come from a kernel of the graph, a library call or the script; its result's rows are longer
/// than it says where they are padded.
struct PaddedCase {
  MadeBy first = MadeBy::generated, second = MadeBy::script;
  bool returns_scores = false, leaves = false;
};
std::string product_nodes(const Matmul& op, PaddedCase how = {}) {
  OpTrace trace;
  Graph graph;
  const auto operand = [&](std::int64_t elements, MadeBy by) {
    graph.values.push_back({.bytes = elements * bytes_of(op.type)});
    const auto id = static_cast<ValueId>(graph.values.size() - 1);
    if (by != MadeBy::script) {
      Node node;
      node.kind = by == MadeBy::library ? Node::Kind::library : Node::Kind::pointwise;
      graph.values.back().producer = static_cast<NodeId>(graph.nodes.size());
      graph.nodes.push_back(node);
    }
    return Use{id, graph.values.back().bytes};
  };
  std::vector<Use> in{operand(op.m * op.k, how.first), operand(op.k * op.n, how.second)};
  if (op.bias) in.push_back(operand(op.n, MadeBy::script));
  const Use out = operand(op.m * op.n, MadeBy::script);
  graph.values[out.value].leaves = how.leaves;
  const std::size_t nodes = graph.nodes.size();
  trace.ops.push_back(op);
  Decomposer decomposer(trace, graph);
  decomposer.returns_scores = how.returns_scores;
  decomposer.add({}, in, {out}, false, false);
  return "\n" + nodes_of(graph, trace.ops, nodes) + values_of(graph, out.value);
}

Matmul of(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout = Layout::nt, bool bias = false,
          DType type = DType::bf16) {
  return {.type = type, .m = m, .n = n, .k = k, .layout = layout, .bias = bias};
}

TEST(PaddedProducts, AlignedOnesStayWhatTheyAre) {
  EXPECT_EQ(product_nodes(of(512, 1024, 256)), R"(
library mm 512x1024 bf16 [mm 512x1024x256 nt bf16]: 0:262144 1:524288 -> 2:1048576
2: 1048576 by 1
)");
}

// 4099 columns become 4104: weight and bias are copied, the result has rows of 4160 elements, of whole lines.
TEST(PaddedProducts, OddColumnsPadTheWeightAndTheBias) {
  EXPECT_EQ(product_nodes(of(8192, 4099, 1024, Layout::nt, true)), R"(
alone pointwise mm 1024x4104 bf16 x1: 1:8394752 -> 4:8404992
alone pointwise mm 1x4104 bf16 x1: 2:8198 -> 5:8208
library mm 8192x4104 bf16 [addmm 8192x4104x1024 nt bf16]: 0:16777216 4:8404992 5:8208 -> 3:67158016
3: 68157440 by 3
4: 8404992 kept by 1
5: 8208 kept by 2
)");
  EXPECT_EQ(product_nodes(of(8192, 4099, 1024), {.returns_scores = true}), R"(
alone pointwise mm 1024x4104 bf16 x1: 1:8394752 -> 3:8404992
library mm 8192x4104 bf16 [mm 8192x4104x1024 nt bf16]: 0:16777216 3:8404992 -> 2:67158016
2: 67239936 by 2
3: 8404992 kept by 1
)");
  EXPECT_EQ(product_nodes(of(8192, 4099, 1024), {.leaves = true}), R"(
alone pointwise mm 1024x4104 bf16 x1: 1:8394752 -> 3:8404992
library mm 8192x4104 bf16 [mm 8192x4104x1024 nt bf16]: 0:16777216 3:8404992 -> 2:67158016
2: 67158016 leaves by 2
3: 8404992 kept by 1
)");
}

// 4099 terms become 4104. Rows of the first operand that only the graph sees are long enough already.
TEST(PaddedProducts, AnOddSumPadsBothOperands) {
  EXPECT_EQ(product_nodes(of(8192, 1024, 4099)), R"(
alone pointwise mm 4104x1024 bf16 x1: 1:8394752 -> 3:8404992
library mm 8192x1024 bf16 [mm 8192x1024x4104 nt bf16]: 0:67158016 3:8404992 -> 2:16777216
2: 16777216 by 2
3: 8404992 kept by 1
)");
  EXPECT_EQ(product_nodes(of(8192, 1024, 4099), {.returns_scores = true}), R"(
alone pointwise mm 8192x4104 bf16 x1: 0:67158016 -> 3:67239936
alone pointwise mm 4104x1024 bf16 x1: 1:8394752 -> 4:8404992
library mm 8192x1024 bf16 [mm 8192x1024x4104 nt bf16]: 3:67239936 4:8404992 -> 2:16777216
2: 16777216 by 3
3: 67239936 kept by 1
4: 8404992 kept by 2
)");
  EXPECT_EQ(product_nodes(of(8192, 2048, 1003)), R"(
alone pointwise mm 8192x1008 bf16 x1: 0:16433152 -> 3:16515072
alone pointwise mm 1008x2048 bf16 x1: 1:4108288 -> 4:4128768
library mm 8192x2048 bf16 [mm 8192x2048x1008 nt bf16]: 3:16515072 4:4128768 -> 2:33554432
2: 33554432 by 3
3: 16515072 kept by 1
4: 4128768 kept by 2
)");  // no longer than 1024: rows have no room
}

TEST(PaddedProducts, TransposedOperandsAreAlwaysCopied) {
  EXPECT_EQ(product_nodes(of(4099, 1024, 8192, Layout::tn), {.second = MadeBy::generated}), R"(
alone pointwise mm 4104x8192 bf16 x1: 0:67158016 -> 3:67239936
library mm 4104x1024 bf16 [mm 4104x1024x8192 tn bf16]: 3:67239936 1:16777216 -> 2:8394752
2: 8404992 by 3
3: 67239936 kept by 2
)");
}

// Gradients of weights of an odd width whose padding does not pay: rows that the graph made are aligned all the same.
TEST(PaddedProducts, RowsOfTheGraphAreAlignedWithoutPadding) {
  EXPECT_EQ(product_nodes(of(4098, 64, 256, Layout::tn)), R"(
library mm 4104x64 bf16 [mm 4104x64x256 tn bf16]: 0:2098176 1:32768 -> 2:524544
2: 524544 by 1
)");
  EXPECT_EQ(product_nodes(of(4098, 64, 256, Layout::tn, false, DType::tf32)), R"(
library mm 4100x64 tf32 [mm 4100x64x256 tn tf32]: 0:4196352 1:65536 -> 2:1049088
2: 1049088 by 1
)");
  EXPECT_EQ(product_nodes(of(4098, 64, 256, Layout::tn), {.first = MadeBy::library}), R"(
library mm 4098x64 bf16 [mm 4098x64x256 tn bf16]: 0:2098176 1:32768 -> 2:524544
2: 524544 by 1
)");
  EXPECT_EQ(product_nodes(of(4098, 64, 256, Layout::tn, false, DType::fp32)), R"(
library mm 4098x64 fp32 [mm 4098x64x256 tn fp32]: 0:4196352 1:65536 -> 2:1049088
2: 1049088 by 1
)");
  EXPECT_EQ(product_nodes(of(1002, 64, 256, Layout::tn)), R"(
library mm 1002x64 bf16 [mm 1002x64x256 tn bf16]: 0:513024 1:32768 -> 2:128256
2: 128256 by 1
)");
  EXPECT_EQ(product_nodes(of(4160, 64, 256, Layout::tn)), R"(
library mm 4160x64 bf16 [mm 4160x64x256 tn bf16]: 0:2129920 1:32768 -> 2:532480
2: 532480 by 1
)");
}

std::string sides(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, MadeBy first, MadeBy second,
                  DType type = DType::bf16, std::int64_t batch = 1) {
  const auto padding =
      padding_of({.type = type, .batch = batch, .m = m, .n = n, .k = k, .layout = layout}, first, second);
  if (!padding) return "none";
  return fmt::format("{}x{}x{}{}{}", padding->m, padding->n, padding->k, padding->first ? " first" : "",
                     padding->second ? " second" : "");
}

// Multiples of 16 bytes; sides of 1 stay. Both operands are longer where the sum is, the first where m is, the second
// where n is.
TEST(PaddedProducts, SidesBecomeMultiplesOfSixteenBytes) {
  constexpr MadeBy kMade = MadeBy::generated;
  const auto of_made = [&](std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, DType type = DType::bf16) {
    return sides(m, n, k, layout, kMade, kMade, type);
  };
  EXPECT_EQ(of_made(8192, 4097, 1024, Layout::nn), "8192x4104x1024 second");
  EXPECT_EQ(of_made(8192, 4097, 1024, Layout::nn, DType::tf32), "8192x4100x1024 second");
  EXPECT_EQ(of_made(8192, 1024, 4097, Layout::nn), "8192x1024x4104 first second");
  EXPECT_EQ(of_made(8193, 1024, 4097, Layout::nn), "8200x1024x4104 first second");
  EXPECT_EQ(of_made(8193, 1024, 4096, Layout::tn), "8200x1024x4096 first");
  EXPECT_EQ(of_made(8193, 1024, 4096, Layout::tt), "8200x1024x4096 first");
  EXPECT_EQ(of_made(8193, 1024, 4096, Layout::nn), "none");  // no row runs along the odd side
  EXPECT_EQ(of_made(8193, 1024, 4096, Layout::nt), "none");
  EXPECT_EQ(of_made(8192, 1024, 4097, Layout::tn), "none");
  EXPECT_EQ(of_made(8192, 1024, 4097, Layout::nt), "8192x1024x4104 first second");
  EXPECT_EQ(of_made(8192, 1024, 4097, Layout::tt), "8192x1024x4104 first second");
  EXPECT_EQ(of_made(8192, 4097, 1024, Layout::nn, DType::fp32), "none");
  EXPECT_EQ(sides(8192, 4097, 1024, Layout::nn, kMade, kMade, DType::bf16, 2), "none");
  EXPECT_EQ(of_made(1, 40961, 40961, Layout::nn), "none");  // one row is read once: 1 FLOP a byte
}

// At least 50 multiply-adds for each element that is touched: of 2^20 rows with k terms and n columns
// n k / (n + k + n k / 2^20), here with k = 64.
TEST(PaddedProducts, FewMultiplyAddsAnElementArePaddedNever) {
  const auto padded = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return sides(m, n, k, Layout::nn, MadeBy::generated, MadeBy::generated) != "none";
  };
  for (const std::int64_t n : {129, 201, 225, 227, 229, 231, 233, 235, 301}) {
    const double m = 1 << 20, columns = static_cast<double>(n), k = 64;
    const double intensity = m * columns * k / (m * k + columns * k + m * columns);
    EXPECT_EQ(padded(1 << 20, n, 64), intensity > 50.0) << n << ' ' << intensity;
  }
  // Exactly 50: 150 in each direction. One more in a direction whose rows are odd is enough.
  EXPECT_FALSE(padded(150, 150, 150));
  EXPECT_TRUE(padded(152, 151, 152));
}

// Products of rows aligned to 1, 2 or 4 elements take 2.2, 1.45 and 1.2 times as long; with copies of s bytes in all,
// which take the time of 170 FLOPs a byte, a tenth must be gained: slowdown > 1.1 (1 + 170 s / FLOPs). A copy reads and
// writes 2 * 2 bytes an element.
TEST(PaddedProducts, CopiesMustPay) {
  struct Operands {
    MadeBy first, second;
  };
  constexpr MadeBy kMade = MadeBy::generated, kLibrary = MadeBy::library, kScript = MadeBy::script;
  int yes = 0, no = 0;
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn, Layout::tt})
    for (const std::int64_t odd : {1, 2, 4})
      for (const Operands made : {Operands{kMade, kMade}, {kLibrary, kMade}, {kMade, kScript}, {kScript, kLibrary}})
        for (const std::int64_t size : {256, 640, 1024, 2048, 4096}) {
          // All of m, n and k are odd in the same way, so that every row is and both operands are longer.
          const double m = static_cast<double>(size + odd), n = m, k = m;
          const bool first_transposed = layout == Layout::tn || layout == Layout::tt,
                     second_transposed = layout == Layout::nt || layout == Layout::tt;
          double bytes = 0.0;
          if (first_transposed || made.first != kMade) bytes += 4 * m * k;
          if (second_transposed || made.second != kMade) bytes += 4 * k * n;
          const double slowdown = odd == 1 ? 2.2 : odd == 2 ? 1.45 : 1.2;
          const bool pays = slowdown > 1.1 * (1 + 170 * bytes / (2 * m * n * k));
          const std::string found = sides(size + odd, size + odd, size + odd, layout, made.first, made.second);
          EXPECT_EQ(found != "none", pays) << size << ' ' << odd << ' ' << static_cast<int>(layout);
          ++(pays ? yes : no);
        }
  EXPECT_GT(yes, 50);
  EXPECT_GT(no, 50);
}

// One operand alone is longer: the other one's maker does not matter.
TEST(PaddedProducts, OnlyWhatIsLongerIsCopied) {
  for (const MadeBy other : {MadeBy::script, MadeBy::library, MadeBy::generated}) {
    EXPECT_EQ(sides(640, 641, 640, Layout::nn, other, MadeBy::generated), "640x648x640 second");
    EXPECT_EQ(sides(8193, 640, 640, Layout::tn, MadeBy::generated, other), "8200x640x640 first");
  }
  EXPECT_EQ(sides(168, 169, 168, Layout::nn, MadeBy::script, MadeBy::generated), "168x176x168 second");
  EXPECT_EQ(sides(168, 169, 168, Layout::nn, MadeBy::generated, MadeBy::script), "none");
}

TEST(PaddedProducts, LongRowsOfTheGraphAreWholeLines) {
  for (const auto& [cols, element, length] :
       {std::tuple(1024, 2, 1024), {1025, 2, 1088}, {1088, 2, 1088}, {1089, 2, 1152}, {1025, 4, 1056}, {1023, 4, 1023}})
    EXPECT_EQ(length_of_rows(cols, element), length) << cols << ' ' << element;
}

}  // namespace
}  // namespace ridgeline::compile
