// Which products torch.compile pads.
#include "sim/workload/compile/padding.h"

#include <gtest/gtest.h>

namespace ridgeline::compile {
namespace {

Matmul product(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout = Layout::nt, DType type = DType::bf16) {
  return {.type = type, .m = m, .n = n, .k = k, .layout = layout};
}
std::optional<Padding> padded(const Matmul& op) { return padding_of(op, MadeBy::generated, MadeBy::generated); }

// The vocabulary of GPT-2: its scores, the gradients of its inputs and of its weights.
TEST(Padding, rounds_dimensions_up_to_sixteen_bytes) {
  const auto scores = padded(product(8192, 50257, 768));
  ASSERT_TRUE(scores.has_value());
  EXPECT_EQ(scores->n, 50264);
  EXPECT_EQ(scores->m, 8192);
  EXPECT_FALSE(scores->first);
  EXPECT_TRUE(scores->second);
  const auto inputs = padded(product(8192, 768, 50257, Layout::nn));
  ASSERT_TRUE(inputs.has_value());
  EXPECT_TRUE(inputs->first && inputs->second);
  const auto weights = padded(product(50257, 768, 8192, Layout::tn));
  ASSERT_TRUE(weights.has_value());
  EXPECT_TRUE(weights->first);
  EXPECT_FALSE(weights->second);
  const auto wider = padded(product(8192, 50257, 768, Layout::nt, DType::tf32));
  ASSERT_TRUE(wider.has_value());
  EXPECT_EQ(wider->n, 50260);
}

TEST(Padding, leaves_aligned_rows_alone) {
  EXPECT_FALSE(padded(product(8192, 50304, 768)).has_value());
  EXPECT_TRUE(padded(product(8192, 50303, 768)).has_value());
  // Rows of neither operand run along the odd dimension.
  EXPECT_FALSE(padded(product(3885, 768, 768)).has_value());
  EXPECT_TRUE(padded(product(3885, 768, 768, Layout::tn)).has_value());
}

TEST(Padding, needs_work_that_pays_for_the_copies) {
  EXPECT_FALSE(padded(product(16384, 2, 768)).has_value());
  EXPECT_TRUE(padded(product(16384, 65, 384)).has_value());
  EXPECT_FALSE(padded(product(8192, 50257, 768, Layout::nt, DType::fp32)).has_value());
  // Rows of an even number of elements lose less, and a transposing copy of them is not free.
  EXPECT_FALSE(padded(product(30522, 768, 4096, Layout::tn)).has_value());
  EXPECT_TRUE(padded(product(30521, 768, 4096, Layout::tn)).has_value());
}

TEST(Padding, long_rows_of_the_graphs_own_begin_at_whole_lines) {
  EXPECT_EQ(length_of_rows(50257, 2), 50304);
  EXPECT_EQ(length_of_rows(1025, 4), 1056);
  EXPECT_EQ(length_of_rows(1024, 2), 1024);
  EXPECT_EQ(length_of_rows(65, 2), 65);
}

}  // namespace
}  // namespace ridgeline::compile
