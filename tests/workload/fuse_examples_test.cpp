// Graphs and the kernels that torch.compile makes of them: which nodes, what each reads and writes.
#include <gtest/gtest.h>

#include "tests/support/graph_listing.h"
#include "tests/support/graph_sketch.h"

namespace ridgeline::compile {
namespace {

using Kind = Node::Kind;
constexpr GraphSketch::Space kSpace{64, 32};  ///< 8192 bytes of fp32, 4096 of bf16

std::string fused_text(GraphSketch& s) { return "\n" + groups_of(fuse(s.graph)); }

TEST(FuseExamples, AChainIsOneKernelWithTheInstructionsOfAll) {
  GraphSketch s;
  const ValueId x = s.given(8192), y = s.given(4096);
  const ValueId a = s.pointwise("mul", kSpace, {x}), b = s.pointwise("add", kSpace, {a, y}, DType::bf16);
  s.last().arithmetic = s.last().operations = 5;
  s.leaves(s.pointwise("gelu", kSpace, {b, x}));
  s.last().arithmetic = s.last().operations = 42;
  EXPECT_EQ(fused_text(s), R"(
pointwise 64x32 fp32 x48 of add gelu mul: nodes 2 reads 0:8192 1:4096 writes 4:8192
)");
  EXPECT_EQ("\n" + nodes_of(s.graph), R"(
pointwise mul 64x32 fp32 x1: 0:8192 -> 2:8192
pointwise add 64x32 bf16 x6 (mul): 0:8192 1:4096 -> 3:4096
pointwise gelu 64x32 fp32 x48 (mul) (add): 0:8192 1:4096 -> 4:8192
)");
}

/// Whether a result with two users is computed by each of them.
template <typename Change>
bool computed_twice(Change change) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId a = s.pointwise("mul", kSpace, {x});
  change(s, a);
  // Behind products of their own the users cannot be one kernel.
  const ValueId first = s.leaves(s.pointwise("add", kSpace, {a}));
  const ValueId between = s.library("mm", {64, 64}, {first});
  s.leaves(s.pointwise("sub", kSpace, {a, between}));
  bool read = false;
  for (const Group& group : fuse(s.graph))
    for (const Use& use : group.reads) read = read || use.value == a;
  return !read;
}

// torch/_inductor/config.py: realize_reads_threshold = 4, realize_opcount_threshold = 30.
TEST(FuseExamples, ACheapResultOfTwoUsersIsComputedByEach) {
  EXPECT_TRUE(computed_twice([](GraphSketch&, ValueId) {}));
  for (const std::int64_t operations : {1, 30, 31})
    EXPECT_EQ(computed_twice([&](GraphSketch& s, ValueId) { s.last().operations = operations; }), operations <= 30);
  for (const std::size_t reads : {4, 5})
    EXPECT_EQ(computed_twice([&](GraphSketch& s, ValueId) {
                while (s.last().inputs.size() < reads) s.last().inputs.push_back({s.given(8192), 8192});
              }),
              reads == 4);
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId) { s.last().realizes = true; }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId a) { s[a].kept = true; }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId a) { s[a].stored = true; }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId a) { s.leaves(a); }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId a) { s[a].in_place_of = 0; }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId) { s.output(8192); }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId a) { s.library("mm", {8, 8}, {a}); }));
  EXPECT_FALSE(computed_twice([](GraphSketch& s, ValueId a) {
    s.backward = true;
    s.leaves(s.pointwise("neg", kSpace, {a}));
    s.backward = false;
  }));
}

// Of the result of a row's kernel the row's operands count, and its sum: two operands and x itself are four reads.
TEST(FuseExamples, WhatComesFromARowReadsTheRowsOperands) {
  for (const int operands : {1, 2, 3})
    for (const bool library : {false, true})
      for (const bool other_pass : {false, true}) {
        GraphSketch s;
        std::vector<ValueId> in;
        for (int i = 0; i < operands; ++i) in.push_back(s.given(8192));
        const ValueId row = library ? s.library("mm", kSpace, in) : s.node(Kind::rows, "norm", kSpace, in);
        s.backward = other_pass;
        const ValueId a = s.pointwise("mul", kSpace, {row, in[0]});
        const ValueId first = s.leaves(s.pointwise("add", kSpace, {a}));
        s.leaves(s.pointwise("sub", kSpace, {a, s.library("mm", {64, 64}, {first})}));
        bool read = false;
        for (const Group& group : fuse(s.graph))
          for (const Use& use : group.reads) read = read || use.value == a;
        EXPECT_EQ(read, operands == 3 && !library && !other_pass) << operands << library << other_pass;
      }
}

