// Every schedule of a pipeline, action by action, as PyTorch's and Megatron-LM's loops run it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/workload/parallel/schedule.h"

namespace ridgeline::parallel {
namespace {

/// A line a rank: "0F1" a forward pass of stage 0 for micro-batch 1 (B backward, I and W of inputs and of weights),
/// ">F0:1" an activation of stage 0 and micro-batch 1 that is sent, "<B" a gradient that is received, joined by "+" in
/// one batch; "w2" waits for batch 2 of the rank; "R0" adds up gradients of stage 0.
std::string orders(const PipelineShape& shape) {
  std::string text = "\n";
  for (const RankActions& actions : make_schedule(shape)) {
    std::string line;
    std::int32_t batches = 0;
    for (const StageAction& action : actions) {
      std::string word;
      if (action.kind == StageAction::Kind::exchange) {
        EXPECT_EQ(action.batch, batches++);
        for (const Transfer& one : action.transfers)
          word += fmt::format("{}{}{}{}:{}", word.empty() ? "" : "+", one.send ? ">" : "<", one.gradient ? "B" : "F",
                              one.stage, one.micro_batch);
      } else if (action.kind == StageAction::Kind::wait) {
        word = fmt::format("w{}", action.batch);
      } else if (action.kind == StageAction::Kind::reduce_gradients) {
        word = fmt::format("R{}", action.stage);
      } else {
        word = to_string(action);
      }
      line += (line.empty() ? "" : " ") + word;
    }
    text += line + "\n";
  }
  return text;
}

TEST(ScheduleOrders, GPipeRunsAllForwardPassesFirst) {
  EXPECT_EQ(orders({PipelineSchedule::gpipe, 3, 1, 2}), R"(
0F0 >F0:0 0F1 >F0:1 w0 w1 <B1:0 w2 0B0 <B1:1 w3 0B1 R0
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 >F1:1 w1 w3 <B2:0 w4 1B0 >B1:0 <B2:1 w6 1B1 >B1:1 w5 w7 R1
<F1:0 w0 2F0 <F1:1 w1 2F1 2B0 >B2:0 2B1 >B2:1 w2 w3 R2
)");
}

TEST(ScheduleOrders, OneForwardOneBackward) {
  EXPECT_EQ(orders({PipelineSchedule::one_forward_one_backward, 3, 1, 4}), R"(
0F0 >F0:0 0F1 w0 >F0:1 0F2 w1 >F0:2+<B1:0 w2 0B0 0F3 >F0:3+<B1:1 w3 0B1 <B1:2 w4 0B2 <B1:3 w5 0B3 R0
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 w1 >F1:1+<B2:0 w3 1B0 >B1:0+<F0:2 w4 1F2 >F1:2+<B2:1 w5 1B1 >B1:1+<F0:3 w6 1F3 >F1:3+<B2:2 w7 1B2 >B1:2 <B2:3 w9 1B3 w8 >B1:3 w10 R1
<F1:0 w0 2F0 2B0 >B2:0+<F1:1 w1 2F1 2B1 >B2:1+<F1:2 w2 2F2 2B2 >B2:2+<F1:3 w3 2F3 2B3 >B2:3 w4 R2
)");
  EXPECT_EQ(orders({PipelineSchedule::one_forward_one_backward, 4, 1, 4}), R"(
0F0 >F0:0 0F1 w0 >F0:1 0F2 w1 >F0:2 0F3 w2 >F0:3+<B1:0 w3 0B0 <B1:1 w4 0B1 <B1:2 w5 0B2 <B1:3 w6 0B3 R0
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 w1 >F1:1 <F0:2 w4 1F2 w3 >F1:2+<B2:0 w5 1B0 >B1:0+<F0:3 w6 1F3 >F1:3+<B2:1 w7 1B1 >B1:1 <B2:2 w9 1B2 w8 >B1:2 <B2:3 w11 1B3 w10 >B1:3 w12 R1
<F1:0 w0 2F0 >F2:0 <F1:1 w2 2F1 w1 >F2:1+<B3:0 w3 2B0 >B2:0+<F1:2 w4 2F2 >F2:2+<B3:1 w5 2B1 >B2:1+<F1:3 w6 2F3 >F2:3+<B3:2 w7 2B2 >B2:2 <B3:3 w9 2B3 w8 >B2:3 w10 R2
<F2:0 w0 3F0 3B0 >B3:0+<F2:1 w1 3F1 3B1 >B3:1+<F2:2 w2 3F2 3B2 >B3:2+<F2:3 w3 3F3 3B3 >B3:3 w4 R3
)");
}

TEST(ScheduleOrders, InterleavedStages) {
  EXPECT_EQ(orders({PipelineSchedule::interleaved, 2, 2, 4}), R"(
0F0 >F0:0 <F1:0 0F1 >F0:1 <F1:1 w1 2F0 >F2:0 w3 2F1 >F2:1 <B3:0 0F2 >F0:2 w6 2B0 >B2:0 <B3:1 0F3 >F0:3 <F1:2 w9 2B1 >B2:1 <B1:0 w11 2F2 >F2:2 <F1:3 w13 0B0 <B1:1 w15 2F3 >F2:3 w16 0B1 <B3:2 w18 2B2 >B2:2 <B3:3 w20 2B3 >B2:3 R2 <B1:2 w22 0B2 <B1:3 w23 0B3 R0 w21
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 >F1:1 <F2:0 w4 3F0 <F2:1 3B0 >B3:0 <F0:2 w5 3F1 <B2:0 3B1 >B3:1 <F0:3 w7 1F2 >F1:2 <B2:1 w8 1B0 >B1:0 <F2:2 w10 1F3 >F1:3 w12 1B1 >B1:1 <F2:3 w14 3F2 3B2 >B3:2 <B2:2 w17 3F3 3B3 >B3:3 <B2:3 R3 w19 1B2 >B1:2 w21 1B3 >B1:3 R1 w23
)");
}

TEST(ScheduleOrders, ZeroBubbles) {
  EXPECT_EQ(orders({PipelineSchedule::zb1p, 3, 1, 4}), R"(
0F0 >F0:0 0F1 >F0:1 0F2 >F0:2 <B1:0 w3 0I0 0W0 <B1:1 0F3 >F0:3 w4 0I1 0W1 <B1:2 w6 0I2 0W2 <B1:3 w7 0I3 0W3 R0 w5
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 >F1:1 <B2:0 <F0:2 w4 1I0 >B1:0 w5 1F2 >F1:2 <B2:1 w8 1I1 >B1:1 <F0:3 1W0 <B2:2 w10 1F3 >F1:3 w11 1I2 >B1:2 1W1 <B2:3 w14 1I3 >B1:3 1W2 1W3 R1 w15
<F1:0 w0 2F0 <F1:1 2I0 >B2:0 w1 2F1 <F1:2 2I1 >B2:1 w3 2F2 2I2 >B2:2 <F1:3 2W0 w6 2F3 2I3 >B2:3 2W1 2W2 2W3 R2 w7
)");
  EXPECT_EQ(orders({PipelineSchedule::interleaved_zero_bubble, 2, 2, 3}), R"(
0F0 >F0:0 <F1:0 0F1 >F0:1 <F1:1 0F2 >F0:2 <F1:2 w1 2F0 >F2:0 w3 2F1 >F2:1 <B3:0 w8 2I0 >B2:0 2W0 <B3:1 w5 2F2 >F2:2 w10 2I1 >B2:1 2W1 <B3:2 w13 2I2 >B2:2 2W2 <B1:0 R2 w15 0I0 0W0 <B1:1 w16 0I1 0W1 <B1:2 w17 0I2 0W2 R0 w14
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 >F1:1 <F0:2 w4 1F2 >F1:2 <F2:0 w6 3F0 <F2:1 3I0 >B3:0 <B2:0 w7 3F1 3I1 >B3:1 <F2:2 3W0 <B2:1 w11 3F2 3I2 >B3:2 <B2:2 3W1 w9 1I0 >B1:0 3W2 R3 w12 1I1 >B1:1 1W0 w14 1I2 >B1:2 1W1 1W2 R1 w17
)");
}

TEST(ScheduleOrders, ZeroBubblesInAV) {
  EXPECT_EQ(orders({PipelineSchedule::zbv, 2, 2, 4}), R"(
0F0 >F0:0 0F1 >F0:1 <F2:0 0F2 >F0:2 w2 3F0 <F2:1 3I0 >B3:0 3W0 w4 3F1 3I1 >B3:1 <B1:0 3W1 0F3 >F0:3 <F2:2 w7 0I0 0W0 w9 3F2 3I2 >B3:2 <B1:1 3W2 w11 0I1 <F2:3 0W1 w12 3F3 3I3 >B3:3 <B1:2 3W3 R3 <B1:3 w14 0I2 0W2 w15 0I3 0W3 R0 w13
<F0:0 w0 1F0 <F0:1 2F0 >F2:0 <F0:2 w1 1F1 2F1 >F2:1 <B3:0 w5 2I0 2W0 w3 1F2 <B3:1 1I0 >B1:0 1W0 <F0:3 2F2 >F2:2 w6 2I1 2W1 w8 1F3 <B3:2 1I1 >B1:1 1W1 2F3 >F2:3 w10 2I2 2W2 <B3:3 1I2 >B1:2 w13 2I3 1I3 >B1:3 1W2 2W3 R2 1W3 R1 w15
)");
  EXPECT_EQ(orders({PipelineSchedule::zbv, 3, 2, 2}), R"(
0F0 >F0:0 0F1 >F0:1 <F4:0 w2 5F0 5I0 >B5:0 <F4:1 5W0 w4 5F1 5I1 >B5:1 5W1 R5 <B1:0 w6 0I0 0W0 <B1:1 w7 0I1 0W1 R0 w5
<F0:0 w0 1F0 >F1:0 <F0:1 w2 1F1 >F1:1 <F3:0 w4 4F0 >F4:0 <F3:1 <B5:0 w6 4F1 >F4:1 w7 4I0 >B4:0 4W0 <B5:1 w10 4I1 >B4:1 <B2:0 4W1 R4 w12 1I0 >B1:0 1W0 <B2:1 w14 1I1 >B1:1 1W1 R1 w15
<F1:0 w0 2F0 <F1:1 3F0 >F3:0 w1 2F1 3F1 >F3:1 <B4:0 w4 3I0 3W0 <B4:1 2I0 >B2:0 2W0 w5 3I1 3W1 R3 2I1 >B2:1 2W1 R2 w7
)");
}

TEST(ScheduleOrders, MegatronsOneForwardOneBackward) {
  EXPECT_EQ(orders({PipelineSchedule::one_forward_one_backward, 3, 1, 4, Framework::megatron}), R"(
0F0 >F0:0 w0 0F1 >F0:1 w1 0F2 >F0:2+<B1:0 w2 0B0 0F3 >F0:3+<B1:1 w3 0B1 <B1:2 w4 0B2 <B1:3 w5 0B3
<F0:0 w0 1F0 >F1:0 w1 <F0:1 w2 1F1 >F1:1+<B2:0 w3 1B0 >B1:0+<F0:2 w4 1F2 >F1:2+<B2:1 w5 1B1 >B1:1+<F0:3 w6 1F3 >F1:3+<B2:2 w7 1B2 >B1:2 w8 <B2:3 w9 1B3 >B1:3 w10
<F1:0 w0 2F0 2B0 >B2:0+<F1:1 w1 2F1 2B1 >B2:1+<F1:2 w2 2F2 2B2 >B2:2+<F1:3 w3 2F3 2B3 >B2:3 w4
)");
  EXPECT_EQ(orders({PipelineSchedule::one_forward_one_backward, 3, 1, 1, Framework::megatron}), R"(
0F0 >F0:0 w0 <B1:0 w1 0B0
<F0:0 w0 1F0 >F1:0 w1 <B2:0 w2 1B0 >B1:0 w3
<F1:0 w0 2F0 2B0 >B2:0 w1
)");
}

TEST(ScheduleOrders, MegatronsInterleavedStages) {
  EXPECT_EQ(orders({PipelineSchedule::interleaved, 2, 2, 4, Framework::megatron}), R"(
0F0 >F0:0 w0 0F1 >F0:1+<F1:0 w1 2F0 >F2:0+<F1:1 w2 2F1 >F2:1+<B3:0 w3 0F2 2B0 >F0:2+>B2:0+<B3:1 w4 0F3 2B1 >F0:3+<F1:2+>B2:1+<B1:0 w5 2F2 0B0 >F2:2+<F1:3+<B1:1 w6 2F3 0B1 >F2:3+<B3:2 w7 2B2 >B2:2+<B3:3 w8 2B3 >B2:3+<B1:2 w9 0B2 <B1:3 w10 0B3
<F0:0 w0 1F0 >F1:0+<F0:1 w1 1F1 >F1:1+<F2:0 w2 3F0 3B0 <F2:1+>B3:0 w3 3F1 3B1 <F0:2+>B3:1+<B2:0 w4 1F2 1B0 >F1:2+<F0:3+>B1:0+<B2:1 w5 1F3 1B1 >F1:3+<F2:2+>B1:1 w6 3F2 3B2 <F2:3+>B3:2 w7 3F3 3B3 >B3:3+<B2:2 w8 1B2 >B1:2+<B2:3 w9 1B3 >B1:3 w10
)");
  EXPECT_EQ(orders({PipelineSchedule::interleaved, 2, 3, 2, Framework::megatron}), R"(
0F0 >F0:0 w0 0F1 >F0:1+<F1:0 w1 2F0 >F2:0+<F1:1 w2 2F1 >F2:1+<F3:0 w3 4F0 >F4:0+<F3:1 w4 4F1 >F4:1 w5 <B5:0 w6 4B0 >B4:0+<B5:1 w7 4B1 >B4:1+<B3:0 w8 2B0 >B2:0+<B3:1 w9 2B1 >B2:1+<B1:0 w10 0B0 <B1:1 w11 0B1
<F0:0 w0 1F0 >F1:0+<F0:1 w1 1F1 >F1:1+<F2:0 w2 3F0 >F3:0+<F2:1 w3 3F1 >F3:1+<F4:0 w4 5F0 5B0 <F4:1+>B5:0 w5 5F1 5B1 >B5:1+<B4:0 w6 3B0 >B3:0+<B4:1 w7 3B1 >B3:1+<B2:0 w8 1B0 >B1:0+<B2:1 w9 1B1 >B1:1 w10
)");
}

TEST(ScheduleOrders, ActionsHaveNames) {
  const RankActions actions = make_schedule({PipelineSchedule::one_forward_one_backward, 2, 1, 2})[0];
  std::string text;
  for (const StageAction& action : actions) text += to_string(action) + "\n";
  EXPECT_EQ("\n" + text, R"(
0F0
SEND_F 0 of 0 with rank 1
0F1
wait for exchange 0
SEND_F 1 of 0 with rank 1 + RECV_B 0 of 1 with rank 1
wait for exchange 1
0B0
RECV_B 1 of 1 with rank 1
wait for exchange 2
0B1
0REDUCE_GRAD
)");
}

/// Micro-batches of the shorter step, of a round, rounds; where the round stands in each rank.
std::string shorter_step(const PipelineShape& shape) {
  const ShortSchedule made = shorten(shape);
  std::string text = fmt::format("{} of {}, {} times:", made.micro_batches, made.round, made.times);
  for (const ShortSchedule::Rank& rank : made.ranks) text += fmt::format(" {}-{}", rank.begin, rank.end);
  return text;
}

TEST(ScheduleOrders, AShorterStepHoldsTheWarmUpThreeRoundsAndTheEnd) {
  EXPECT_EQ(shorter_step({PipelineSchedule::one_forward_one_backward, 2, 1, 3}), R"(3 of 1, 1 times: 0-0 0-0)");
  EXPECT_EQ(shorter_step({PipelineSchedule::one_forward_one_backward, 2, 1, 40}), R"(5 of 1, 36 times: 11-15 12-16)");
  EXPECT_EQ(shorter_step({PipelineSchedule::one_forward_one_backward, 3, 1, 41}),
            R"(7 of 1, 35 times: 18-22 29-35 20-24)");
  EXPECT_EQ(shorter_step({PipelineSchedule::one_forward_one_backward, 3, 1, 41, Framework::megatron}),
            R"(5 of 1, 37 times: 10-14 17-23 12-16)");
  EXPECT_EQ(shorter_step({PipelineSchedule::interleaved, 2, 2, 40}), R"(8 of 2, 17 times: 39-65 40-66)");
  EXPECT_EQ(shorter_step({PipelineSchedule::interleaved, 2, 2, 40, Framework::megatron}),
            R"(8 of 2, 17 times: 28-44 30-46)");
  EXPECT_EQ(shorter_step({PipelineSchedule::interleaved, 4, 2, 40, Framework::megatron}),
            R"(20 of 4, 6 times: 86-118 88-120 90-122 92-124)");
  EXPECT_EQ(shorter_step({PipelineSchedule::zb1p, 2, 1, 40}), R"(8 of 2, 17 times: 21-33 22-34)");
  EXPECT_EQ(shorter_step({PipelineSchedule::zbv, 2, 2, 40}), R"(6 of 1, 35 times: 31-43 33-45)");
  EXPECT_EQ(shorter_step({PipelineSchedule::interleaved_zero_bubble, 2, 2, 40}), R"(8 of 2, 17 times: 48-78 49-79)");
  EXPECT_EQ(shorter_step({PipelineSchedule::gpipe, 2, 1, 40}), R"(40 of 1, 1 times: 0-0 0-0)");
}

TEST(ScheduleOrders, SomeNumbersOfMicroBatchesDoNotRun) {
  using enum PipelineSchedule;
  const Framework megatron = Framework::megatron;
  EXPECT_EQ(complaint({one_forward_one_backward, 4, 1, 4}), "");
  EXPECT_EQ(complaint({one_forward_one_backward, 4, 1, 3}),
            "1f1b of 4 stages needs as many micro-batches at least; there are 3");
  EXPECT_EQ(complaint({one_forward_one_backward, 4, 1, 3, megatron}), "");
  EXPECT_EQ(complaint({interleaved, 4, 2, 8, megatron}), "");
  EXPECT_EQ(complaint({interleaved, 4, 2, 9, megatron}),
            "interleaved stages of 4 ranks need a multiple of 4 micro-batches; there are 9");
  EXPECT_EQ(complaint({gpipe, 2, 1, 4096}), "");
  EXPECT_EQ(complaint({gpipe, 2, 1, 4097}),
            "gpipe holds all micro-batches at once: 4097 are more than the 4096 that are modelled");
  EXPECT_EQ(complaint({interleaved, 3, 2, 2}), "");
  EXPECT_EQ(complaint({interleaved, 3, 2, 7}),
            "7 micro-batches cannot be taken in 2 equal rounds, as 3 ranks take them");
  EXPECT_EQ(complaint({zb1p, 3, 1, 8}), "");
  EXPECT_EQ(complaint({interleaved_zero_bubble, 3, 2, 11}),
            "11 micro-batches cannot be taken in 3 equal rounds, as 3 ranks take them");
  EXPECT_EQ(complaint({zbv, 3, 2, 7}), "");
}

TEST(ScheduleOrders, StagesGoRoundTheRanksOrDownAndUp) {
  const PipelineShape loop{PipelineSchedule::interleaved, 3, 2, 6}, fold{PipelineSchedule::zbv, 3, 2, 6};
  EXPECT_EQ(loop.stages(), 6);
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(loop.stages_of(rank), (std::vector<std::int32_t>{rank, rank + 3}));
    EXPECT_EQ(fold.stages_of(rank), (std::vector<std::int32_t>{rank, 5 - rank}));
  }
}

TEST(ScheduleOrders, MicroBatchesAtOnceAreThoseThatWaitForTheirWeights) {
  const auto most = [](const PipelineShape& shape) {
    std::vector<std::int32_t> result;
    for (const RankActions& actions : make_schedule(shape)) result.push_back(most_in_flight(actions));
    return result;
  };
  EXPECT_EQ(most({PipelineSchedule::gpipe, 2, 1, 5}), (std::vector<std::int32_t>{5, 5}));
  EXPECT_EQ(most({PipelineSchedule::one_forward_one_backward, 3, 1, 7}), (std::vector<std::int32_t>{3, 2, 1}));
  EXPECT_EQ(most({PipelineSchedule::zb1p, 3, 1, 7}), (std::vector<std::int32_t>{3, 3, 3}));
}

}  // namespace
}  // namespace ridgeline::parallel
