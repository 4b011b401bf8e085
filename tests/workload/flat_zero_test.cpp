// ZeRO stages 1 and 2 over 26 numbers on three ranks: shares of 10. The weight's 15 lie on ranks 0 and 1 (10, 5), the
// bias's 7 on 1 and 2 (5, 2), the table's 4 on 2. Rank 1 keeps most gradients, 22, and is the one that is traced.
#include <gtest/gtest.h>

#include "tests/support/zero_session.h"

namespace ridgeline {
namespace {

using testing_support::zero_training;
using testing_support::ZeroSession;

// Every parameter is sent from rank 0; all move into one buffer of 30 in 16 bits; a share in fp32 is copied out.
TEST(FlatZeroListing, PartsMoveIntoOneBuffer) {
  EXPECT_EQ(ZeroSession(DType::bf16, zero_training(DataStrategy::zero2)).made, R"(
host collective
broadcast 30 bytes bf16, 3 ranks in data: w 30 -> w 30
host collective
broadcast 14 bytes bf16, 3 ranks in data: b 14 -> b 14
host collective
broadcast 8 bytes bf16, 3 ranks in data: c 8 -> c 8
new 1: 60 weights
free w
free b
free c
new 2: 20 temporaries
new 3: 40 optimizer_state
new 4: 40 temporaries
free 4
free 2
)");
  TrainingDescription alone = zero_training(DataStrategy::zero3);
  alone.parallel.data = 1;
  EXPECT_EQ(ZeroSession(DType::fp32, alone).made, R"(
new 1: 104 weights
free w
free b
free c
new 2: 104 temporaries
new 3: 104 optimizer_state
new 4: 104 temporaries
free 4
free 2
)");
}

// A bucket of 20 takes the table and the bias, 11; the weight would make it 26.

const char* const kStage2ReducesABucketWhenTheNextGradientDoesNotFitFirst = R"(
new dc: 8 temporaries
host main_gradient_hook
new 9: 40 gradients
copy 1x4 bf16: dc 8 -> 9 8
free dc
new db: 14 temporaries
host main_gradient_hook
copy 1x7 bf16: db 14 -> 9 14
free db
new dw: 30 temporaries
host main_gradient_hook
host optimizer_op
scale 1x11 bf16: 9 22 -> 9 22
host optimizer_op
new 10: 22 temporaries
copy 1x11 bf16: 9 22 -> 10 22
host collective
all_reduce 22 bytes bf16, 3 ranks in data: 10 22 -> 10 22
host optimizer_op
copy 1x5 bf16: 10 10 -> 9 10
free 10
new 11: 44 gradients
host optimizer_op
copy 1x7 bf16: 9 14 -> 11 14
copy 1x15 bf16: dw 30 -> 9 30
free dw
host optimizer_op
scale 1x15 bf16: 9 30 -> 9 30
host optimizer_op
new 12: 30 temporaries
copy 1x15 bf16: 9 30 -> 12 30
host collective
all_reduce 30 bytes bf16, 3 ranks in data: 12 30 -> 12 30
host optimizer_op
copy 1x5 bf16: 12 10 -> 9 10
free 12
host optimizer_op
copy 1x15 bf16: 9 30 -> 11 30
host optimizer_op
add_ 3x5 bf16,bf16->bf16: 7 30, 11 30 -> 7 30
host optimizer_op
add_ 1x7 bf16,bf16->bf16: 7 14, 11 14 -> 7 14
free 9
free 11
)";
const char* const kStage2ReducesABucketWhenTheNextGradientDoesNotFitSecond = R"(
host optimizer_op 14
new 13: 4 temporaries
new 14: 20 temporaries
-- optimizer
cast 1x5 bf16->fp32: 7 10 -> 14 20
new 15: 5 temporaries
new 16: 5 temporaries
eq 1x5 fp32->bool: 14 20 -> 15 5
eq 1x5 fp32->bool: 14 20 -> 16 5
new 17: 5 temporaries
pointwise 1x5 bool,bool->bool: 15 5, 16 5 -> 17 5
new 18: 20 temporaries
cast 1x5 bool->fp32: 17 5 -> 18 20
new 19: 4 temporaries
sum 1x5 fp32: 18 20 -> 19 4
add_ 1x1 fp32,fp32->fp32: 13 4, 19 4 -> 13 4
free 19
free 18
free 17
free 16
free 15
free 14
new 20: 20 temporaries
cast 1x5 bf16->fp32: 7 10 -> 20 20
new 21: 5 temporaries
new 22: 5 temporaries
eq 1x5 fp32->bool: 20 20 -> 21 5
eq 1x5 fp32->bool: 20 20 -> 22 5
new 23: 5 temporaries
pointwise 1x5 bool,bool->bool: 21 5, 22 5 -> 23 5
new 24: 20 temporaries
cast 1x5 bool->fp32: 23 5 -> 24 20
new 25: 4 temporaries
sum 1x5 fp32: 24 20 -> 25 4
add_ 1x1 fp32,fp32->fp32: 13 4, 25 4 -> 13 4
free 25
free 24
free 23
free 22
free 21
free 20
host optimizer_op 2
2 operations on numbers
new 28: 1 temporaries
host collective
all_reduce 1 bytes uint8, 3 ranks in data: 28 1 -> 28 1
free 28
copy_to_host 1x1 fp32: 13 4
the host waits for the GPU
free 13
host optimizer_op 4
new 29: 40 temporaries
cast 1x5 bf16->fp64: 7 10 -> 29 40
new 30: 8 temporaries
linalg_vector_norm 1x5 fp64: 29 40 -> 30 8
free 29
new 31: 40 temporaries
cast 1x5 bf16->fp64: 7 10 -> 31 40
new 32: 8 temporaries
linalg_vector_norm 1x5 fp64: 31 40 -> 32 8
free 31
host optimizer_op
new 33: 16 temporaries
cat 1x1 fp64 of 2: 30 8, 32 8 -> 33 16
host optimizer_op 3
3 operations on numbers
new 37: 4 temporaries
host collective
all_reduce 4 bytes fp32, 3 ranks in data: 37 4 -> 37 4
free 37
host optimizer_op 8
8 operations on numbers
free 33
free 30
free 32
host optimizer_op
new 46: 20 temporaries
copy 1x10 bf16: 7 20 -> 46 20
new 47: 40 gradients
cast 1x10 bf16->fp32: 46 20 -> 47 40
free 46
free 7
host optimizer_op
scale 1x10 fp32: 47 40 -> 47 40
host fused_fixed
host per_parameter_fused
fused_sgd 1 tensors, 10 elements fp32: 3 40, 47 40, 47 40
free 47
host optimizer_op
cast 1x10 fp32->bf16: 3 40 -> 1 20
host collective
all_gather 60 bytes bf16, 3 ranks in data: 1 60 -> 1 60
host view 3
)";