// Of a result of 80 bytes somebody reads 8, a tenth: of its operands a tenth too, but 4 bytes at least. An eighth is
// taken for the whole.
TEST(FuseExamples, OfWhatIsReadInPartThatPartIsComputed) {
  for (const std::int64_t part : {8, 9, 10, 11}) {
    GraphSketch s;
    const ValueId x = s.given(800), y = s.given(30);
    const ValueId a = s.pointwise("mul", {20, 1}, {x, y});
    s.leaves(s.pointwise("add", {20, 1}, {a}));
    s.last().inputs[0].bytes = part;
    const Group group = fuse(s.graph).front();
    const std::string expected = part == 8 ? " 0:80 1:4" : part == 9 ? " 0:90 1:4" : " 0:800 1:30";
    EXPECT_EQ(words_of(group.reads), expected) << part;
  }
}

// A residual, the statistics of its rows and what is made of them; a number a row joins too.
TEST(FuseExamples, AResidualANormAndItsScaleAreOneKernel) {
  GraphSketch s;
  const ValueId x = s.given(8192), y = s.given(8192), w = s.given(128);
  const ValueId sum = s.leaves(s.pointwise("add", {1, 2048}, {x, y}));
  const ValueId moments = s.node(Kind::rows, "norm", kSpace, {sum});
  const ValueId root = s.leaves(s.pointwise("rsqrt", {64, 1}, {moments}));
  s.leaves(s.pointwise("mul", kSpace, {sum, root, w}, DType::bf16));
  EXPECT_EQ(fused_text(s), R"(
rows 64x32 fp32 x4 of add mul norm rsqrt: nodes 0 1 2 3 reads 0:8192 1:8192 2:128 writes 3:8192 5:256 6:4096
)");
}

TEST(FuseExamples, SumsOverRowsOfOneSpaceAreOneKernelAndWhatIsMadeOfThemJoins) {
  GraphSketch s;
  const ValueId x = s.given(8192), y = s.given(8192);
  const ValueId first = s.node(Kind::columns, "sum", kSpace, {x, y}),
                second = s.node(Kind::columns, "sum", kSpace, {x});
  s.leaves(first);
  s.leaves(s.pointwise("cast", {1, 32}, {second}, DType::bf16));
  s.leaves(s.node(Kind::columns, "amax", {32, 64}, {x}));  // another space
  s.leaves(s.pointwise("neg", kSpace, {x}));               // no sum
  EXPECT_EQ(fused_text(s), R"(
columns 64x32 fp32 x3 sums 2 of cast sum: nodes 0 1 2 reads 0:8192 1:8192 writes 2:128 4:64
columns 32x64 fp32 x1 sums 1 of amax: nodes 3 reads 0:8192 writes 5:256
pointwise 64x32 fp32 x1 of neg: nodes 4 reads 0:8192 writes 6:8192
)");
}

/// A row's kernel that sums columns as well.
ValueId norm_gradient(GraphSketch& s, const std::vector<ValueId>& in) {
  const ValueId rows = s.leaves(s.node(Kind::rows, "norm_backward", kSpace, in));
  s.leaves(s.output(128));
  s.last().by_block = true;
  s.last().column_results = 1;
  return rows;
}
TEST(FuseExamples, AKernelThatSumsByBlocksTakesNeitherCastsNorAnotherOne) {
  GraphSketch s;
  const ValueId x = s.given(8192), g = s.pointwise("mul", kSpace, {x});
  s[g].kept = true;
  norm_gradient(s, {g, x});
  s.leaves(s.pointwise("cast", kSpace, {x}, DType::bf16));
  s.last().casts = true;
  s.leaves(s.pointwise("neg", kSpace, {x}));
  norm_gradient(s, {x});
  EXPECT_EQ(fused_text(s), R"(
by block rows 64x32 fp32 x2 sums 1 of mul norm_backward: nodes 0 1 reads 0:8192 writes 2:256 3:128
by block rows 64x32 fp32 x3 sums 1 of cast neg norm_backward: nodes 2 3 4 reads 0:8192 writes 4:4096 5:8192 6:256 7:128
)");
}

