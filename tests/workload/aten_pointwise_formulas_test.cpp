// Norms, losses and point-wise operations of PyTorch and their formulas backward, as they are recorded.
#include <gtest/gtest.h>

#include "sim/workload/aten/loss.h"
#include "sim/workload/aten/normalization.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/regroup.h"
#include "sim/workload/aten/softmax.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/aten/written_out.h"
#include "tests/support/formula.h"

namespace ridgeline::eager {
namespace {

using testing_support::Formula;

TEST(AtenPointwiseFormulas, NormsKeepMeansAndDeviations) {
  Formula f;
  const Tensor &x = f.trained("x", {2, 3, 5}), &w = f.trained("w", {5}), &b = f.trained("b", {5});
  EXPECT_EQ(f.of([&] { return aten::layer_norm(f.eager, x, w, &b); }), R"(
[forward]
+a=120 +b=24 +c=24 native_layer_norm 6x5 fp32 (x w b > a b c) +dy=120t
[backward]
layer_norm_backward +d=120g +e=20g +f=20g native_layer_norm_backward 6x5 fp32 (dy x w b c > d e f) -b -c
accumulate_grad; accumulate_grad
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::layer_norm(f.eager, x, w, nullptr); }), R"(
[forward]
+a=120 +b=24 +c=24 native_layer_norm 6x5 fp32 without bias (x w > a b c) +dy=120t
[backward]
layer_norm_backward +d=120g +e=20g native_layer_norm_backward 6x5 fp32 without bias (dy x w b c > d e) -b -c
accumulate_grad
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::layer_norm(f.eager, x); }), R"(
[forward]
+a=120 +b=24 +c=24 native_layer_norm 6x5 fp32 without bias (x x > a b c) +dy=120t
[backward]
layer_norm_backward +d=120g pointwise 6x5 fp32,fp32->fp32 (dy x > d) -b -c
accumulate_grad -dy -a
)");
}

TEST(AtenPointwiseFormulas, ResultsOfSoftmaxAreKept) {
  Formula f;
  const Tensor& x = f.trained("x", {3, 5}, DType::fp16);
  const Tensor target = f.given("target", {3}, DType::int64);
  EXPECT_EQ(f.of([&] { return aten::softmax(f.eager, x, DType::fp32); }), R"(
[forward]
+a=60 softmax 3x5 fp16->fp32 (x > a) +dy=60t
[backward]
softmax_backward +b=30g +c=60t softmax_backward 3x5 fp32->fp16 (dy a > b) -c
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::nll_loss(f.eager, aten::log_softmax(f.eager, x), target); }), R"(
[forward]
+a=30 log_softmax 3x5 fp16 (x > a) +b=2 +c=2 nll_loss 3x5 fp16 (a target > b) +dy=2t
[backward]
nll_backward +d=30t nll_loss_backward 3x5 fp16 (dy target > d) -c
log_softmax_backward +e=30g log_softmax_backward 3x5 fp16 (d a > e) -d -a
accumulate_grad -dy -b
)");
}

TEST(AtenPointwiseFormulas, PointwiseOperationsBroadcastAndPromote) {
  Formula f;
  const Tensor &x = f.trained("x", {2, 3, 5}), &row = f.trained("row", {5}), &column = f.trained("column", {3, 1}),
               &half = f.trained("half", {2, 3, 5}, DType::bf16);
  EXPECT_EQ(f.of([&] { return aten::mul(f.eager, x, row); }), R"(
[forward]
+a=120 mul 6x5 fp32,fp32->fp32 rows (x row > a) +dy=120t
[backward]
pointwise_backward +b=120t mul 6x5 fp32,fp32->fp32 (dy x > b) +c=120g mul 6x5 fp32,fp32->fp32 rows (dy row > c)
    +d=20g sum 6x5 fp32 rows (b > d) -b
accumulate_grad
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::add(f.eager, column, x); }), R"(
[forward]
+a=120 add 6x5 fp32,fp32->fp32 broadcast (column x > a) +dy=120g
[backward]
add_backward +b=12g sum 3x10 fp32 cols (dy > b)
accumulate_grad
accumulate_grad -a
)");
  EXPECT_EQ(f.of([&] { return aten::add(f.eager, half, x); }), R"(
[forward]
+a=120 add 6x5 bf16,fp32->fp32 (half x > a) +dy=120g
add_backward
[backward]
cast_backward +b=60g cast 6x5 fp32->bf16 (dy > b)
accumulate_grad
accumulate_grad -a
)");
  // The younger view's gradient comes first.
  const auto sum_of_views = [&] {
    const Tensor turned = aten::transpose(f.eager, x, 0, 1), turned_half = aten::transpose(f.eager, half, 0, 1);
    return aten::add(f.eager, turned, turned_half);
  };
  EXPECT_EQ(f.of(sum_of_views), R"(
[forward]
+a=120 add 6x5 fp32,bf16->fp32 (x half > a) +dy=120t
add_backward
[backward]
cast_backward +b=60t cast 6x5 fp32->bf16 (dy > b)
view_backward
accumulate_grad +c=60g copy 6x5 bf16 permuted (b > c) -b
view_backward
accumulate_grad +d=120g copy 6x5 fp32 permuted (dy > d) -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::add(f.eager, column, row); }), R"(
[forward]
+a=60 add 3x5 fp32,fp32->fp32 broadcast (column row > a) +dy=60t
[backward]
add_backward +b=12g sum 3x5 fp32 cols (dy > b) +c=20g sum 3x5 fp32 rows (dy > c)
accumulate_grad
accumulate_grad -dy -a
)");
}

