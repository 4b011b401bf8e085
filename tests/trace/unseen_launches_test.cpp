// Kernels launched before the recording began are taken for those of a later round.
#include <gtest/gtest.h>

#include "sim/trace/profiler/unseen_launches.h"

namespace ridgeline::trace {
namespace {

/// Rounds of `of_round` kernels, one behind the other on a stream; each kernel of a round has its own name.
std::vector<GpuEvent> rounds(int count, int of_round, std::int64_t blocks = 8) {
  std::vector<GpuEvent> gpu;
  for (int round = 0; round < count; ++round)
    for (int i = 0; i < of_round; ++i) {
      GpuEvent event;
      event.begin = static_cast<double>(gpu.size());
      event.end = event.begin + 0.5;
      event.name = static_cast<std::uint32_t>(i);
      event.blocks = blocks;
      gpu.push_back(event);
    }
  return gpu;
}
std::vector<bool> first(std::size_t unseen, std::size_t of) {
  std::vector<bool> flags(of);
  for (std::size_t i = 0; i < unseen; ++i) flags[i] = true;
  return flags;
}

TEST(UnseenLaunches, ARoundTakesTheNextRoundsPlaces) {
  const auto gpu = rounds(3, 12);
  const auto twins = later_twins(gpu, first(12, gpu.size()));
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(twins[i], i + 12);
  for (std::size_t i = 12; i < gpu.size(); ++i) EXPECT_EQ(twins[i], i);
}

TEST(UnseenLaunches, ARoundThatWasBegunTakesTheEndOfTheNext) {
  const auto gpu = rounds(3, 12);
  const std::vector<GpuEvent> cut(gpu.begin() + 3, gpu.end());
  const auto twins = later_twins(cut, first(9, cut.size()));
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(twins[i], i + 12);
}

TEST(UnseenLaunches, FewerThanEightInARowOrOtherBlocksAreNotTheSame) {
  const auto few = rounds(3, 7);
  EXPECT_EQ(later_twins(few, first(7, few.size()))[0], 0u);
  auto others = rounds(3, 12);
  for (std::size_t i = 0; i < 12; ++i) others[i].blocks = 9;
  EXPECT_EQ(later_twins(others, first(12, others.size()))[0], 0u);
}

TEST(UnseenLaunches, AnotherStreamIsAnotherRow) {
  auto gpu = rounds(3, 12);
  for (std::size_t i = 0; i < 12; ++i) gpu[i].stream = 1;
  EXPECT_EQ(later_twins(gpu, first(12, gpu.size()))[0], 0u);
}

}  // namespace
}  // namespace ridgeline::trace
