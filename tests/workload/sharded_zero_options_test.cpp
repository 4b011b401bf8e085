// What options of ZeRO stage 3 change, over three ranks: of a weight of 15 numbers a rank holds 5, of a bias of 7 and
// two more 3, of a table of 4 and two more 2.
#include <gtest/gtest.h>

#include "tests/support/zero_session.h"

namespace ridgeline {
namespace {

using testing_support::forward_of;
using testing_support::sparing_training;
using testing_support::ZeroSession;

const char* const kWithOverlapReductionsHaveAStreamOfTheirOwnFirst = R"(
new dc: 8 temporaries
host fsdp_hooks
host fsdp_gather
new 14: 8 temporaries of stream 2
host collective
event 9 behind stream 2
stream 1 waits for event 9
-- backward
[1] all_gather 12 bytes fp16, 3 ranks in shard: 1 4 -> 14 8
event 10 behind stream 1
the host waits for event 2
stream 2 waits for event 10
event 11 behind stream 2
event 12 behind stream 2
stream 0 waits for event 12
host main_gradient_hook
event 13 behind stream 0
stream 3 waits for event 13
[3] copy 1x4 fp16: dc 8 -> 5 8
free dc
new db: 14 temporaries
free 14
host fsdp_hooks
host fsdp_gather
new 15: 48 temporaries of stream 2
[2] copy 1x8 fp16: 1 16 -> 15 16
host collective
event 14 behind stream 2
stream 1 waits for event 14
[1] all_gather 48 bytes fp16, 3 ranks in shard: 15 16 -> 15 48
event 15 behind stream 1
the host waits for event 3
stream 2 waits for event 15
host optimizer_op
new 16: 30 temporaries of stream 2
[2] copy 1x15 fp16: 15 30 -> 16 30
host optimizer_op
new 17: 14 temporaries of stream 2
[2] copy 1x7 fp16: 15 14 -> 17 14
event 16 behind stream 2
the host waits for event 7
free 15
event 17 behind stream 2
event 18 behind stream 2
stream 0 waits for event 18
host main_gradient_hook
event 19 behind stream 0
stream 3 waits for event 19
[3] copy 1x7 fp16: db 14 -> 5 14
free db
new dw: 30 temporaries
host main_gradient_hook
host optimizer_op
new 18: 30 temporaries of stream 3
[3] copy 1x15 fp16: 5 30 -> 18 30
host optimizer_op
[3] scale 1x15 fp16: 18 30 -> 18 30
host collective
[3] reduce_scatter 30 bytes fp16, 3 ranks in shard: 18 30 -> 18 10
host optimizer_op
[3] copy 1x3 fp16: 18 6 -> 6 6
host optimizer_op
[3] copy 1x2 fp16: 18 4 -> 6 4
free 18
event 20 behind stream 3
event 21 behind stream 0
stream 3 waits for event 21
[3] copy 1x15 fp16: dw 30 -> 5 30
free dw
free 16
free 17
host optimizer_op
host optimizer_op
[3] scale 1x15 fp16: 5 30 -> 5 30
host collective
[3] reduce_scatter 30 bytes fp16, 3 ranks in shard: 5 30 -> 5 10
host optimizer_op
[3] copy 1x5 fp16: 5 10 -> 6 10
event 22 behind stream 3
the host waits for event 22
)";
const char* const kWithOverlapReductionsHaveAStreamOfTheirOwnSecond = R"(
host per_parameter_zero_grad 3
host optimizer_op 9
new 19: 10 temporaries of stream 3
new 20: 1 temporaries of stream 3
-- optimizer
[3] eq 1x10 fp16->bool: 6 20 -> 19 10
[3] sum 1x10 uint8: 19 10 -> 20 1
free 20
free 19
new 21: 10 temporaries of stream 3
new 22: 1 temporaries of stream 3
[3] eq 1x10 fp16->bool: 6 20 -> 21 10
[3] sum 1x10 uint8: 21 10 -> 22 1
free 22
free 21
event 23 behind stream 3
stream 0 waits for event 23
new 23: 1 temporaries
host collective
all_reduce 1 bytes uint8, 3 ranks in shard: 23 1 -> 23 1
free 23
new 24: 4 temporaries
copy_to_host 1x1 fp32: 24 4
the host waits for the GPU
free 24
host optimizer_op 2
new 25: 40 temporaries
cast 1x5 fp16->fp64: 6 10 -> 25 40
new 26: 8 temporaries
linalg_vector_norm 1x5 fp64: 25 40 -> 26 8
free 25
host optimizer_op
new 27: 8 temporaries
cat 1x1 fp64: 26 8 -> 27 8
host optimizer_op 3
3 operations on numbers
new 31: 4 temporaries
host collective
all_reduce 4 bytes fp32, 3 ranks in shard: 31 4 -> 31 4
free 31
host optimizer_op 8
8 operations on numbers
free 27
free 26
host optimizer_op 4
new 40: 24 temporaries
cast 1x3 fp16->fp64: 6 6 -> 40 24
new 41: 8 temporaries
linalg_vector_norm 1x3 fp64: 40 24 -> 41 8
free 40
new 42: 16 temporaries
cast 1x2 fp16->fp64: 6 4 -> 42 16
new 43: 8 temporaries
linalg_vector_norm 1x2 fp64: 42 16 -> 43 8
free 42
host optimizer_op
new 44: 16 temporaries
cat 1x1 fp64 of 2: 41 8, 43 8 -> 44 16
host optimizer_op 3
3 operations on numbers
new 48: 4 temporaries
host collective
all_reduce 4 bytes fp32, 3 ranks in shard: 48 4 -> 48 4
free 48
host optimizer_op 8
8 operations on numbers
free 44
free 41
free 43
host optimizer_op
new 57: 20 gradients
cast 1x5 fp16->fp32: 6 10 -> 57 20
host optimizer_op 6
6 operations on numbers
host optimizer_op
scale 1x5 fp32: 57 20 -> 57 20
host fused_fixed
host per_parameter_fused
fused_sgd 1 tensors, 5 elements fp32: 2 20, 57 20, 57 20
free 57
host optimizer_op
cast 1x5 fp32->fp16: 2 20 -> 1 10
host optimizer_op
new 64: 10 temporaries
copy 1x5 fp16: 6 10 -> 64 10
new 65: 20 gradients
cast 1x5 fp16->fp32: 64 10 -> 65 20
free 64
host optimizer_op 6
6 operations on numbers
host optimizer_op
scale 1x5 fp32: 65 20 -> 65 20
host fused_fixed
host per_parameter_fused
fused_sgd 1 tensors, 5 elements fp32: 3 20, 65 20, 65 20
free 65
host optimizer_op
cast 1x5 fp32->fp16: 3 20 -> 1 10
)";

