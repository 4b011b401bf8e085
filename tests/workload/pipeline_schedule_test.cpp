// Orders of torch.distributed.pipelining's schedules: warm-up counts, micro-batches at once, matching exchanges, and
// shorter steps that stand for long ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/workload/parallel/schedule.h"

namespace ridgeline::parallel {
namespace {

using Kind = StageAction::Kind;

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> result;
  for (const std::int32_t ranks : {2, 3, 4, 8})
    for (const std::int32_t m : {1, 2, 4, 8, 12, 16, 24, 40}) {
      for (const auto schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward, PipelineSchedule::zb1p})
        result.push_back({schedule, ranks, 1, m});
      result.push_back({PipelineSchedule::zbv, ranks, 2, m});
      for (const auto schedule : {PipelineSchedule::interleaved, PipelineSchedule::interleaved_zero_bubble})
        for (const std::int32_t v : {2, 3}) result.push_back({schedule, ranks, v, m});
      result.push_back({PipelineSchedule::one_forward_one_backward, ranks, 1, m, Framework::megatron});
      for (const std::int32_t v : {2, 3})
        result.push_back({PipelineSchedule::interleaved, ranks, v, m, Framework::megatron});
    }
  std::erase_if(result, [](const PipelineShape& shape) { return !complaint(shape).empty(); });
  return result;
}

std::string letters(const RankActions& actions) {
  std::string text;
  for (const StageAction& action : actions)
    if (action.computes()) text += "FBIW"[static_cast<std::size_t>(action.kind)];
  return text;
}

TEST(PipelineSchedule, EveryMicroBatchGoesThroughEveryStageOnce) {
  for (const PipelineShape& shape : shapes()) {
    std::map<std::tuple<int, int, char>, int> count;
    for (const RankActions& actions : make_schedule(shape))
      for (const StageAction& action : actions)
        if (action.computes())
          ++count[{action.stage, action.micro_batch, "FBIW"[static_cast<std::size_t>(action.kind)]}];
    for (int stage = 0; stage < shape.stages(); ++stage)
      for (int i = 0; i < shape.micro_batches; ++i) {
        const int forward = count[{stage, i, 'F'}], whole = count[{stage, i, 'B'}], input = count[{stage, i, 'I'}],
                  weight = count[{stage, i, 'W'}];
        EXPECT_EQ(forward, 1);
        EXPECT_EQ(whole + input, 1);
        EXPECT_EQ(input, weight);
      }
  }
}

TEST(PipelineSchedule, BothSidesOfEveryTransferAreThereOnce) {
  for (const PipelineShape& shape : shapes()) {
    std::map<std::uint64_t, std::pair<int, int>> sides;
    const auto ranks = make_schedule(shape);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      for (const StageAction& action : ranks[rank])
        for (const Transfer& transfer : action.transfers) {
          ++(transfer.send ? sides[transfer.key()].first : sides[transfer.key()].second);
          EXPECT_NE(static_cast<std::size_t>(transfer.peer), rank);
        }
    for (const auto& [key, side] : sides) EXPECT_EQ(side, (std::pair{1, 1}));
  }
}

TEST(PipelineSchedule, OneForwardOneBackwardWarmsUpWithAsManyMicroBatchesAsStagesFollow) {
  const PipelineShape shape{PipelineSchedule::one_forward_one_backward, 4, 1, 8};
  const auto ranks = make_schedule(shape);
  EXPECT_EQ(letters(ranks[0]), "FFFFBFBFBFBFBBBB");
  EXPECT_EQ(letters(ranks[3]), "FBFBFBFBFBFBFBFB");
  for (std::int32_t stage = 0; stage < 4; ++stage)
    EXPECT_EQ(most_in_flight(ranks[static_cast<std::size_t>(stage)]), std::min(8, 4 - stage));
}

TEST(PipelineSchedule, MegatronWarmsUpWithOnePassForEachStageBehind) {
  const PipelineShape shape{PipelineSchedule::one_forward_one_backward, 4, 1, 8, Framework::megatron};
  const auto ranks = make_schedule(shape);
  EXPECT_EQ(letters(ranks[0]), "FFFFBFBFBFBFBBBB");
  EXPECT_EQ(letters(ranks[2]), "FFBFBFBFBFBFBFBB");
  EXPECT_EQ(letters(ranks[3]), "FBFBFBFBFBFBFBFB");
  // Fewer micro-batches than stages run too.
  EXPECT_EQ(letters(make_schedule({shape.schedule, 4, 1, 2, shape.framework})[0]), "FFBB");
  // An exchange is waited for at once.
  for (const RankActions& actions : ranks)
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (actions[i].kind == Kind::exchange) {
        EXPECT_EQ(actions[i + 1].kind, Kind::wait);
      }
}

// 2 (ranks - 1 - rank) + (v - 1) ranks forward passes first; or all, where there are no more.
TEST(PipelineSchedule, MegatronInterleavesInRoundsOfTheRanks) {
  const auto ranks = make_schedule({PipelineSchedule::interleaved, 4, 2, 8, Framework::megatron});
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(letters(ranks[rank]).find('B'), 4 + 2 * (3 - rank) + 1);
  const auto once = make_schedule({PipelineSchedule::interleaved, 4, 2, 4, Framework::megatron});
  EXPECT_EQ(letters(once[0]), "FFFFFFFFBBBBBBBB");
  EXPECT_EQ(letters(once[1]), "FFFFFFFFBBBBBBBB");
  EXPECT_EQ(letters(once[3]), "FFFFFBFBFBFBBBBB");
  EXPECT_THAT(complaint({PipelineSchedule::interleaved, 4, 2, 10, Framework::megatron}),
              ::testing::HasSubstr("multiple of 4"));
}

