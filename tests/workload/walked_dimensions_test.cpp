// The dimensions that a kernel of TensorIterator walks: what PyTorch's coalesce_dimensions leaves of sizes and strides.
#include "sim/workload/walked_dimensions.h"

#include <gtest/gtest.h>

#include <vector>

namespace ridgeline {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST(WalkedDimensions, contiguous_tensors_are_one_dimension) {
  EXPECT_EQ(*walked_dimensions(Sizes{3, 5, 7}, Sizes{35, 7, 1}).list, (Sizes{105, 1}));
  EXPECT_EQ(*walked_dimensions(Sizes{1, 1}, Sizes{9, 4}).list, (Sizes{1, 1}));
}

TEST(WalkedDimensions, heads_before_tokens_keep_four_dimensions) {
  // [batch, heads, tokens, width] of memory [batch, tokens, heads, width], copied into its own order.
  EXPECT_EQ(*walked_dimensions(Sizes{2, 4, 10, 8}, Sizes{320, 8, 32, 1}).list, (Sizes{8, 1, 10, 32, 4, 8, 2, 320}));
}

TEST(WalkedDimensions, repeated_dimensions_have_no_stride) {
  EXPECT_EQ(*walked_dimensions(Sizes{6, 4, 5}, Sizes{5, 0, 1}).list, (Sizes{5, 1, 4, 0, 6, 5}));
  EXPECT_EQ(*walked_dimensions(Sizes{6, 4, 5}, Sizes{0, 0, 1}).list, (Sizes{5, 1, 24, 0}));
}

TEST(WalkedDimensions, follow_the_order_of_the_result) {
  // A transposed result of a transposed source is one run.
  EXPECT_EQ(*walked_dimensions(Sizes{3, 4}, Sizes{1, 3}, Sizes{1, 3}).list, (Sizes{12, 1}));
  EXPECT_EQ(*walked_dimensions(Sizes{3, 4}, Sizes{1, 3}).list, (Sizes{4, 3, 3, 1}));
}

}  // namespace
}  // namespace ridgeline
