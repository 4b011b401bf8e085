// ZeRO stage 3 over three ranks: of the weight's 15 numbers a rank holds 5, of the bias's 7 and two more 3, of the
// table's 4 and two more 2.
#include <gtest/gtest.h>

#include "tests/support/zero_session.h"

namespace ridgeline {
namespace {

using testing_support::forward_of;
using testing_support::sparing_training;
using testing_support::ZeroSession;

// zero.Init never makes whole parameters. What a rank has of all lies in one buffer, as do its gradients; each part

// that is updated at once has a copy in fp32.
TEST(ShardedZero, ARankHoldsItsPartOfEachParameter) {
  EXPECT_EQ(ZeroSession(DType::bf16, sparing_training()).made, R"(
new 1: 20 weights
new 2: 40 optimizer_state
new 3: 40 temporaries
free 3
new 4: 40 gradients
new 5: 20 gradients
)");
  TrainingDescription t = sparing_training();
  t.parallel.zero.overlap_comm = std::nullopt;  // not given: in stage 3 it is on
  t.parallel.zero.sub_group_size = 5;
  t.parallel.zero.contiguous_gradients = false;
  ZeroSession parts(DType::bf16, t);
  EXPECT_EQ(parts.made, R"(
new 1: 20 weights
new 2: 20 optimizer_state
new 3: 20 optimizer_state
new 4: 20 temporaries
free 4
new 5: 20 gradients
)");
  EXPECT_EQ(parts.session.trace.streams,
            (std::vector<std::string>{"default", "data parallel collectives", "copies of gathered parameters",
                                      "reductions of gradients"}));
  EXPECT_EQ(ZeroSession(DType::fp32, t).made, R"(
new 1: 40 weights
new 2: 20 temporaries
free 2
new 3: 40 gradients
)");
}

// The weight and the bias, 5 + 3 of each rank, are gathered together into a buffer and copied out; the table alone is

// gathered where it lies. Each is given back when the next one is read.
TEST(ShardedZero, ForwardGathersWhatALeafReadsAndGivesItBack) {
  ZeroSession zero(DType::bf16, sparing_training());
  EXPECT_EQ(forward_of(zero), R"(
new 6: 4 temporaries
host fsdp_hooks
host fsdp_gather
new 7: 48 temporaries
-- forward
copy 1x8 bf16: 1 16 -> 7 16
host collective
event 0 behind stream 0
stream 1 waits for event 0
[1] all_gather 48 bytes bf16, 3 ranks in shard: 7 16 -> 7 48
event 1 behind stream 1
stream 0 waits for event 1
host optimizer_op
new 8: 30 temporaries
copy 1x15 bf16: 7 30 -> 8 30
host optimizer_op
new 9: 14 temporaries
copy 1x7 bf16: 7 14 -> 9 14
event 2 behind stream 0
free 7
event 3 behind stream 0
event 4 behind stream 0
stream 0 waits for event 4
scale 1x1 bf16->fp32: 8 30 -> 6 4
free 6
new 10: 4 temporaries
scale 1x1 bf16->fp32: 9 14 -> 10 4
free 10
new 11: 4 temporaries
free 8
free 9
host fsdp_hooks
host fsdp_gather
new 12: 8 temporaries
host collective
event 5 behind stream 0
stream 1 waits for event 5
[1] all_gather 12 bytes bf16, 3 ranks in shard: 1 4 -> 12 8
event 6 behind stream 1
stream 0 waits for event 6
event 7 behind stream 0
event 8 behind stream 0
stream 0 waits for event 8
scale 1x1 bf16->fp32: 12 8 -> 11 4
free 11
free 12
)");
}

// Gradients are copied into the bucket; it is reduced when the next one does not fit.

const char* const kBackwardReducesBucketsAndAddsUpMicroBatches = R"(
new dc: 8 temporaries
host fsdp_hooks
host fsdp_gather
new 13: 8 temporaries
host collective
event 9 behind stream 0
stream 1 waits for event 9
-- backward
[1] all_gather 12 bytes bf16, 3 ranks in shard: 1 4 -> 13 8
event 10 behind stream 1
the host waits for event 2
stream 0 waits for event 10
event 11 behind stream 0
event 12 behind stream 0
stream 0 waits for event 12
host main_gradient_hook
event 13 behind stream 0
stream 0 waits for event 13
copy 1x4 bf16: dc 8 -> 4 8
free dc
new db: 14 temporaries
free 13
host fsdp_hooks
host fsdp_gather
new 14: 48 temporaries
copy 1x8 bf16: 1 16 -> 14 16
host collective
event 14 behind stream 0
stream 1 waits for event 14
[1] all_gather 48 bytes bf16, 3 ranks in shard: 14 16 -> 14 48
event 15 behind stream 1
the host waits for event 3
stream 0 waits for event 15
host optimizer_op
new 15: 30 temporaries
copy 1x15 bf16: 14 30 -> 15 30
host optimizer_op
new 16: 14 temporaries
copy 1x7 bf16: 14 14 -> 16 14
event 16 behind stream 0
the host waits for event 7
free 14
event 17 behind stream 0
event 18 behind stream 0
stream 0 waits for event 18
host main_gradient_hook
event 19 behind stream 0
stream 0 waits for event 19
copy 1x7 bf16: db 14 -> 4 14
free db
new dw: 30 temporaries
host main_gradient_hook
host optimizer_op
new 17: 30 temporaries
copy 1x15 bf16: 4 30 -> 17 30
host optimizer_op
scale 1x15 bf16: 17 30 -> 17 30
host collective
reduce_scatter 30 bytes bf16, 3 ranks in shard: 17 30 -> 17 10
host optimizer_op
copy 1x3 bf16: 17 6 -> 5 6
host optimizer_op
copy 1x2 bf16: 17 4 -> 5 4
free 17
event 20 behind stream 0
event 21 behind stream 0
stream 0 waits for event 21
copy 1x15 bf16: dw 30 -> 4 30
free dw
free 15
free 16
host optimizer_op
host optimizer_op
scale 1x15 bf16: 4 30 -> 4 30
host collective
reduce_scatter 30 bytes bf16, 3 ranks in shard: 4 30 -> 4 10
host optimizer_op
copy 1x5 bf16: 4 10 -> 5 10
event 22 behind stream 0
the host waits for event 22
)";

TEST(ShardedZero, BackwardReducesBucketsAndAddsUpMicroBatches) {
  ZeroSession zero(DType::bf16, sparing_training());
  forward_of(zero);
  EXPECT_EQ(zero.backward(), kBackwardReducesBucketsAndAddsUpMicroBatches);
  forward_of(zero);
  EXPECT_EQ(zero.backward({2, 0}), R"(
new dc: 8 temporaries
host fsdp_hooks
host fsdp_gather
new 25: 8 temporaries
host collective
event 32 behind stream 0
stream 1 waits for event 32
-- backward
[1] all_gather 12 bytes bf16, 3 ranks in shard: 1 4 -> 25 8
event 33 behind stream 1
the host waits for event 25
stream 0 waits for event 33
event 34 behind stream 0
event 35 behind stream 0
stream 0 waits for event 35
host main_gradient_hook
event 36 behind stream 0
stream 0 waits for event 36
copy 1x4 bf16: dc 8 -> 4 8
free dc
new dw: 30 temporaries
free 25
host fsdp_hooks
host fsdp_gather
new 26: 48 temporaries
copy 1x8 bf16: 1 16 -> 26 16
host collective
event 37 behind stream 0
stream 1 waits for event 37
[1] all_gather 48 bytes bf16, 3 ranks in shard: 26 16 -> 26 48
event 38 behind stream 1
the host waits for event 26
stream 0 waits for event 38
host optimizer_op
new 27: 30 temporaries
copy 1x15 bf16: 26 30 -> 27 30
host optimizer_op
new 28: 14 temporaries
copy 1x7 bf16: 26 14 -> 28 14
event 39 behind stream 0
the host waits for event 30
free 26
event 40 behind stream 0
event 41 behind stream 0
stream 0 waits for event 41
host main_gradient_hook
event 42 behind stream 0
stream 0 waits for event 42
copy 1x15 bf16: dw 30 -> 4 30
free dw
free 27
free 28
host optimizer_op
new 29: 42 temporaries
copy 1x21 bf16: 4 40 -> 29 42
host optimizer_op
scale 1x21 bf16: 29 42 -> 29 42
host collective
reduce_scatter 42 bytes bf16, 3 ranks in shard: 29 42 -> 29 14
host optimizer_op
add_ 1x5 bf16,bf16->bf16: 5 10, 29 10 -> 5 10
host optimizer_op
add_ 1x2 bf16,bf16->bf16: 5 4, 29 4 -> 5 4
free 29
event 43 behind stream 0
the host waits for event 43
)");
}

// Buckets of one gradient each: the host waits for the first reduction before the fourth.
TEST(ShardedZero, WithoutReduceScatterABucketIsSummed) {
  TrainingDescription t = sparing_training();
  t.parallel.zero.reduce_scatter = false;
  ZeroSession zero(DType::bf16, t);
  forward_of(zero);
  EXPECT_EQ(zero.backward({2, 1}), R"(
new dc: 8 temporaries
host fsdp_hooks
host fsdp_gather
new 13: 8 temporaries
host collective
event 9 behind stream 0
stream 1 waits for event 9
-- backward
[1] all_gather 12 bytes bf16, 3 ranks in shard: 1 4 -> 13 8
event 10 behind stream 1
the host waits for event 2
stream 0 waits for event 10
event 11 behind stream 0
event 12 behind stream 0
stream 0 waits for event 12
host main_gradient_hook
event 13 behind stream 0
stream 0 waits for event 13
copy 1x4 bf16: dc 8 -> 4 8
free dc
new db: 14 temporaries
free 13
host fsdp_hooks
host fsdp_gather
new 14: 48 temporaries
copy 1x8 bf16: 1 16 -> 14 16
host collective
event 14 behind stream 0
stream 1 waits for event 14
[1] all_gather 48 bytes bf16, 3 ranks in shard: 14 16 -> 14 48
event 15 behind stream 1
the host waits for event 3
stream 0 waits for event 15
host optimizer_op
new 15: 30 temporaries
copy 1x15 bf16: 14 30 -> 15 30
host optimizer_op
new 16: 14 temporaries
copy 1x7 bf16: 14 14 -> 16 14
event 16 behind stream 0
the host waits for event 7
free 14
event 17 behind stream 0
event 18 behind stream 0
stream 0 waits for event 18
host main_gradient_hook
event 19 behind stream 0
stream 0 waits for event 19
copy 1x7 bf16: db 14 -> 4 14
free db
free 15
free 16
host optimizer_op
scale 1x11 bf16: 4 22 -> 4 22
host collective
all_reduce 22 bytes bf16, 3 ranks in shard: 4 22 -> 4 22
host optimizer_op
copy 1x2 bf16: 4 4 -> 5 4
host optimizer_op
copy 1x3 bf16: 4 6 -> 5 6
event 20 behind stream 0
the host waits for event 20
)");
}

}  // namespace
}  // namespace ridgeline
