// Operations of PyTorch on small tensors and their formulas backward, as they are recorded.
#include <gtest/gtest.h>

#include "sim/workload/aten/embedding.h"
#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/aten/views.h"
#include "tests/support/formula.h"

namespace ridgeline::eager {
namespace {

using testing_support::Formula;

TEST(AtenFormulas, AProductMultipliesItsGradientByTheOtherFactor) {
  Formula f;
  const Tensor &x = f.trained("x", {2, 3}), &y = f.trained("y", {3, 5});
  EXPECT_EQ(f.of([&] { return aten::mm(f.eager, x, y); }), R"(
[forward]
+a=40 mm 2x5x3 nn fp32 (x y > a) +dy=40t
[backward]
mm_backward +b=60g mm 3x5x2 tn fp32 (x dy > b) +c=24g mm 2x3x5 nt fp32 (dy y > c)
accumulate_grad
accumulate_grad -dy -a
)");
}

TEST(AtenFormulas, GradientsOfTransposedFactorsLieAsTheFactorsDo) {
  Formula f;
  const Tensor &x = f.trained("x", {3, 2}), &y = f.trained("y", {5, 3}), &b = f.trained("b", {5});
  EXPECT_EQ(f.of([&] { return aten::mm(f.eager, aten::t(f.eager, x), aten::t(f.eager, y)); }), R"(
[forward]
+a=40 mm 2x5x3 tt fp32 (x y > a) +dy=40t
[backward]
mm_backward +b=60g mm 5x3x2 tt fp32 (dy x > b) +c=24g mm 3x2x5 tt fp32 (y dy > c)
view_backward; accumulate_grad; view_backward
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::addmm(f.eager, b, aten::t(f.eager, x), aten::t(f.eager, y)); }), R"(
[forward]
+a=40 addmm 2x5x3 tt fp32 (x y b > a) +dy=40t
[backward]
addmm_backward +b=24g mm 3x2x5 tt fp32 (y dy > b) +c=60g mm 5x3x2 tt fp32 (dy x > c) +d=20g
    sum 2x5 fp32 rows (dy > d)
accumulate_grad; view_backward; accumulate_grad; view_backward
accumulate_grad -dy -a
)");
}

TEST(AtenFormulas, WhatNeedsNoGradientHasNone) {
  Formula f;
  const Tensor& y = f.trained("y", {3, 5});
  const Tensor x = f.given("x", {2, 3}), b = f.given("b", {5});
  EXPECT_EQ(f.of([&] { return aten::mm(f.eager, x, y); }), R"(
[forward]
+a=40 mm 2x5x3 nn fp32 (x y > a) +dy=40t
[backward]
mm_backward +b=60g mm 3x5x2 tn fp32 (x dy > b)
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::addmm(f.eager, b, x, y); }), R"(
[forward]
+a=40 addmm 2x5x3 nn fp32 (x y b > a) +dy=40t
[backward]
addmm_backward +b=60g mm 3x5x2 tn fp32 (x dy > b)
accumulate_grad -dy -a
)");
}

TEST(AtenFormulas, ABatchOfProductsCopiesWhatIsNoBatchOfMatrices) {
  Formula f;
  const Tensor &x = f.trained("x", {2, 5, 3, 4}), &y = f.trained("y", {2, 3, 4, 7});
  EXPECT_EQ(f.of([&] { return aten::matmul(f.eager, aten::transpose(f.eager, x, 1, 2), y); }), R"(
[forward]
+a=480 copy 30x4 fp32 permuted (x > a) +b=840 bmm 6x 5x7x4 nn fp32 (a y > b) +dy=840t
view_backward
[backward]
bmm_backward +c=672g bmm 6x 4x7x5 tn fp32 (a dy > c) +d=480t bmm 6x 5x4x7 nt fp32 (dy y > d) -a
view_backward; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
accumulate_grad +e=480g copy 30x4 fp32 permuted (d > e) -d -dy -b
)");
}