TEST(AtenPointwiseFormulas, PowersAndRootsKeepWhatTheirFormulasRead) {
  Formula f;
  const Tensor& x = f.trained("x", {2, 3});
  EXPECT_EQ(f.of([&] { return aten::square(f.eager, x); }), R"(
[forward]
+a=24 pow 2x3 fp32 (x > a) +dy=24t
[backward]
pointwise_backward +b=24t copy 1x6 fp32 (x > b) +c=24t scale 2x3 fp32 (b > c) +d=24g
    mul 2x3 fp32,fp32->fp32 (dy c > d) -c -b
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::rsqrt(f.eager, x); }), R"(
[forward]
+a=24 sqrt 2x3 fp32 (x > a) +dy=24t
[backward]
pointwise_backward +b=24t pow 2x3 fp32 (a > b) +c=24t scale 2x3 fp32 (dy > c) +d=24g
    mul 2x3 fp32,fp32->fp32 (c b > d) -c -b
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::cube(f.eager, x); }), R"(
[forward]
+a=24 pow 2x3 fp32 (x > a) +dy=24t
[backward]
pointwise_backward +b=24t pow 2x3 fp32 (x > b) +c=24t scale 2x3 fp32 (b > c) +d=24g
    mul 2x3 fp32,fp32->fp32 (dy c > d) -c -b
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::sigmoid(f.eager, x); }), R"(
[forward]
+a=24 tanh 2x3 fp32 (x > a) +dy=24t
[backward]
pointwise_backward +b=24g tanh_backward 2x3 fp32,fp32->fp32 (dy a > b)
accumulate_grad -dy -a
)");
}

TEST(AtenPointwiseFormulas, ElementsMoveAround) {
  Formula f;
  const Tensor& x = f.trained("x", {2, 3, 5});
  EXPECT_EQ(f.of([&] { return aten::rolled(f.eager, x); }), R"(
[forward]
pointwise x2 +a=120t roll 6x5 fp32 (x > a) +b=120 roll 6x5 fp32 (a > b) -a +dy=120t
[backward]
pointwise_backward +c=120t roll 6x5 fp32 (dy > c) +d=120g roll 6x5 fp32 (c > d) -c
accumulate_grad -dy -b
)");
  EXPECT_EQ(f.of([&] { return aten::repeated_first(f.eager, x, 4); }), R"(
[forward]
+a=480 copy 24x5 fp32 permuted (x > a) +dy=480t
[backward]
pointwise_backward +b=120g sum 4x30 fp32 rows (dy > b)
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::copied(f.eager, x); }), R"(
[forward]
contiguous +a=120 copy 1x30 fp32 (x > a) +dy=120t
[backward]
pointwise_backward +b=120g copy 1x30 fp32 (dy > b)
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::aligned_rows(f.eager, x, 8); }), R"(
[forward]
+a=192 fill 6x8 fp32 (> a) copy 6x5 fp32 permuted (x > a) +dy=120t
[backward]
pointwise_backward +b=192t fill 6x8 fp32 (> b) copy 6x5 fp32 permuted (dy > b)
pointwise_backward +c=192t copy 1x48 fp32 (b > c) +d=192g sum 1x48 fp32 rows (c > d) -c -b
accumulate_grad -dy -a
)");
  const Tensor& patches = f.trained("patches", {2, 16, 3});
  EXPECT_EQ(f.of([&] { return aten::neighbours_joined(f.eager, patches, 4); }), R"(
[forward]
+a=384 copy 32x3 fp32 permuted (patches > a) +dy=384t
[backward]
pointwise_backward +b=192t fill 16x3 fp32 (> b) copy 8x3 fp32 permuted (dy > b) +c=384g fill 32x3 fp32 (> c)
    copy 16x3 fp32 permuted (b > c) -b +d=192t fill 16x3 fp32 (> d) copy 8x3 fp32 permuted (dy > d) +e=384t
    fill 32x3 fp32 (> e) copy 16x3 fp32 permuted (d > e) add_ 32x3 fp32,fp32->fp32 (c e > c) -e -d +f=192t
    fill 16x3 fp32 (> f) copy 8x3 fp32 permuted (dy > f) +g=384t fill 32x3 fp32 (> g) copy 16x3 fp32 permuted (f > g)
    add_ 32x3 fp32,fp32->fp32 (c g > c) -g -f +h=192t fill 16x3 fp32 (> h) copy 8x3 fp32 permuted (dy > h) +i=384t
    fill 32x3 fp32 (> i) copy 16x3 fp32 permuted (h > i) add_ 32x3 fp32,fp32->fp32 (c i > c) -i -h
accumulate_grad -dy -a
)");
}

}  // namespace
}  // namespace ridgeline::eager