TEST(ShardedZeroOptions, WithOverlapReductionsHaveAStreamOfTheirOwn) {
  TrainingDescription t = sparing_training();
  t.parallel.zero.overlap_comm = true;
  t.gradient_clipping = 1.0;
  t.parallel.zero.sub_group_size = 5;
  ZeroSession zero(DType::fp16, t);
  forward_of(zero);

  EXPECT_EQ(zero.backward(), kWithOverlapReductionsHaveAStreamOfTheirOwnFirst);
  EXPECT_EQ(zero.step(), kWithOverlapReductionsHaveAStreamOfTheirOwnSecond);
}

const char* const kThreeReductionsAreUnderWayAtOnce = R"(
new dw: 60 temporaries
host fsdp_hooks
host fsdp_gather
new 11: 96 temporaries
-- backward
copy 1x8 fp32: 1 32 -> 11 32
host collective
event 9 behind stream 0
stream 1 waits for event 9
[1] all_gather 96 bytes fp32, 3 ranks in shard: 11 32 -> 11 96
event 10 behind stream 1
the host waits for event 2
stream 0 waits for event 10
host optimizer_op
new 12: 60 temporaries
copy 1x15 fp32: 11 60 -> 12 60
host optimizer_op
new 13: 28 temporaries
copy 1x7 fp32: 11 28 -> 13 28
event 11 behind stream 0
the host waits for event 3
free 11
event 12 behind stream 0
event 13 behind stream 0
stream 0 waits for event 13
host main_gradient_hook
event 14 behind stream 0
stream 0 waits for event 14
new db: 28 temporaries
host main_gradient_hook
host optimizer_op
host optimizer_op
scale 1x15 fp32: dw 60 -> dw 60
host collective
reduce_scatter 60 bytes fp32, 3 ranks in shard: dw 60 -> dw 20
host optimizer_op
copy 1x5 fp32: dw 20 -> 3 20
free dw
event 15 behind stream 0
event 16 behind stream 0
stream 0 waits for event 16
new dc: 16 temporaries
free 12
free 13
host fsdp_hooks
host fsdp_gather
new 14: 16 temporaries
host collective
event 17 behind stream 0
stream 1 waits for event 17
[1] all_gather 24 bytes fp32, 3 ranks in shard: 1 8 -> 14 16
event 18 behind stream 1
the host waits for event 7
stream 0 waits for event 18
event 19 behind stream 0
event 20 behind stream 0
stream 0 waits for event 20
host main_gradient_hook
host optimizer_op
new 15: 36 temporaries
copy 1x9 fp32: db 28 -> 15 36
host optimizer_op
scale 1x9 fp32: 15 36 -> 15 36
host collective
reduce_scatter 36 bytes fp32, 3 ranks in shard: 15 36 -> 15 12
host optimizer_op
copy 1x3 fp32: 15 12 -> 3 12
free 15
free db
event 21 behind stream 0
event 22 behind stream 0
stream 0 waits for event 22
new dw: 60 temporaries
free 14
host fsdp_hooks
host fsdp_gather
new 16: 96 temporaries
copy 1x8 fp32: 1 32 -> 16 32
host collective
event 23 behind stream 0
stream 1 waits for event 23
[1] all_gather 96 bytes fp32, 3 ranks in shard: 16 32 -> 16 96
event 24 behind stream 1
the host waits for event 11
stream 0 waits for event 24
host optimizer_op
new 17: 60 temporaries
copy 1x15 fp32: 16 60 -> 17 60
host optimizer_op
new 18: 28 temporaries
copy 1x7 fp32: 16 28 -> 18 28
event 25 behind stream 0
the host waits for event 12
free 16
event 26 behind stream 0
event 27 behind stream 0
stream 0 waits for event 27
host main_gradient_hook
host optimizer_op
new 19: 24 temporaries
copy 1x6 fp32: dc 16 -> 19 24
host optimizer_op
scale 1x6 fp32: 19 24 -> 19 24
host collective
reduce_scatter 24 bytes fp32, 3 ranks in shard: 19 24 -> 19 8
host optimizer_op
copy 1x2 fp32: 19 8 -> 3 8
free 19
free dc
event 28 behind stream 0
event 29 behind stream 0
stream 0 waits for event 29
new db: 28 temporaries
host main_gradient_hook
the host waits for event 15
host optimizer_op
host optimizer_op
scale 1x15 fp32: dw 60 -> dw 60
host collective
reduce_scatter 60 bytes fp32, 3 ranks in shard: dw 60 -> dw 20
host optimizer_op
copy 1x5 fp32: dw 20 -> 3 20
free dw
event 30 behind stream 0
event 31 behind stream 0
stream 0 waits for event 31
free 17
free 18
the host waits for event 21
host optimizer_op
new 20: 36 temporaries
copy 1x9 fp32: db 28 -> 20 36
host optimizer_op
scale 1x9 fp32: 20 36 -> 20 36
host collective
reduce_scatter 36 bytes fp32, 3 ranks in shard: 20 36 -> 20 12
host optimizer_op
copy 1x3 fp32: 20 12 -> 3 12
free 20
free db
event 32 behind stream 0
the host waits for event 32
)";

TEST(ShardedZeroOptions, ThreeReductionsAreUnderWayAtOnce) {
  TrainingDescription t = sparing_training();
  t.parallel.zero.reduce_bucket_size = 4;
  t.parallel.zero.contiguous_gradients = false;
  ZeroSession zero(DType::fp32, t);
  forward_of(zero);
  EXPECT_EQ(zero.backward({0, 1, 2, 0, 1}), kThreeReductionsAreUnderWayAtOnce);
}

}  // namespace
}  // namespace ridgeline