TEST(AtenFormulas, ALinearLayerSeesItsInputAsRows) {
  Formula f;
  const Tensor &x = f.trained("x", {2, 3, 4}), &w = f.trained("w", {5, 4}), &b = f.trained("b", {5});
  EXPECT_EQ(f.of([&] { return aten::linear(f.eager, x, w, &b); }), R"(
[forward]
+a=120 addmm 6x5x4 nt fp32 (x w b > a) +dy=120t
view_backward
[backward]
addmm_backward +b=96g mm 6x4x5 nn fp32 (dy w > b) +c=80g mm 5x4x6 tn fp32 (dy x > c) +d=20g
    sum 6x5 fp32 rows (dy > d)
accumulate_grad; view_backward; accumulate_grad; view_backward
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::linear(f.eager, x, w, nullptr); }), R"(
[forward]
+a=120 mm 6x5x4 nt fp32 (x w > a) +dy=120t
view_backward
[backward]
mm_backward +b=80g mm 5x4x6 tn fp32 (dy x > b) +c=96g mm 6x4x5 nn fp32 (dy w > c)
view_backward; accumulate_grad; view_backward
accumulate_grad -dy -a
)");
}

// The gradient of x through the view is a copy that nobody else sees: the other one is added into it.
TEST(AtenFormulas, ACopiedGradientTakesAnotherInPlaceAndAViewDoesNot) {
  Formula f;
  const Tensor& w = f.trained("w", {2, 12});
  EXPECT_EQ(f.of([&] {
    const Tensor x = aten::scale(f.eager, w), other = aten::scale(f.eager, x);
    const Tensor turned = aten::transpose(f.eager, aten::view(f.eager, x, {2, 3, 4}), 1, 2);
    return aten::add(f.eager, aten::view(f.eager, other, {2, 4, 3}), turned);
  }),
            R"(
[forward]
+a=96t scale 2x12 fp32 (w > a) +b=96t scale 2x12 fp32 (a > b) +c=96 add 8x3 fp32,fp32->fp32 strided (b a > c) -b -a
    +dy=96t
add_backward; view_backward; view_backward; view_backward
[backward]
view_backward_copy +d=96t copy 6x4 fp32 transposed (dy > d)
pointwise_backward +e=96t scale 2x12 fp32 (dy > e)
fan_in_add add_ 2x12 fp32,fp32->fp32 (d e > d) -e
pointwise_backward +f=96g scale 2x12 fp32 (d > f) -d
accumulate_grad -dy -c
)");
  EXPECT_EQ(f.of([&] {
    const Tensor x = aten::scale(f.eager, w), other = aten::scale(f.eager, x);
    return aten::add(f.eager, other, aten::view(f.eager, aten::view(f.eager, x, {24}), {2, 12}));
  }),
            R"(
[forward]
+a=96t scale 2x12 fp32 (w > a) +b=96t scale 2x12 fp32 (a > b) +c=96 add 2x12 fp32,fp32->fp32 (b a > c) -b -a +dy=96t
add_backward; view_backward; view_backward
[backward]
pointwise_backward +d=96t scale 2x12 fp32 (dy > d)
fan_in_add +e=96t add 2x12 fp32,fp32->fp32 (dy d > e) -d
pointwise_backward +f=96g scale 2x12 fp32 (e > f) -e
accumulate_grad -dy -c
)");
}

