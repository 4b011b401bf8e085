// The type of what a replayed call of two operands gives, where the recording does not say: PyTorch's type promotion.
#include <gtest/gtest.h>

#include "tests/support/aten_example.h"

namespace ridgeline::trace {
namespace {

DType type_of_sum(DType a, DType b, Sizes sizes_of_b = {4, 8}) {
  const auto ops = map_aten(call_of({"add", {tensor({4, 8}, a), tensor(std::move(sizes_of_b), b)}, ""}), {});
  return std::get<Pointwise>(ops.value().back().op).output;
}

TEST(TypePromotion, FloatsWinOverIntegersAndWideOverNarrow) {
  EXPECT_EQ(type_of_sum(DType::bf16, DType::fp32), DType::fp32);
  EXPECT_EQ(type_of_sum(DType::fp32, DType::bf16), DType::fp32);
  EXPECT_EQ(type_of_sum(DType::bf16, DType::bf16), DType::bf16);
  EXPECT_EQ(type_of_sum(DType::int64, DType::bf16), DType::bf16);
  EXPECT_EQ(type_of_sum(DType::fp16, DType::int64), DType::fp16);
  EXPECT_EQ(type_of_sum(DType::int32, DType::int64), DType::int64);
  EXPECT_EQ(type_of_sum(DType::boolean, DType::int64), DType::int64);
}

TEST(TypePromotion, TheTwoHalvesMeetInSingle) {
  EXPECT_EQ(type_of_sum(DType::fp16, DType::bf16), DType::fp32);
  EXPECT_EQ(type_of_sum(DType::bf16, DType::fp16), DType::fp32);
}

TEST(TypePromotion, ATensorWinsOverANumberOfItsKind) {
  EXPECT_EQ(type_of_sum(DType::bf16, DType::fp32, {}), DType::bf16);
  EXPECT_EQ(type_of_sum(DType::int32, DType::int64, {}), DType::int32);
  EXPECT_EQ(type_of_sum(DType::int64, DType::fp32, {}), DType::fp32);
}

}  // namespace
}  // namespace ridgeline::trace
