// The committed tables are what the fit makes of the committed measurements, and another number is not.
#include <gtest/gtest.h>

#include "tests/fit/check_of_table.h"

namespace ridgeline::fit {
namespace {

TEST(RefitCheck, of_attention_fails_with_another_number) {
  EXPECT_EQ(check_of_table("attention", "cudnn_forward", "fixed_cycles: {value: ", "fixed_cycles: {value: "), 0);
  EXPECT_EQ(check_of_table("attention", "cudnn_forward", "fixed_cycles: {value: 4", "fixed_cycles: {value: 5"), 1);
  EXPECT_EQ(check_of_table("attention", "cudnn_forward", "data: x", "data: xf"), 1);
}

TEST(RefitCheck, of_products_fails_with_another_number) {
  EXPECT_EQ(check_of_table("products", "mma_half_align4", "fixed_cycles: {value: ", "fixed_cycles: {value: "), 0);
  EXPECT_EQ(check_of_table("products", "mma_half_align4", "fixed_cycles: {value: ", "fixed_cycles: {value: 1"), 1);
  EXPECT_EQ(check_of_table("products", "mma_half_align4", "data: x", "data: xf"), 1);
}

TEST(RefitCheck, of_memory_bound_kernels_fails_with_another_number) {
  EXPECT_EQ(check_of_table("memory_bound", "reduce_rows", "block_cycles: {value: ", "block_cycles: {value: "), 0);
  EXPECT_EQ(check_of_table("memory_bound", "reduce_rows", "block_cycles: {value: ", "block_cycles: {value: 1"), 1);
  EXPECT_EQ(check_of_table("memory_bound", "reduce_rows", "data: x", "data: xf"), 1);
}

TEST(RefitCheck, of_sums_of_splits_fails_with_another_number) {
  EXPECT_EQ(check_of_table("split_reduction", "own", "start_cycles: {value: ", "start_cycles: {value: "), 0);
  EXPECT_EQ(check_of_table("split_reduction", "own", "start_cycles: {value: ", "start_cycles: {value: 1"), 1);
  EXPECT_EQ(check_of_table("split_reduction", "own", "data: x", "data: xf"), 1);
}

}  // namespace
}  // namespace ridgeline::fit