TEST(AtenFormulas, PartsThatNobodyUsedAreZeros) {
  Formula f;
  const Tensor& x = f.trained("x", {2, 9});
  EXPECT_EQ(f.of([&] { return aten::split_last<3>(f.eager, x)[1]; }), R"(
+dy=24t
[backward]
split_backward +a=24t fill 2x3 fp32 (> a) +b=24t fill 2x3 fp32 (> b) +c=72g cat 2x3 fp32 x3 joined (a dy b > c) -a -b
accumulate_grad -dy
)");
  EXPECT_EQ(f.of([&] {
    const auto parts = aten::split_last<3>(f.eager, x);
    const Tensor both = aten::mul(f.eager, parts[0], parts[1]);
    return aten::mul(f.eager, both, aten::t(f.eager, aten::reshape(f.eager, aten::t(f.eager, parts[2]), {3, 2})));
  }),
            R"(
[forward]
+a=24 mul 2x3 fp32,fp32->fp32 strided (24/x 24/x > a) +b=24 mul 2x3 fp32,fp32->fp32 strided (a 24/x > b) +dy=24t
[backward]
pointwise_backward +c=24t mul 2x3 fp32,fp32->fp32 (dy a > c) +d=24t mul 2x3 fp32,fp32->fp32 strided (dy 24/x > d) -a
view_backward; view_backward; view_backward
pointwise_backward +e=24t mul 2x3 fp32,fp32->fp32 strided (d 24/x > e) +f=24t
    mul 2x3 fp32,fp32->fp32 strided (d 24/x > f) -d
split_backward +g=72g cat 2x3 fp32 x3 joined (f e c > g) -f -e -c
accumulate_grad -dy -b
)");
  Tensor narrow, wide;
  EXPECT_EQ(f.of([&] {
    aten::split_last(f.eager, x, {2, 7}, {&narrow, &wide});
    return wide;
  }),
            R"(
+dy=56t
[backward]
split_backward +a=16t fill 2x2 fp32 (> a) +b=72g cat 2x4 fp32 x2 joined (a dy > b) -a
accumulate_grad -dy
)");
}

TEST(AtenFormulas, PiecesAreViewsWhoseGradientsAreCopiedIntoZeros) {
  Formula f;
  const Tensor& x = f.trained("x", {4, 3, 6});
  EXPECT_EQ(f.of([&] { return aten::slice_last(f.eager, x, 5); }), R"(
+dy=240t
[backward]
pointwise_backward +a=288g fill 12x6 fp32 (> a) copy 12x5 fp32 permuted (dy > a)
accumulate_grad -dy
)");
  EXPECT_EQ(f.of([&] { return aten::slice(f.eager, x, 0, 2); }), R"(
+dy=144t
[backward]
pointwise_backward +a=288g fill 12x6 fp32 (> a) copy 6x6 fp32 (dy > a)
accumulate_grad -dy
)");
  EXPECT_EQ(f.of([&] { return aten::every_second(f.eager, x, 1); }), R"(
+dy=144t
[backward]
pointwise_backward +a=288g fill 12x6 fp32 (> a) copy 12x3 fp32 permuted (dy > a)
accumulate_grad -dy
)");
  EXPECT_EQ(f.of([&] { return aten::select(f.eager, x, 1); }), R"(
+dy=96t
[backward]
pointwise_backward +a=288g fill 12x6 fp32 (> a) copy 4x6 fp32 permuted (dy > a)
accumulate_grad -dy
)");
  EXPECT_EQ(f.of([&] { return aten::select_first(f.eager, x); }), R"(
+dy=96t
[backward]
pointwise_backward +a=288g fill 12x6 fp32 (> a) copy 4x6 fp32 permuted (dy > a)
accumulate_grad -dy
)");
  EXPECT_EQ(f.of([&] {
    return aten::permute(f.eager, x, {2, 0, 1});
  }),
            R"(
+dy=288t
view_backward
[backward]
accumulate_grad +a=288g copy 12x6 fp32 transposed (dy > a) -dy
)");
}

