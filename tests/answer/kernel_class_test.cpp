// What a kernel counts as: by what it computes, and where that does not tell by the kind of its time.
#include "sim/answer/kernel_class.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

constexpr std::int64_t kHeads = 8, kTokens = 128, kWide = 512;

/// Attention written out, of eight heads.
OpTrace written_out() {
  OpTrace trace;
  trace.ops.push_back(Matmul{.type = DType::bf16, .batch = kHeads, .m = kTokens, .n = kTokens, .k = 64});
  trace.ops.push_back(Softmax{.rows = kHeads * kTokens, .cols = kTokens});
  trace.ops.push_back(Pointwise{.rows = kTokens, .cols = kWide});
  return trace;
}

TEST(KernelClasses, TellAttentionFromOtherProductsAndSweeps) {
  const KernelClasses classes(written_out());
  const auto of = [&](const Op& op, TimeClass time) { return classes.of(op, time); };
  const Op one = Matmul{.type = DType::bf16, .batch = 1, .m = kTokens, .n = kWide, .k = kWide};
  const Op many = Matmul{.type = DType::bf16, .batch = kHeads, .m = kTokens, .n = 64, .k = kTokens};
  EXPECT_EQ(of(one, TimeClass::tensor_contraction), KernelClass::matrix_products);
  EXPECT_EQ(of(many, TimeClass::tensor_contraction), KernelClass::attention);
  EXPECT_EQ(of(Attention{}, TimeClass::tensor_contraction), KernelClass::attention);
  const Op scores = Pointwise{.rows = kHeads * kTokens, .cols = kTokens}, other = Pointwise{.rows = 3, .cols = 7};
  EXPECT_EQ(of(scores, TimeClass::elementwise), KernelClass::attention);
  EXPECT_EQ(of(other, TimeClass::elementwise), KernelClass::elementwise);
  EXPECT_TRUE(classes.writes_scores(scores));
  EXPECT_FALSE(classes.writes_scores(other));
}

TEST(KernelClasses, FollowTheKindOfTimeElsewhere) {
  const KernelClasses classes(written_out());
  const auto of = [&](const Op& op, TimeClass time) { return classes.of(op, time); };
  EXPECT_EQ(of(Softmax{.log = true, .rows = 4, .cols = 50257}, TimeClass::normalization), KernelClass::loss);
  EXPECT_EQ(of(NllLoss{}, TimeClass::elementwise), KernelClass::loss);
  EXPECT_EQ(of(Embedding{}, TimeClass::elementwise), KernelClass::embedding);
  EXPECT_EQ(of(Norm{.rows = 5, .cols = 64}, TimeClass::normalization), KernelClass::normalization);
  EXPECT_EQ(of(Copy{.rows = 5, .cols = 64}, TimeClass::copy), KernelClass::copies);
  EXPECT_EQ(of(Pointwise{.rows = kHeads * kTokens, .cols = kTokens}, TimeClass::optimizer), KernelClass::optimizer);
  EXPECT_EQ(of(Collective{}, TimeClass::communication), KernelClass::communication);
}

}  // namespace
}  // namespace ridgeline
