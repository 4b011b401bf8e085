// What options of ZeRO stages 1 and 2 change, over the tensors of the test of both stages: a weight of 15 numbers, a
// bias of 7 and a table of 4 in shares of 10; rank 1, whose part is numbers 10 to 19, is traced.
#include <gtest/gtest.h>

#include "tests/support/zero_session.h"

namespace ridgeline {
namespace {

using testing_support::zero_training;
using testing_support::ZeroSession;

TEST(FlatZeroOptions, WithoutReduceScatterABucketIsSummedInPlaceAndThenDivided) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  t.parallel.zero.reduce_scatter = false;
  ZeroSession zero(DType::bf16, t);
  EXPECT_EQ(zero.backward({2, 0}), R"(
new dc: 8 temporaries
host main_gradient_hook
new 5: 40 gradients
-- backward
copy 1x4 bf16: dc 8 -> 5 8
free dc
new dw: 30 temporaries
host main_gradient_hook
copy 1x15 bf16: dw 30 -> 5 30
free dw
host collective
all_reduce 38 bytes bf16, 3 ranks in data: 5 38 -> 5 38
host optimizer_op
scale 1x19 bf16: 5 38 -> 5 38
new 6: 44 gradients
host optimizer_op
copy 1x15 bf16: 5 30 -> 6 30
new 7: 14 temporaries
fill 1x7 bf16: -> 7 14
free 5
)");
}

const char* const kWithoutOneSumForAllRanksEachOwnerGetsItsPart = R"(
new dc: 8 temporaries
host main_gradient_hook
new 5: 52 gradients
-- backward
copy 1x4 bf16: dc 8 -> 5 8
free dc
new db: 14 temporaries
host main_gradient_hook
copy 1x7 bf16: db 14 -> 5 14
free db
new dw: 30 temporaries
host main_gradient_hook
copy 1x15 bf16: dw 30 -> 5 30
free dw
host optimizer_op
scale 1x26 bf16: 5 52 -> 5 52
host optimizer_op
new 6: 12 temporaries
copy 1x6 bf16: 5 12 -> 6 12
host collective
reduce 12 bytes bf16, 3 ranks in data: 6 12 -> 6 12
free 6
host optimizer_op
new 7: 20 temporaries
copy 1x10 bf16: 5 20 -> 7 20
host collective
reduce 20 bytes bf16, 3 ranks in data: 7 20 -> 7 20
host optimizer_op
copy 1x5 bf16: 7 10 -> 5 10
host optimizer_op
copy 1x5 bf16: 7 10 -> 5 10
free 7
host optimizer_op
host collective
reduce 20 bytes bf16, 3 ranks in data: 5 20 -> 5 20
new 8: 44 gradients
host optimizer_op
copy 1x7 bf16: 5 14 -> 8 14
host optimizer_op
copy 1x15 bf16: 5 30 -> 8 30
free 5
)";

TEST(FlatZeroOptions, WithoutOneSumForAllRanksEachOwnerGetsItsPart) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  t.parallel.zero.use_multi_rank_bucket_allreduce = false;
  t.parallel.zero.reduce_bucket_size = 26;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward(), kWithoutOneSumForAllRanksEachOwnerGetsItsPart);
  t.parallel.zero.overlap_comm = true;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward({1}), R"(
new db: 14 temporaries
host main_gradient_hook
new 5: 52 gradients
new 6: 52 gradients
-- backward
copy 1x7 bf16: db 14 -> 5 14
free db
event 0 behind stream 0
stream 2 waits for event 0
event 1 behind stream 2
stream 0 waits for event 1
host optimizer_op
[2] scale 1x7 bf16: 5 14 -> 5 14
the host waits for the GPU
host optimizer_op
host collective
[2] reduce 10 bytes bf16, 3 ranks in data: 5 10 -> 5 10
host optimizer_op
[2] copy 1x5 bf16: 5 10 -> 5 10
the host waits for the GPU
host optimizer_op
host collective
[2] reduce 4 bytes bf16, 3 ranks in data: 5 4 -> 5 4
new 7: 44 gradients of stream 2
host optimizer_op
[2] copy 1x7 bf16: 5 14 -> 7 14
the host waits for the GPU
new 8: 30 temporaries
fill 3x5 bf16: -> 8 30
free 5
free 6
)");
}

const char* const kWithoutABufferGradientsAreAveragedInACopy = R"(
new dc: 8 temporaries
host main_gradient_hook
new db: 14 temporaries
host main_gradient_hook
new dw: 30 temporaries
host main_gradient_hook
the host waits for the GPU
host optimizer_op
new 5: 22 temporaries of stream 2
-- backward
[2] copy 1x11 bf16: dc 8 -> 5 22
host optimizer_op
[2] scale 1x11 bf16: 5 22 -> 5 22
host collective
[2] all_reduce 22 bytes bf16, 3 ranks in data: 5 22 -> 5 22
host optimizer_op
[2] copy 1x4 bf16: 5 8 -> dc 8
host optimizer_op
[2] copy 1x7 bf16: 5 14 -> db 14
free 5
the host waits for the GPU
free dc
host optimizer_op
host optimizer_op
[2] scale 1x15 bf16: dw 30 -> dw 30
host collective
[2] all_reduce 30 bytes bf16, 3 ranks in data: dw 30 -> dw 30
host optimizer_op
[2] copy 1x15 bf16: dw 30 -> dw 30
the host waits for the GPU
)";

