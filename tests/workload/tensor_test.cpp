#include "sim/workload/eager/tensor.h"

#include <gtest/gtest.h>

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {
namespace {

TEST(Views, Heads_of_a_contiguous_tensor_are_a_view_and_of_a_permuted_one_are_not) {
  Dims strides;
  const Dims split{4, 512, 16, 64};
  EXPECT_TRUE(view_strides({4, 512, 1024}, {512 * 1024, 1024, 1}, split, strides));
  EXPECT_EQ(strides, (Dims{512 * 1024, 1024, 64, 1}));
  // [batch, heads, seq, dim] transposed to [batch, seq, heads, dim] cannot be seen as [batch, seq, hidden].
  EXPECT_FALSE(view_strides(split, {16 * 512 * 64, 64, 512 * 64, 1}, {4, 512, 1024}, strides));
}

TEST(Views, A_dimension_of_size_one_joins_any_other) {
  Dims strides;
  EXPECT_TRUE(view_strides({1, 12, 64}, {999, 64, 1}, {768}, strides));
  EXPECT_TRUE(view_strides({12, 1, 64}, {64, 7, 1}, {12, 64}, strides));
}

TEST(Views, Keys_transposed_twice_can_still_be_viewed_by_heads_but_not_as_rows) {
  // The gradient of transposed keys: [batch, heads, dim, seq] seen as [batch, seq, heads, dim].
  const Dims sizes{4, 512, 16, 64}, memory{16 * 64 * 512, 1, 64 * 512, 512};
  Dims strides;
  EXPECT_TRUE(view_strides(sizes, memory, {4, 512, 1024}, strides));
  EXPECT_FALSE(view_strides({4, 512, 1024}, strides, {2048, 1024}, strides));
}

TEST(Views, A_slice_of_the_projection_of_q_k_and_v_is_not_dense_and_its_copy_keeps_the_order_of_dimensions) {
  OpTrace trace;
  Eager eager(trace);
  const Tensor qkv = eager.empty({2, 8, 3 * 64}, DType::fp32);
  const auto parts = aten::split_last<3>(eager, qkv);
  const Tensor q = aten::transpose(eager, aten::view(eager, parts[0], {2, 8, 4, 16}), 1, 2);
  EXPECT_FALSE(q.dense());
  const Tensor like = eager.empty_like(q);
  EXPECT_TRUE(like.dense());
  EXPECT_TRUE(aten::transpose(eager, like, 1, 2).contiguous()) << "memory stays [batch, seq, heads, dim]";
  eager.recorder.closed = true;
}

TEST(Storages, Are_freed_with_their_last_view_and_not_before) {
  OpTrace trace;
  Eager eager(trace);
  {
    Tensor view;
    {
      const Tensor x = eager.empty({16, 16}, DType::fp32);
      view = aten::view(eager, x, {256});
    }
    ASSERT_EQ(trace.records.size(), 1u) << "only the allocation so far";
  }
  ASSERT_EQ(trace.records.size(), 2u);
  EXPECT_EQ(trace.records.back().kind, Record::Kind::free);
}

TEST(Storages, Of_no_bytes_are_never_recorded) {
  OpTrace trace;
  Eager eager(trace);
  { const Tensor nothing = eager.empty({0, 16}, DType::fp32); }
  EXPECT_TRUE(trace.records.empty());
}

struct LayoutCase {
  bool transpose_a, transpose_b;
  Layout layout;
};
class MatmulLayout : public ::testing::TestWithParam<LayoutCase> {};
TEST_P(MatmulLayout, follows_from_the_strides_of_the_operands_without_a_copy) {
  OpTrace trace;
  Eager eager(trace);
  Tensor a = eager.empty({32, 16}, DType::bf16), b = eager.empty({16, 64}, DType::bf16);
  if (GetParam().transpose_a) a = aten::t(eager, eager.empty({16, 32}, DType::bf16));
  if (GetParam().transpose_b) b = aten::t(eager, eager.empty({64, 16}, DType::bf16));
  const Tensor c = aten::mm(eager, a, b);
  ASSERT_EQ(trace.ops.size(), 1u);
  const auto& op = std::get<Matmul>(trace.ops[0]);
  EXPECT_EQ(op.layout, GetParam().layout);
  EXPECT_EQ(op.m, 32);
  EXPECT_EQ(op.n, 64);
  EXPECT_EQ(op.k, 16);
  eager.recorder.closed = true;
}
INSTANTIATE_TEST_SUITE_P(All, MatmulLayout,
                         ::testing::Values(LayoutCase{false, false, Layout::nn}, LayoutCase{false, true, Layout::nt},
                                           LayoutCase{true, false, Layout::tn}, LayoutCase{true, true, Layout::tt}));

}  // namespace
}  // namespace ridgeline::eager
