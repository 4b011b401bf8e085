// ZeRO stage 1, one GPU, and the update of a share, over the same three tensors as the tests of stage 2.
#include <gtest/gtest.h>

#include "tests/support/zero_session.h"

namespace ridgeline {
namespace {

using testing_support::zero_training;
using testing_support::ZeroSession;

// Gradients of earlier micro-batches stay where they are; all are reduced behind the last backward pass.

const char* const kStage1ReducesBehindTheLastBackwardPass = R"(
host optimizer_op 4
new 9: 40 temporaries
-- optimizer
cast 1x5 fp32->fp64: 7 20 -> 9 40
new 10: 8 temporaries
linalg_vector_norm 1x5 fp64: 9 40 -> 10 8
free 9
new 11: 40 temporaries
cast 1x5 fp32->fp64: 7 20 -> 11 40
new 12: 8 temporaries
linalg_vector_norm 1x5 fp64: 11 40 -> 12 8
free 11
host optimizer_op
new 13: 16 temporaries
cat 1x1 fp64 of 2: 10 8, 12 8 -> 13 16
host optimizer_op 3
3 operations on numbers
new 17: 4 temporaries
host collective
all_reduce 4 bytes fp32, 3 ranks in data: 17 4 -> 17 4
free 17
host optimizer_op 8
8 operations on numbers
free 13
free 10
free 12
host optimizer_op
new 26: 40 gradients
copy 1x10 fp32: 7 40 -> 26 40
free 7
host optimizer_op
scale 1x10 fp32: 26 40 -> 26 40
host fused_fixed
host per_parameter_fused
fused_sgd 1 tensors, 10 elements fp32: 3 40, 26 40, 26 40
free 26
host optimizer_op
cast 1x10 fp32: 3 40 -> 1 40
host collective
all_gather 120 bytes fp32, 3 ranks in data: 1 120 -> 1 120
host view 3
)";

TEST(ZeroStep, Stage1ReducesBehindTheLastBackwardPass) {
  ZeroSession zero(DType::fp32, zero_training(DataStrategy::zero1));
  EXPECT_EQ(zero.backward({2, 1, 0}, false), R"(
new dc: 16 temporaries
host main_gradient_hook
new 5: 80 gradients
new db: 28 temporaries
host main_gradient_hook
new dw: 60 temporaries
host main_gradient_hook
)");
  EXPECT_EQ(zero.backward({2, 1, 0}, true), R"(
host main_gradient_hook
host main_gradient_hook
host main_gradient_hook
-- backward
copy 1x15 fp32: dw 60 -> 5 60
free dw
host optimizer_op
scale 1x15 fp32: 5 60 -> 5 60
host optimizer_op
new 6: 60 temporaries
copy 1x15 fp32: 5 60 -> 6 60
host collective
all_reduce 60 bytes fp32, 3 ranks in data: 6 60 -> 6 60
host optimizer_op
copy 1x5 fp32: 6 20 -> 5 20
free 6
new 7: 88 gradients
host optimizer_op
copy 1x15 fp32: 5 60 -> 7 60
copy 1x7 fp32: db 28 -> 5 28
free db
copy 1x4 fp32: dc 16 -> 5 16
free dc
host optimizer_op
scale 1x11 fp32: 5 44 -> 5 44
host optimizer_op
new 8: 44 temporaries
copy 1x11 fp32: 5 44 -> 8 44
host collective
all_reduce 44 bytes fp32, 3 ranks in data: 8 44 -> 8 44
host optimizer_op
copy 1x5 fp32: 8 20 -> 5 20
free 8
host optimizer_op
copy 1x7 fp32: 5 28 -> 7 28
free 5
)");
  EXPECT_EQ(zero.step(), kStage1ReducesBehindTheLastBackwardPass);
}

TEST(ZeroStep, Stage1WithOverlapReducesWithinTheLastBackwardPass) {
  TrainingDescription t = zero_training(DataStrategy::zero1);
  t.parallel.zero.overlap_comm = true;
  ZeroSession zero(DType::bf16, t);
  EXPECT_EQ(zero.backward({2, 0}, false), R"(
new dc: 8 temporaries
host main_gradient_hook
new 5: 40 gradients
new 6: 40 gradients
new dw: 30 temporaries
host main_gradient_hook
)");
  EXPECT_EQ(zero.backward({2, 0}, true), R"(
host main_gradient_hook
-- backward
copy 1x4 bf16: dc 8 -> 5 8
free dc
host main_gradient_hook
copy 1x15 bf16: dw 30 -> 5 30
free dw
event 0 behind stream 0
stream 2 waits for event 0
event 1 behind stream 2
stream 0 waits for event 1
host optimizer_op
[2] scale 1x19 bf16: 5 38 -> 5 38
host optimizer_op
new 7: 38 temporaries of stream 2
[2] copy 1x19 bf16: 5 38 -> 7 38
host collective
[2] all_reduce 38 bytes bf16, 3 ranks in data: 7 38 -> 7 38
host optimizer_op
[2] copy 1x5 bf16: 7 10 -> 5 10
free 7
new 8: 44 gradients of stream 2
host optimizer_op
[2] copy 1x15 bf16: 5 30 -> 8 30
the host waits for the GPU
new 9: 14 temporaries
fill 1x7 bf16: -> 9 14
free 6
free 5
)");
}

// Nothing is sent; the buffer is scaled all the same, and overlap_comm changes nothing.

const char* const kOneGpuScalesItsBuckets = R"(
host optimizer_op 21
new 7: 4 temporaries
new 8: 60 temporaries
-- optimizer
cast 1x15 fp16->fp32: 6 30 -> 8 60
new 9: 15 temporaries
new 10: 15 temporaries
eq 1x15 fp32->bool: 8 60 -> 9 15
eq 1x15 fp32->bool: 8 60 -> 10 15
new 11: 15 temporaries
pointwise 1x15 bool,bool->bool: 9 15, 10 15 -> 11 15
new 12: 60 temporaries
cast 1x15 bool->fp32: 11 15 -> 12 60
new 13: 4 temporaries
sum 1x15 fp32: 12 60 -> 13 4
add_ 1x1 fp32,fp32->fp32: 7 4, 13 4 -> 7 4
free 13
free 12
free 11
free 10
free 9
free 8
new 14: 28 temporaries
cast 1x7 fp16->fp32: 6 14 -> 14 28
new 15: 7 temporaries
new 16: 7 temporaries
eq 1x7 fp32->bool: 14 28 -> 15 7
eq 1x7 fp32->bool: 14 28 -> 16 7
new 17: 7 temporaries
pointwise 1x7 bool,bool->bool: 15 7, 16 7 -> 17 7
new 18: 28 temporaries
cast 1x7 bool->fp32: 17 7 -> 18 28
new 19: 4 temporaries
sum 1x7 fp32: 18 28 -> 19 4
add_ 1x1 fp32,fp32->fp32: 7 4, 19 4 -> 7 4
free 19
free 18
free 17
free 16
free 15
free 14
new 20: 16 temporaries
cast 1x4 fp16->fp32: 6 8 -> 20 16
new 21: 4 temporaries
new 22: 4 temporaries
eq 1x4 fp32->bool: 20 16 -> 21 4
eq 1x4 fp32->bool: 20 16 -> 22 4
new 23: 4 temporaries
pointwise 1x4 bool,bool->bool: 21 4, 22 4 -> 23 4
new 24: 16 temporaries
cast 1x4 bool->fp32: 23 4 -> 24 16
new 25: 4 temporaries
sum 1x4 fp32: 24 16 -> 25 4
add_ 1x1 fp32,fp32->fp32: 7 4, 25 4 -> 7 4
free 25
free 24
free 23
free 22
free 21
free 20
host optimizer_op 2
2 operations on numbers
copy_to_host 1x1 fp32: 7 4
the host waits for the GPU
free 7
host optimizer_op 6
new 28: 120 temporaries
cast 1x15 fp16->fp64: 6 30 -> 28 120
new 29: 8 temporaries
linalg_vector_norm 1x15 fp64: 28 120 -> 29 8
free 28
new 30: 56 temporaries
cast 1x7 fp16->fp64: 6 14 -> 30 56
new 31: 8 temporaries
linalg_vector_norm 1x7 fp64: 30 56 -> 31 8
free 30
new 32: 32 temporaries
cast 1x4 fp16->fp64: 6 8 -> 32 32
new 33: 8 temporaries
linalg_vector_norm 1x4 fp64: 32 32 -> 33 8
free 32
host optimizer_op
new 34: 24 temporaries
cat 1x1 fp64 of 3: 29 8, 31 8, 33 8 -> 34 24
host optimizer_op 3
3 operations on numbers
host optimizer_op 8
8 operations on numbers
free 34
free 29
free 31
free 33
host optimizer_op
new 46: 52 temporaries
copy 1x26 fp16: 6 52 -> 46 52
new 47: 104 gradients
cast 1x26 fp16->fp32: 46 52 -> 47 104
free 46
free 6
host optimizer_op 6
6 operations on numbers
host optimizer_op
scale 1x26 fp32: 47 104 -> 47 104
host fused_fixed
host per_parameter_fused
fused_sgd 1 tensors, 26 elements fp32: 3 104, 47 104, 47 104
free 47
host optimizer_op
cast 1x26 fp32->fp16: 3 104 -> 1 52
host view 3
)";