TEST(AtenFormulas, JoinedTensorsGetViewsOfTheGradient) {
  Formula f;
  const Tensor &x = f.trained("x", {2, 3}), &y = f.trained("y", {2, 4}), &z = f.trained("z", {2, 5});
  EXPECT_EQ(f.of([&] {
    return aten::join(f.eager, {&x, &y, &z});
  }),
            R"(
[forward]
+a=96 cat 2x4 fp32 x3 joined (x y z > a) +dy=96t
view_backward
[backward]
accumulate_grad +b=24g copy 2x3 fp32 permuted (24/dy > b)
accumulate_grad +c=32g copy 2x4 fp32 permuted (32/dy > c)
accumulate_grad +d=40g copy 2x5 fp32 permuted (40/dy > d) -dy -a
)");
  const Tensor &u = f.trained("u", {3, 7}), &v = f.trained("v", {2, 7});
  EXPECT_EQ(f.of([&] {
    return aten::join(f.eager, {&u, &v}, 0);
  }),
            R"(
[forward]
+a=140 cat 1x17 fp32 x2 joined (u v > a) +dy=140g
view_backward; accumulate_grad
accumulate_grad -a
)");
  EXPECT_EQ(f.of([&] {
    return aten::join(f.eager, {&x, &x});
  }),
            R"(
[forward]
+a=48 cat 2x3 fp32 x2 joined (x x > a) +dy=48t
view_backward
[backward]
fan_in_add +b=24g add 2x3 fp32,fp32->fp32 strided (24/dy 24/dy > b)
accumulate_grad -dy -a
)");
}

TEST(AtenFormulas, SumsAndMeansSpreadTheirGradient) {
  Formula f;
  const Tensor& x = f.trained("x", {2, 3, 5});
  EXPECT_EQ(f.of([&] { return aten::sum_middle(f.eager, x); }), R"(
[forward]
+a=40 sum 6x5 fp32 rows (x > a) +dy=40t
view_backward
[backward]
accumulate_grad +b=120g copy 6x5 fp32 permuted (dy > b) -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::mean_middle(f.eager, x); }), R"(
[forward]
+a=40 sum 6x5 fp32 rows (x > a) +dy=40t
[backward]
view_backward +b=120g div 6x5 fp32 strided (dy > b)
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::mean_last(f.eager, x); }), R"(
[forward]
+a=24 mean 6x5 fp32 (x > a) +dy=24t
[backward]
pointwise_backward +b=120g div 6x5 fp32 strided (dy > b)
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::mean_all(f.eager, x); }), R"(
[forward]
+a=4 sum 1x30 fp32 (x > a) +dy=4t
[backward]
pointwise_backward +b=120g div 6x5 fp32 strided (dy > b)
accumulate_grad -dy -a
)");
}

TEST(AtenFormulas, RowsByIndexAreAddedUpWhereTheyCameFrom) {
  Formula f;
  const Tensor& x = f.trained("x", {7, 3});
  const Tensor index = f.given("index", {5}, DType::int64);
  EXPECT_EQ(f.of([&] {
    return aten::rows_at(f.eager, x, index, {5, 3});
  }),
            R"(
[forward]
+a=60 index 5x3 fp32,int64->fp32 broadcast (x index > a) +dy=60t
[backward]
pointwise_backward +b=84g fill 7x3 fp32 (> b) +c=40t +d=40t scale 1x5 int64 (index > c) scale 1x5 int64 (index > c)
    scale 1x5 int64 (index > c) sort 1x5 int64 3 bits (index > c d) index_put 5 of 7x3 fp32 added (dy index > b) -d
    -c
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] { return aten::embedding(f.eager, x, index); }), R"(
[forward]
+a=60 embedding 5 of 7x3 fp32 (x index > a) +dy=60t
[backward]
embedding_backward +b=84g embedding_dense_backward 5 of 7x3 fp32 (dy index > b)
accumulate_grad -dy -a
)");
  EXPECT_EQ(f.of([&] {
    return aten::embedding(f.eager, x, aten::expand(f.eager, aten::view(f.eager, index, {1, 5}), {2, 5}));
  }),
            R"(
[forward]
+a=80t copy 2x5 int64 permuted (index > a) +b=120 embedding 10 of 7x3 fp32 (x a > b) -a +dy=120t
[backward]
embedding_backward +c=80t copy 2x5 int64 permuted (index > c) +d=84g
    embedding_dense_backward 10 of 7x3 fp32 (dy c > d) -c
accumulate_grad -dy -b
)");
}

}  // namespace
}  // namespace ridgeline::eager