// The second addition reads what the first kernel made and a product that waits for it: it cannot join it.
TEST(FuseExamples, AKernelNeverWaitsForItself) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId a = s.leaves(s.pointwise("mul", kSpace, {x}));
  const ValueId y = s.library("mm", kSpace, {a});
  s.leaves(s.pointwise("add", kSpace, {a, y}));
  EXPECT_EQ(fused_text(s), R"(
pointwise 64x32 fp32 x1 of mul: nodes 0 reads 0:8192 writes 1:8192
library 64x32 fp32 x1 of mm: nodes 1 reads 1:8192 writes 2:8192
pointwise 64x32 fp32 x1 of add: nodes 2 reads 1:8192 2:8192 writes 3:8192
)");
}

// Two that read the same are one kernel where that is 4096 bytes or more.
TEST(FuseExamples, ReadersOfTheSameAreOneKernelWhereItIsWorthIt) {
  for (const std::int64_t bytes : {4095, 4096}) {
    GraphSketch s;
    const ValueId x = s.given(bytes);
    s.leaves(s.pointwise("neg", kSpace, {x}));
    s.leaves(s.pointwise("exp", kSpace, {x}));
    EXPECT_EQ(fuse(s.graph).size(), bytes < 4096 ? 2u : 1u) << bytes;
  }
}

// The addition shares x, 8192 bytes, with one kernel and reads what the other one made, counted twice: 2 * 8192.
TEST(FuseExamples, ANodeJoinsTheKernelWithWhichItSharesMost) {
  GraphSketch s;
  const ValueId x = s.given(8192), y = s.given(8192);
  const ValueId a = s.leaves(s.pointwise("a", kSpace, {x})), b = s.leaves(s.pointwise("b", kSpace, {y}));
  s.leaves(s.pointwise("c", kSpace, {x, b}));
  EXPECT_EQ(fused_text(s), R"(
pointwise 64x32 fp32 x1 of a: nodes 0 reads 0:8192 writes 2:8192
pointwise 64x32 fp32 x2 of b c: nodes 1 2 reads 1:8192 0:8192 writes 3:8192 4:8192
)");
  GraphSketch t;
  const ValueId u = t.given(8192), v = t.given(8192), w = t.given(8192);
  t.leaves(t.pointwise("a", kSpace, {u, v}));
  t.leaves(t.pointwise("b", kSpace, {w}));
  t.leaves(t.pointwise("c", kSpace, {w, u, v}));
  EXPECT_EQ(fused_text(t), R"(
pointwise 64x32 fp32 x2 of a c: nodes 0 2 reads 0:8192 1:8192 2:8192 writes 3:8192 5:8192
pointwise 64x32 fp32 x1 of b: nodes 1 reads 2:8192 writes 4:8192
)");
  EXPECT_EQ(a, 2u);
}

// What runs transposed, or over a space of its own, is alone.
TEST(FuseExamples, SomeKernelsAreAlone) {
  for (const int which : {0, 1, 2}) {
    GraphSketch s;
    const ValueId x = s.given(8192);
    s.leaves(s.pointwise("neg", kSpace, {x}));
    if (which == 0) s.last().gathers = true;
    if (which == 1) s.last().alone = true;
    s.leaves(s.pointwise("exp", kSpace, {x}));
    s.leaves(s.pointwise("abs", kSpace, {x}));
    if (which == 2) s.last().after = true;
    EXPECT_EQ(fused_text(s), which == 0   ? R"(
gathering pointwise 64x32 fp32 x1 of neg: nodes 0 reads 0:8192 writes 1:8192
pointwise 64x32 fp32 x2 of abs exp: nodes 1 2 reads 0:8192 writes 2:8192 3:8192
)"
                             : which == 1 ? R"(
alone pointwise 64x32 fp32 x1 of neg: nodes 0 reads 0:8192 writes 1:8192
pointwise 64x32 fp32 x2 of abs exp: nodes 1 2 reads 0:8192 writes 2:8192 3:8192
)"
                                          : R"(
pointwise 64x32 fp32 x2 of exp neg: nodes 0 1 reads 0:8192 writes 1:8192 2:8192
after pointwise 64x32 fp32 x1 of abs: nodes 2 reads 0:8192 writes 3:8192
)");
  }
}

// What a node does that is computed again, its user does: gather, or run alone.
TEST(FuseExamples, AUserInheritsWhatItComputesAgain) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId a = s.pointwise("transpose", kSpace, {x});
  s.last().gathers = true;
  const ValueId b = s.pointwise("pad", kSpace, {a});
  s.last().alone = true;
  s.leaves(s.pointwise("neg", kSpace, {b}));
  EXPECT_EQ(fused_text(s), R"(
gathering alone pointwise 64x32 fp32 x3 of neg pad transpose: nodes 2 reads 0:8192 writes 3:8192
)");
}