TEST(ZeroStep, OneGpuScalesItsBuckets) {
  TrainingDescription t = zero_training(DataStrategy::zero3);
  t.parallel.data = 1;
  t.parallel.zero.overlap_comm = true;
  t.gradient_clipping = 1.0;
  ZeroSession zero(DType::fp16, t);
  EXPECT_EQ(zero.backward({2, 0, 1}), R"(
new dc: 8 temporaries
host main_gradient_hook
new 5: 40 gradients
-- backward
copy 1x4 fp16: dc 8 -> 5 8
free dc
new dw: 30 temporaries
host main_gradient_hook
copy 1x15 fp16: dw 30 -> 5 30
free dw
new db: 14 temporaries
host main_gradient_hook
host optimizer_op
scale 1x19 fp16: 5 38 -> 5 38
new 6: 52 gradients
host optimizer_op
copy 1x4 fp16: 5 8 -> 6 8
host optimizer_op
copy 1x15 fp16: 5 30 -> 6 30
copy 1x7 fp16: db 14 -> 5 14
free db
host optimizer_op
scale 1x7 fp16: 5 14 -> 5 14
host optimizer_op
copy 1x7 fp16: 5 14 -> 6 14
free 5
)");
  EXPECT_EQ(zero.step(), kOneGpuScalesItsBuckets);
}