TEST(FlatZeroListing, Stage2ReducesABucketWhenTheNextGradientDoesNotFit) {
  ZeroSession zero(DType::bf16, zero_training(DataStrategy::zero2));
  EXPECT_EQ(zero.backward({2, 1, 0}, false), R"(
new dc: 8 temporaries
host main_gradient_hook
new 5: 40 gradients
-- backward
copy 1x4 bf16: dc 8 -> 5 8
free dc
new db: 14 temporaries
host main_gradient_hook
copy 1x7 bf16: db 14 -> 5 14
free db
new dw: 30 temporaries
host main_gradient_hook
host optimizer_op
scale 1x11 bf16: 5 22 -> 5 22
host optimizer_op
new 6: 22 temporaries
copy 1x11 bf16: 5 22 -> 6 22
host collective
all_reduce 22 bytes bf16, 3 ranks in data: 6 22 -> 6 22
host optimizer_op
copy 1x5 bf16: 6 10 -> 5 10
free 6
new 7: 44 gradients
host optimizer_op
copy 1x7 bf16: 5 14 -> 7 14
copy 1x15 bf16: dw 30 -> 5 30
free dw
host optimizer_op
scale 1x15 bf16: 5 30 -> 5 30
host optimizer_op
new 8: 30 temporaries
copy 1x15 bf16: 5 30 -> 8 30
host collective
all_reduce 30 bytes bf16, 3 ranks in data: 8 30 -> 8 30
host optimizer_op
copy 1x5 bf16: 8 10 -> 5 10
free 8
host optimizer_op
copy 1x15 bf16: 5 30 -> 7 30
free 5
)");
  EXPECT_EQ(zero.backward(), kStage2ReducesABucketWhenTheNextGradientDoesNotFitFirst);
  EXPECT_EQ(zero.step(), kStage2ReducesABucketWhenTheNextGradientDoesNotFitSecond);
}

// The bucket's last reduction is waited for before the other buffer is filled anew.
TEST(FlatZeroListing, WithOverlapTwoBuffersTakeTurns) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  t.parallel.zero.overlap_comm = true;
  ZeroSession zero(DType::bf16, t);
  EXPECT_EQ(zero.backward(), R"(
new dc: 8 temporaries
host main_gradient_hook
new 5: 40 gradients
new 6: 40 gradients
-- backward
copy 1x4 bf16: dc 8 -> 5 8
free dc
new db: 14 temporaries
host main_gradient_hook
copy 1x7 bf16: db 14 -> 5 14
free db
new dw: 30 temporaries
host main_gradient_hook
event 0 behind stream 0
stream 2 waits for event 0
event 1 behind stream 2
stream 0 waits for event 1
host optimizer_op
[2] scale 1x11 bf16: 5 22 -> 5 22
host optimizer_op
new 7: 22 temporaries of stream 2
[2] copy 1x11 bf16: 5 22 -> 7 22
host collective
[2] all_reduce 22 bytes bf16, 3 ranks in data: 7 22 -> 7 22
host optimizer_op
[2] copy 1x5 bf16: 7 10 -> 5 10
free 7
new 8: 44 gradients of stream 2
host optimizer_op
[2] copy 1x7 bf16: 5 14 -> 8 14
copy 1x15 bf16: dw 30 -> 6 30
free dw
event 2 behind stream 0
stream 2 waits for event 2
event 3 behind stream 2
stream 0 waits for event 3
host optimizer_op
[2] scale 1x15 bf16: 6 30 -> 6 30
host optimizer_op
new 9: 30 temporaries of stream 2
[2] copy 1x15 bf16: 6 30 -> 9 30
host collective
[2] all_reduce 30 bytes bf16, 3 ranks in data: 9 30 -> 9 30
host optimizer_op
[2] copy 1x5 bf16: 9 10 -> 6 10
free 9
host optimizer_op
[2] copy 1x15 bf16: 6 30 -> 8 30
the host waits for the GPU
free 5
free 6
)");
}

}  // namespace
}  // namespace ridgeline