// Random numbers, which read nothing, are drawn in the first kernel that needs them and written for the second one.
TEST(FuseExamples, WhatReadsNothingIsPartOfItsFirstReader) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId mask = s.pointwise("rand", {1, 2048}, {}, DType::uint8);
  s[mask].kept = true;
  const ValueId y = s.library("mm", kSpace, {x});
  s.leaves(s.pointwise("mul", kSpace, {y, mask}));
  s.backward = true;
  s.leaves(s.pointwise("mul", kSpace, {x, mask}));
  EXPECT_EQ(fused_text(s), R"(
library 64x32 fp32 x1 of mm: nodes 1 reads 0:8192 writes 2:8192
pointwise 1x2048 fp32 x2 of mul rand: nodes 0 2 reads 2:8192 writes 1:2048 3:8192
backward pointwise 64x32 fp32 x1 of mul: nodes 3 reads 0:8192 1:2048 writes 4:8192
)");
}

// … unless the first reader waits for another one.
TEST(FuseExamples, RandomNumbersStayOutsideOfAKernelThatWaitsForAnotherReader) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId mask = s.pointwise("rand", {1, 2048}, {}, DType::uint8);
  s[mask].kept = true;
  const ValueId other = s.pointwise("dropout", {1, 1000}, {mask});  // of another space: a kernel of its own
  s[other].kept = true;
  const ValueId y = s.library("mm", kSpace, {other, x});
  s.leaves(s.pointwise("mul", kSpace, {y, mask}));
  EXPECT_EQ(fused_text(s), R"(
pointwise 1x2048 uint8 x1 of rand: nodes 0 reads writes 1:2048
pointwise 1x1000 fp32 x1 of dropout: nodes 1 reads 1:2048 writes 2:4000
library 64x32 fp32 x1 of mm: nodes 2 reads 2:4000 0:8192 writes 3:8192
pointwise 64x32 fp32 x1 of mul: nodes 3 reads 3:8192 1:2048 writes 4:8192
)");
}

// Kernels whose results nobody needs do not run, nor those that these read from; a library call writes all it has.
TEST(FuseExamples, WhatNobodyNeedsIsNotComputed) {
  GraphSketch s;
  const ValueId x = s.given(8192);
  const ValueId dead = s.library("mm", kSpace, {x});
  s.node(Kind::rows, "norm", kSpace, {dead});
  s[s.pointwise("unread", kSpace, {x})].stored = true;  // kept for a backward graph that does not read it
  const ValueId used = s.library("attention", kSpace, {x});
  s.output(256);
  const ValueId zeros = s.pointwise("full", kSpace, {});
  s[zeros].kept = true;
  s[zeros].stored = true;
  const ValueId table = s.pointwise("scatter", kSpace, {used});  // what lies below it is needed though nobody reads it
  s[table].in_place_of = zeros;
  s.leaves(table);
  EXPECT_EQ(fused_text(s), R"(
library 64x32 fp32 x1 of attention: nodes 3 reads 0:8192 writes 4:8192 5:256
pointwise 64x32 fp32 x1 of full: nodes 4 reads writes 6:8192
pointwise 64x32 fp32 x1 of scatter: nodes 5 reads 4:8192 writes 7:8192
)");
}

// Forward, backward, then what the script adds behind both; otherwise as the nodes came.
TEST(FuseExamples, TheScriptsOwnComesLast) {
  GraphSketch s;
  const ValueId x = s.given(8192), y = s.given(100);
  s.backward = true;
  const ValueId g = s.leaves(s.library("mm", kSpace, {y}));
  s.leaves(s.library("add", kSpace, {g}));
  s.last().after = true;
  s.leaves(s.library("bmm", kSpace, {y}));
  s.backward = false;
  s.leaves(s.library("conv", kSpace, {x}));
  EXPECT_EQ(fused_text(s), R"(
library 64x32 fp32 x1 of conv: nodes 3 reads 0:8192 writes 5:8192
backward library 64x32 fp32 x1 of mm: nodes 0 reads 1:100 writes 2:8192
backward library 64x32 fp32 x1 of bmm: nodes 2 reads 1:100 writes 4:8192
backward after library 64x32 fp32 x1 of add: nodes 1 reads 2:8192 writes 3:8192
)");
}

}  // namespace
}  // namespace ridgeline::compile