// The table took no gradient: rank 2 would keep zeros for it. Rank 1 has no part of it.
TEST(ZeroStep, ZerosFillTheShareUp) {
  TrainingDescription t = zero_training(DataStrategy::zero2);
  t.parallel.data = 1;
  ZeroSession zero(DType::fp32, t, {5});
  zero.backward();
  EXPECT_EQ(zero.step(), R"(
new 7: 4 temporaries
-- optimizer
fill 1x1 fp32: -> 7 4
host optimizer_op 8
new 8: 120 temporaries
cast 1x15 fp32->fp64: 6 60 -> 8 120
new 9: 8 temporaries
linalg_vector_norm 1x15 fp64: 8 120 -> 9 8
free 8
new 10: 56 temporaries
cast 1x7 fp32->fp64: 6 28 -> 10 56
new 11: 8 temporaries
linalg_vector_norm 1x7 fp64: 10 56 -> 11 8
free 10
new 12: 40 temporaries
cast 1x5 fp32->fp64: 6 20 -> 12 40
new 13: 8 temporaries
linalg_vector_norm 1x5 fp64: 12 40 -> 13 8
free 12
new 14: 8 temporaries
cast 1x1 fp32->fp64: 7 4 -> 14 8
new 15: 8 temporaries
linalg_vector_norm 1x1 fp64: 14 8 -> 15 8
free 14
host optimizer_op
new 16: 32 temporaries
cat 1x1 fp64 of 4: 9 8, 11 8, 13 8, 15 8 -> 16 32
host optimizer_op 3
3 operations on numbers
host optimizer_op 8
8 operations on numbers
free 16
free 9
free 11
free 13
free 15
host optimizer_op
new 28: 112 gradients
copy 1x28 fp32: 6 108 -> 28 112
free 7
free 6
host optimizer_op
scale 1x28 fp32: 28 112 -> 28 112
host fused_fixed
host per_parameter_fused
fused_sgd 1 tensors, 28 elements fp32: 3 112, 28 112, 28 112
free 28
host optimizer_op
cast 1x28 fp32: 3 112 -> 1 112
host view 3
)");
}

// A gradient of 15 beside buckets of 14 is reduced where it is; one of 15 numbers fits a bucket of 15.

}  // namespace
}  // namespace ridgeline