TEST(PipelineSchedule, GPipeHoldsAllMicroBatches) {
  for (const RankActions& actions : make_schedule({PipelineSchedule::gpipe, 4, 1, 8})) {
    EXPECT_EQ(letters(actions), "FFFFFFFFBBBBBBBB");
    EXPECT_EQ(most_in_flight(actions), 8);
  }
}

// Two stages a rank, four ranks, eight micro-batches: (v - 1) * 4 + 2 * (ranks - 1 - rank) forward passes first.
TEST(PipelineSchedule, InterleavedWarmsUp) {
  const auto ranks = make_schedule({PipelineSchedule::interleaved, 4, 2, 8});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const std::string order = letters(ranks[rank]);
    EXPECT_EQ(order.find('B'), 4 + 2 * (3 - rank) + 1) << order;
  }
  const auto split = make_schedule({PipelineSchedule::interleaved_zero_bubble, 4, 2, 8});
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(letters(split[rank]).find('I'), 4 + (3 - rank) + 1);
}

// As NCCL kernels were counted in profiles of rank 0 on 2 and 4 H200s.
TEST(PipelineSchedule, FirstRanksExchangeAsOftenAsMeasured) {
  const auto batches = [](const PipelineShape& shape) {
    const auto ranks = make_schedule(shape);
    return std::count_if(ranks[0].begin(), ranks[0].end(),
                         [](const StageAction& a) { return a.kind == Kind::exchange; });
  };
  EXPECT_EQ(batches({PipelineSchedule::gpipe, 2, 1, 4}), 8);
  EXPECT_EQ(batches({PipelineSchedule::one_forward_one_backward, 2, 1, 8}), 9);
  EXPECT_EQ(batches({PipelineSchedule::one_forward_one_backward, 2, 1, 16}), 17);
  EXPECT_EQ(batches({PipelineSchedule::one_forward_one_backward, 4, 1, 4}), 7);
  EXPECT_EQ(batches({PipelineSchedule::one_forward_one_backward, 4, 1, 8}), 11);
  EXPECT_EQ(batches({PipelineSchedule::interleaved, 2, 2, 8}), 48);
  EXPECT_EQ(batches({PipelineSchedule::interleaved_zero_bubble, 4, 2, 8}), 48);
  EXPECT_EQ(batches({PipelineSchedule::gpipe, 4, 1, 16}), 32);
}

TEST(PipelineSchedule, ZbvFoldsTheNetwork) {
  const PipelineShape shape{PipelineSchedule::zbv, 4, 2, 8};
  EXPECT_THAT(shape.stages_of(0), ::testing::ElementsAre(0, 7));
  EXPECT_THAT(shape.stages_of(3), ::testing::ElementsAre(3, 4));
  // The last rank hands activations to itself.
  const std::vector<RankActions> ranks = make_schedule(shape);
  for (const StageAction& action : ranks[3])
    for (const Transfer& transfer : action.transfers)
      EXPECT_FALSE(transfer.stage == 3 && !transfer.gradient && transfer.send);
}

TEST(PipelineSchedule, AShortStepStandsForALongOne) {
  for (PipelineShape shape : shapes()) {
    if (shape.schedule == PipelineSchedule::gpipe || shape.ranks > 4 || shape.micro_batches != 12) continue;
    shape.micro_batches *= 16;
    if (!complaint(shape).empty()) continue;
    const ShortSchedule shorter = shorten(shape);
    PipelineShape traced = shape;
    traced.micro_batches = shorter.micro_batches;
    EXPECT_LE(shorter.micro_batches, 8 * shape.ranks * shape.stages_a_rank) << shape.micro_batches;
    const auto whole = make_schedule(shape), part = make_schedule(traced);
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      ASSERT_GT(shorter.times, 1);
      const auto length = shorter.ranks[rank].end - shorter.ranks[rank].begin;
      ASSERT_EQ(whole[rank].size(), part[rank].size() + length * static_cast<std::size_t>(shorter.times - 1));
      for (std::size_t i = 0; i < whole[rank].size(); ++i) {
        const StageAction &one = whole[rank][i], &other = part[rank][shorter.position(rank, i)];
        ASSERT_EQ(one.kind, other.kind);
        if (one.computes()) {
          ASSERT_EQ(one.stage, other.stage);
        }
        ASSERT_EQ(one.transfers.size(), other.transfers.size());
        for (std::size_t k = 0; k < one.transfers.size(); ++k)
          ASSERT_EQ(one.transfers[k].peer, other.transfers[k].peer);
      }
    }
  }
}

TEST(PipelineSchedule, RefusesWhatPyTorchRefuses) {
  EXPECT_THAT(complaint({PipelineSchedule::one_forward_one_backward, 4, 1, 3}),
              ::testing::HasSubstr("as many micro-batches"));
  EXPECT_THAT(complaint({PipelineSchedule::interleaved, 4, 2, 9}), ::testing::HasSubstr("rounds"));
  EXPECT_EQ(complaint({PipelineSchedule::interleaved, 4, 2, 10}), "");
  EXPECT_EQ(complaint({PipelineSchedule::gpipe, 4, 1, 1}), "");
}

}  // namespace
}  // namespace ridgeline::parallel
