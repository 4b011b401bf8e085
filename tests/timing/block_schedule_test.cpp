#include "sim/timing/block_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <vector>

namespace ridgeline {
namespace {

/// The obvious way: every block takes the slot that comes free first.
double brute_force(const std::vector<double>& cost, int repeats, int slots) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < slots; ++i) free_at.push(0.0);
  double end = 0.0;
  for (int r = 0; r < repeats; ++r)
    for (const double c : cost) {
      const double done = free_at.top() + c;
      free_at.pop();
      free_at.push(done);
      end = std::max(end, done);
    }
  return end;
}

std::vector<double> ramp(int length) {
  std::vector<double> cost(static_cast<std::size_t>(length));
  std::iota(cost.begin(), cost.end(), 1.0);
  return cost;
}

TEST(BlockSchedule, is_exact_for_a_few_rounds_of_unequal_blocks) {
  for (const int length : {2, 3, 8, 17, 32})
    for (const int repeats : {1, 5, 13, 24})
      for (const int slots : {132, 264})
        if (length * repeats <= 4 * slots) {
          EXPECT_DOUBLE_EQ(schedule_end(ramp(length), repeats, slots), brute_force(ramp(length), repeats, slots))
              << length << "x" << repeats << " on " << slots;
        }
}

TEST(BlockSchedule, is_close_for_many_rounds) {
  for (const int length : {4, 8, 16, 32})
    for (const int repeats : {300, 700})
      EXPECT_NEAR(schedule_end(ramp(length), repeats, 132) / brute_force(ramp(length), repeats, 132), 1.0, 0.02)
          << length << "x" << repeats;
}

TEST(BlockSchedule, counts_whole_rounds_of_equal_blocks) {
  const std::vector<double> cost(8, 2.0);
  EXPECT_DOUBLE_EQ(schedule_end(cost, 33, 264), 2.0);
  EXPECT_DOUBLE_EQ(schedule_end(cost, 34, 264), 4.0);
  EXPECT_DOUBLE_EQ(schedule_end({}, 5, 264), 0.0);
}

TEST(BlockSchedule, blocks_that_share_an_sm_go_faster_when_the_others_have_ended) {
  const std::vector<double> alone(1, 3.0), more(1, 2.0);
  EXPECT_DOUBLE_EQ(shared_schedule_end(alone, more, 132, 132, 2), 3.0);
  EXPECT_DOUBLE_EQ(shared_schedule_end(alone, more, 133, 132, 2), 5.0);
  EXPECT_DOUBLE_EQ(shared_schedule_end(alone, more, 264, 132, 2), 5.0);
  EXPECT_DOUBLE_EQ(shared_schedule_end(alone, more, 265, 132, 2), 8.0);  // the last one is alone
  // Two blocks of one SM, one half as long: together until it ends, then alone.
  EXPECT_DOUBLE_EQ(shared_schedule_end(std::vector{2.0, 4.0}, std::vector{1.0, 2.0}, 1, 1, 2), 3.0 + 0.5 * 4.0);
}

TEST(BlockSchedule, sharing_that_gains_nothing_takes_as_long_as_one_after_the_other) {
  for (const int length : {3, 8, 17})
    for (const int repeats : {20, 30}) {
      const std::vector<double> cost = ramp(length);
      const double load = repeats * length * (length + 1) / 2.0 / 132.0;
      const double end = shared_schedule_end(cost, cost, repeats, 132, 2);
      EXPECT_GE(end, load);
      EXPECT_LE(end, load + 2.0 * length);
    }
}

TEST(BlockSchedule, sharing_by_one_is_none) {
  EXPECT_DOUBLE_EQ(shared_schedule_end(ramp(8), ramp(8), 40, 132, 1), schedule_end(ramp(8), 40, 132));
}

TEST(BlockSchedule, the_latest_end_is_that_of_all_that_are_tried) {
  for (const int resident : {1, 2, 3})
    for (const int length : {1, 4, 17, 32})
      for (const int repeats : {1, 3, 12, 40, 150})
        for (const int sms : {7, 40, 56, 100}) {  // every number of them is tried up to 127
          std::vector<double> cost = ramp(length), more(cost.size());
          if (repeats % 2 == 0) std::reverse(cost.begin(), cost.end());
          for (std::size_t i = 0; i < cost.size(); ++i) {
            more[i] = resident > 1 ? 0.37 * cost[i] / (resident - 1.0) : 0.0;
            cost[i] *= 0.63;
          }
          double latest = 0.0;
          for (int count = sms; count <= 127 && count <= std::max(sms, length * repeats); ++count)
            latest = std::max(latest, shared_schedule_end(cost, more, repeats, count, resident));
          EXPECT_GE(latest_schedule_end(cost, more, repeats, sms, resident), latest * (1.0 - 1e-12))
              << resident << " " << length << " " << repeats << " " << sms;
        }
}

TEST(BlockSchedule, no_grid_ends_below_its_floor_which_knows_the_longest_block_and_all_of_the_work) {
  for (const int length : {1, 2, 9, 40})
    for (const int repeats : {1, 7, 60, 500})
      for (const int resident : {1, 2}) {
        const std::vector<double> alone = ramp(length), more(alone.size(), 0.5);
        const double floor = least_schedule_end(alone, more, repeats, 132, resident);
        double work = 0.0;
        for (const double block : alone) work += block + (resident - 1) * 0.5;
        EXPECT_GE(floor, alone.back());
        EXPECT_GE(floor * (1.0 + 1e-12), work * repeats / (132.0 * resident));
        if (resident == 1) {
          EXPECT_LE(floor, schedule_end(alone, repeats, 132) * (1.0 + 1e-12)) << length << "x" << repeats;
        }
      }
  const std::vector<double> one(1, 5.0), nothing(1, 0.0);
  EXPECT_DOUBLE_EQ(least_schedule_end(one, nothing, 1, 132, 1), 5.0) << "a block alone";
  EXPECT_DOUBLE_EQ(least_schedule_end(one, nothing, 1320, 132, 1), 50.0) << "ten rounds of equal blocks";
}

}  // namespace
}  // namespace ridgeline
