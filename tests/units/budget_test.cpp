#include "sim/units/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string spent(const Budget& budget, const char* what = "the work") {
  try {
    budget.check(what);
  } catch (const OverBudget& error) {
    return error.what();
  }
  return "";
}

TEST(Budget, WithoutOneNothingIsThrown) {
  for (int i = 0; i < 1000; ++i) keep_budget("the work"), keep_budget_often("the work");
  EXPECT_FALSE(is_stopped());
}

TEST(Budget, BothTheTokenAndTheFlagStop) {
  std::stop_source source{};
  std::atomic<bool> flag{false};
  const Budget budget({}, source.get_token(), &flag);
  const UnderBudget under(&budget);
  EXPECT_NO_THROW(keep_budget("the work"));
  flag = true;
  EXPECT_TRUE(is_stopped());
  EXPECT_THROW(keep_budget("the work"), Cancelled);
  flag = false;
  EXPECT_NO_THROW(keep_budget("the work"));
  source.request_stop();
  EXPECT_THROW(keep_budget("the work"), Cancelled);
}

TEST(Budget, AListIsRefusedBeforeItIsMade) {
  const Budget budget({.memory = 100'000'000});
  const UnderBudget under(&budget);
  EXPECT_NO_THROW(keep_budget_for(50'000'000, "the list"));
  EXPECT_THROW(keep_budget_for(150'000'000, "the list"), OverBudget);
  std::vector<char> list;
  list.reserve(70'000'000);
  EXPECT_NO_THROW(keep_budget_to_grow(list, "the list"));
  list.resize(list.capacity());
  EXPECT_THROW(keep_budget_to_grow(list, "the list"), OverBudget);
}

TEST(Budget, ShortRoundsLookNowAndThen) {
  std::atomic<bool> flag{true};
  const Budget budget({}, {}, &flag);
  const UnderBudget under(&budget);
  EXPECT_THROW(for (int i = 0; i < 256; ++i) keep_budget_often("the work"), Cancelled);
}

TEST(Budget, HoldsForTheThreadAndForWorkThatIsHandedOver) {
  std::atomic<bool> flag{true};
  const Budget budget({}, {}, &flag);
  const UnderBudget under(&budget);
  bool alone = true, handed = false;
  const auto work = with_same_budget([&] { handed = is_stopped(); });
  std::thread([&] {
    alone = is_stopped();
    work();
    EXPECT_FALSE(is_stopped()) << "the thread is as it was";
  }).join();
  EXPECT_FALSE(alone);
  EXPECT_TRUE(handed);
}

TEST(Budget, AnInnerOneHoldsAsLongAsItLives) {
  std::atomic<bool> flag{true};
  const Budget outer({}, {}, &flag);
  const UnderBudget under(&outer);
  {
    const UnderBudget none(nullptr);
    EXPECT_FALSE(is_stopped());
  }
  EXPECT_TRUE(is_stopped());
}

TEST(Budget, TimeThatIsSpentSaysWhatTookIt) {
  const Budget budget({.time = std::chrono::seconds(1)});
  EXPECT_EQ(spent(budget), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  EXPECT_EQ(spent(budget, "counting sheep"), "counting sheep takes longer than 1 s, the time of one question");
}

TEST(Budget, MemoryThatIsSpentSaysWhatGrew) {
  const Budget budget({.memory = 64 << 20});
  EXPECT_EQ(spent(budget), "");
  const std::vector<char> grown(160 << 20, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(spent(budget, "a list of sheep"),
              StartsWith("a list of sheep takes more than 64.0 MiB of memory; RIDGE"));
  EXPECT_NE(spent(budget), "") << "whoever looks next sees the same";
  EXPECT_EQ(grown.back(), 1);
}

// Of several questions in one process those end that grew, not one that came when the memory was full already.
TEST(Budget, AProcessThatIsFullBlamesWhoGrew) {
  const Budget grew({.memory = std::int64_t{1} << 29, .process = 64 << 20});
  const std::vector<char> grown(200 << 20, 1);
  const Budget late({.memory = std::int64_t{1} << 29, .process = 64 << 20});
  EXPECT_GT(grew.grown(), 150 << 20);
  EXPECT_THAT(spent(grew, "a list of sheep"), StartsWith("a list of sheep takes more than the last "));
  EXPECT_EQ(spent(late), "");
  EXPECT_EQ(grown.back(), 1);
}

TEST(Budget, AnotherMemoryIsAllowedByTheEnvironment) {
  ::setenv("RIDGELINE_MEMORY_BUDGET", "4 GiB", 1);
  EXPECT_EQ(memory_budget(), std::int64_t{4} << 30);
  for (const char* wrong : {"4", "much", "3 s", "-1 GiB"}) {
    ::setenv("RIDGELINE_MEMORY_BUDGET", wrong, 1);
    try {
      (void)memory_budget();
      ADD_FAILURE() << wrong;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("RIDGELINE_MEMORY_BUDGET: expected bytes with a unit"));
    }
  }
  ::unsetenv("RIDGELINE_MEMORY_BUDGET");
  EXPECT_GE(memory_budget(), kMemoryBudget);
}

}  // namespace
}  // namespace ridgeline