TEST(FlatZeroOptions, WithoutABufferGradientsAreAveragedInACopy) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  t.parallel.zero.contiguous_gradients = false;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward(), R"(
new dc: 8 temporaries
host main_gradient_hook
new db: 14 temporaries
host main_gradient_hook
new dw: 30 temporaries
host main_gradient_hook
host optimizer_op
new 5: 22 temporaries
-- backward
copy 1x11 bf16: dc 8 -> 5 22
host optimizer_op
scale 1x11 bf16: 5 22 -> 5 22
host collective
all_reduce 22 bytes bf16, 3 ranks in data: 5 22 -> 5 22
host optimizer_op
copy 1x4 bf16: 5 8 -> dc 8
host optimizer_op
copy 1x7 bf16: 5 14 -> db 14
free 5
free dc
host optimizer_op
host optimizer_op
scale 1x15 bf16: dw 30 -> dw 30
host collective
all_reduce 30 bytes bf16, 3 ranks in data: dw 30 -> dw 30
host optimizer_op
copy 1x15 bf16: dw 30 -> dw 30
)");
  t.parallel.zero.overlap_comm = true;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward(), kWithoutABufferGradientsAreAveragedInACopy);
  t.parallel.data = 1;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward({0}), R"(
new dw: 30 temporaries
host main_gradient_hook
host optimizer_op
host optimizer_op
-- backward
scale 1x15 bf16: dw 30 -> dw 30
host optimizer_op
copy 1x15 bf16: dw 30 -> dw 30
new 5: 14 temporaries
fill 1x7 bf16: -> 5 14
new 6: 8 temporaries
fill 2x2 bf16: -> 6 8
)");
}

TEST(FlatZeroOptions, AGradientLargerThanABucketIsReducedWhereItIs) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  t.parallel.zero.reduce_bucket_size = 14;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward({0}), R"(
new dw: 30 temporaries
host main_gradient_hook
new 5: 28 gradients
host optimizer_op
-- backward
scale 1x15 bf16: dw 30 -> dw 30
host optimizer_op
new 6: 30 temporaries
copy 1x15 bf16: dw 30 -> 6 30
host collective
all_reduce 30 bytes bf16, 3 ranks in data: 6 30 -> 6 30
host optimizer_op
copy 1x5 bf16: 6 10 -> dw 10
free 6
new 7: 44 gradients
host optimizer_op
copy 1x15 bf16: dw 30 -> 7 30
free dw
new 8: 14 temporaries
fill 1x7 bf16: -> 8 14
free 5
)");
  t.parallel.zero.reduce_bucket_size = 15;
  EXPECT_EQ(ZeroSession(DType::bf16, t).backward({0}), R"(
new dw: 30 temporaries
host main_gradient_hook
new 5: 30 gradients
-- backward
copy 1x15 bf16: dw 30 -> 5 30
free dw
host optimizer_op
scale 1x15 bf16: 5 30 -> 5 30
host optimizer_op
new 6: 30 temporaries
copy 1x15 bf16: 5 30 -> 6 30
host collective
all_reduce 30 bytes bf16, 3 ranks in data: 6 30 -> 6 30
host optimizer_op
copy 1x5 bf16: 6 10 -> 5 10
free 6
new 7: 44 gradients
host optimizer_op
copy 1x15 bf16: 5 30 -> 7 30
new 8: 14 temporaries
fill 1x7 bf16: -> 8 14
free 5
)");
}

TEST(FlatZeroOptions, AParameterWithoutAGradientIsTakenForZeros) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  ZeroSession zero(DType::bf16, t);
  EXPECT_EQ(zero.backward({1}), R"(
new db: 14 temporaries
host main_gradient_hook
new 5: 40 gradients
-- backward
copy 1x7 bf16: db 14 -> 5 14
free db
host optimizer_op
scale 1x7 bf16: 5 14 -> 5 14
host optimizer_op
new 6: 14 temporaries
copy 1x7 bf16: 5 14 -> 6 14
host collective
all_reduce 14 bytes bf16, 3 ranks in data: 6 14 -> 6 14
host optimizer_op
copy 1x5 bf16: 6 10 -> 5 10
free 6
new 7: 44 gradients
host optimizer_op
copy 1x7 bf16: 5 14 -> 7 14
new 8: 30 temporaries
fill 3x5 bf16: -> 8 30
free 5
)");
  EXPECT_EQ(zero.backward({0}), R"(
new dw: 30 temporaries
host main_gradient_hook
new 9: 40 gradients
copy 1x15 bf16: dw 30 -> 9 30
free dw
host optimizer_op
scale 1x15 bf16: 9 30 -> 9 30
host optimizer_op
new 10: 30 temporaries
copy 1x15 bf16: 9 30 -> 10 30
host collective
all_reduce 30 bytes bf16, 3 ranks in data: 10 30 -> 10 30
host optimizer_op
copy 1x5 bf16: 10 10 -> 9 10
free 10
new 11: 44 gradients
host optimizer_op
copy 1x15 bf16: 9 30 -> 11 30
host optimizer_op
add_ 3x5 bf16,bf16->bf16: 8 30, 11 30 -> 8 30
new 12: 14 temporaries
fill 1x7 bf16: -> 12 14
host optimizer_op
add_ 1x7 bf16,bf16->bf16: 7 14, 12 14 -> 7 14
free 12
free 9
free 11
)");
}

// One GPU's share is all 15 + 7 + 5 numbers and one more, so that it is even: a piece of zeros.

}  // namespace
}  // namespace ridgeline
