#include "sim/units/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
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

TEST(Budget, ProcessorTimeIsThatOfAllThreads) {
  const Budget budget({.time = std::chrono::seconds(100)});
  const auto burn = [&] {
    const UnderBudget under(&budget);
    const std::clock_t begin = std::clock();  // of the process: each thread burns a part of it
    while (std::clock() - begin < CLOCKS_PER_SEC / 5) keep_budget_often("counting sheep");
  };
  const std::clock_t begin = std::clock();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(burn);
  for (std::thread& thread : threads) thread.join();
  const double all = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_GT(all, 0.2);
  EXPECT_NEAR(1e-9 * static_cast<double>(budget.processor_time().count()), all, 0.02 + 0.05 * all);
}

TEST(Budget, ProcessorTimeThatIsSpentSaysWhatTookIt) {
  const Budget budget({.time = std::chrono::seconds(1)});
  std::atomic<int> told{0};
  const auto burn = with_same_budget([&] {
    const UnderBudget under(&budget);
    try {
      for (;;) keep_budget_often("counting sheep");
    } catch (const OverBudget& error) {
      const std::string what = error.what();
      told += what == "counting sheep takes more than 1 s of processors, the time of one question" ||
              what == "counting sheep takes longer than 1 s, the time of one question";  // as few cores are idle
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(burn);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 4);
}

// What a thread did before it came under a budget, or between two, is not the question's.
TEST(Budget, ProcessorTimeOfOthersIsNotCounted) {
  const auto burn = [](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) keep_budget("counting sheep");
  };
  const Budget budget({.time = std::chrono::seconds(1)});
  burn(std::chrono::milliseconds(400));
  const UnderBudget under(&budget);
  burn(std::chrono::milliseconds(200));
  {
    const Budget other({.time = std::chrono::seconds(1)});
    const UnderBudget inner(&other);
    burn(std::chrono::milliseconds(200));
  }
  EXPECT_NO_THROW(burn(std::chrono::milliseconds(100)));
}

/// Blocks of a program that counts them (sim/app/counted_memory.cpp).
class Blocks {
 public:
  explicit Blocks(std::int64_t bytes) : bytes_(bytes) { bytes_of_blocks += bytes_; }
  ~Blocks() { bytes_of_blocks -= bytes_; }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

 private:
  std::int64_t bytes_;
};

TEST(Budget, BlocksCountBeforeTheyAreTouched) {
  const Budget budget({.memory = 100'000'000});
  EXPECT_EQ(spent(budget), "");
  const Blocks blocks(150'000'000);
  EXPECT_GE(budget.grown(), 150'000'000);
  EXPECT_THAT(spent(budget, "a list of sheep"), StartsWith("a list of sheep takes more than 95.4 MiB of memory"));
}

/// Evaluations of so many bytes each, on sixteen threads under one budget.
class Evaluations {
 public:
  Evaluations(std::int64_t memory, std::int64_t of_one, int of_each_thread) : budget_({.memory = memory}) {
    const UnderBudget under(&budget_);
    const auto work = with_same_budget([&] {
      for (int i = 0; i < of_each_thread; ++i) try {
          evaluated([&] { evaluate(of_one); });
          ++done;
        } catch (const OverBudget&) {
          ++refused;
        }
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  }
  std::atomic<int> most{0}, done{0}, refused{0}, begun{0};

 private:
  void evaluate(std::int64_t bytes) {
    struct Count {
      std::atomic<int>& of;
      explicit Count(std::atomic<int>& running) : of(running) { ++of; }
      ~Count() { --of; }
    } const count(running_);
    ++begun;
    if (const int now = running_; now > most) most = now;
    for (int part = 1; part <= 5; ++part) {
      const Blocks blocks(bytes / 5 * part);
      keep_budget("an evaluation");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Budget budget_;
  std::atomic<int> running_{0};
};

// A quarter of the budget each: none is refused, and several run at once.
TEST(EvaluationSlots, AreAsManyAsTheMemoryHolds) {
  const Evaluations some(400'000'000, 100'000'000, 3);
  EXPECT_EQ(some.refused, 0);
  EXPECT_EQ(some.done, 48);
  EXPECT_LE(some.most, 4);
  EXPECT_GE(some.most, 2);
}

// Nobody knows how large the first ones are: those that find no room beside others run again alone.
TEST(EvaluationSlots, OneThatFindsNoRoomBesideOthersRunsAgainAlone) {
  const Evaluations large(100'000'000, 90'000'000, 2);
  EXPECT_EQ(large.refused, 0);
  EXPECT_EQ(large.done, 32);
  const Evaluations too_large(100'000'000, 150'000'000, 1);
  EXPECT_EQ(too_large.refused, 16);
  EXPECT_LE(too_large.begun, 32);
}

TEST(EvaluationSlots, HoldOneThatIsLargerThanExpectedAndThoseInside) {
  const Budget budget({.memory = 100'000'000});
  const UnderBudget under(&budget);
  const EvaluationSlot slot;
  const Blocks blocks(90'000'000);
  const EvaluationSlot inside;  // does not wait for the one around it
  EXPECT_NO_THROW(keep_budget("an evaluation"));
}

TEST(EvaluationSlots, StopToWaitWithTheQuestion) {
  std::atomic<bool> flag{false};
  const Budget budget({.memory = 100'000'000}, {}, &flag);
  const UnderBudget under(&budget);
  const EvaluationSlot slot;
  const Blocks blocks(90'000'000);
  keep_budget("an evaluation");
  std::atomic<int> stopped{0}, begun{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 8; ++i)
    waiting.emplace_back(with_same_budget([&] {
      try {
        const EvaluationSlot another;
        ++begun;
        while (!is_stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } catch (const Cancelled&) {
        ++stopped;
      }
    }));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  flag = true;
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(begun + stopped, 8);
  EXPECT_GE(stopped, 5);
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
