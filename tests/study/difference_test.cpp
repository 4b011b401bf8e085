// What of a difference is more work and what another rate, worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/made_comparison.h"

namespace ridgeline {
namespace {

struct DifferenceOf : ::testing::Test {
  Session session;
  ComparedScenario before = made_side(session, "before"), after = made_side(session, "after");

  /// Of one class, with what limits it and how much of that.
  [[nodiscard]] ClassDifference of(const ClassWork& a, const ClassWork& b) {
    class_of(before, KernelClass::matrix_products) = a, class_of(after, KernelClass::matrix_products) = b;
    const Difference d = difference_of(before, after);
    for (const ClassDifference& part : d.classes)
      if (part.kernel_class == KernelClass::matrix_products) return part;
    return {};
  }
};

ClassWork products(double ms, double flops) {
  ClassWork work = made_work(ms, 10, Limiter::compute);
  work.flops = flops;
  return work;
}

// L = 100 ms / ln 2: twice the work is L ln 2, four times L ln 4, half of it -L ln 2; the rate has the rest.
TEST_F(DifferenceOf, TwiceTheTimeIsTwiceTheWorkOrHalfTheRate) {
  const auto expect = [&](double flops, double work_ms, double rate_ms) {
    const ClassDifference d = of(products(100, 1e12), products(200, flops));
    EXPECT_NEAR(in_milliseconds(d.difference), 100, 1e-9);
    EXPECT_NEAR(in_milliseconds(d.from_work), work_ms, 1e-9);
    EXPECT_NEAR(in_milliseconds(d.from_rate), rate_ms, 1e-9);
  };
  expect(2e12, 100, 0);
  expect(1e12, 0, 100);
  expect(4e12, 200, -100);
  expect(0.5e12, -100, 200);
}

TEST_F(DifferenceOf, EqualTimesMayHideWorkAndRate) {
  const ClassDifference d = of(products(100, 1e12), products(100, 2e12));
  EXPECT_NEAR(in_milliseconds(d.difference), 0, 1e-12);
  EXPECT_NEAR(in_milliseconds(d.from_work), 100 * std::log(2.0), 1e-9);
  EXPECT_NEAR(in_milliseconds(d.from_rate), -100 * std::log(2.0), 1e-9);
}

// What limits the longer of the two is its work: DRAM's bytes, all bytes for the L2, kernels where nothing else does.
TEST_F(DifferenceOf, WorkIsWhatLimitsTheLongerOne) {
  const auto work_of = [&](Limiter limiter) {
    ClassWork a = made_work(100, 10, Limiter::latency), b = made_work(200, 20, limiter);
    a.flops = 1, b.flops = 2;
    a.dram_bytes = 1, b.dram_bytes = 4;
    a.bytes = 1, b.bytes = 8;
    b.kernels = 160;
    return in_milliseconds(of(a, b).from_work) / 100;
  };
  EXPECT_NEAR(work_of(Limiter::compute), 1, 1e-9);
  EXPECT_NEAR(work_of(Limiter::shared_memory), 1, 1e-9);
  EXPECT_NEAR(work_of(Limiter::power), 1, 1e-9);
  EXPECT_NEAR(work_of(Limiter::dram), 2, 1e-9);
  EXPECT_NEAR(work_of(Limiter::l2), 3, 1e-9);
  EXPECT_NEAR(work_of(Limiter::latency), 4, 1e-9);
  EXPECT_NEAR(work_of(Limiter::launch), 4, 1e-9);
}

TEST_F(DifferenceOf, WhatCameOrWentIsWork) {
  const ClassDifference came = of({}, products(40, 1e12)), went = of(products(40, 1e12), {});
  EXPECT_NEAR(in_milliseconds(came.from_work), 40, 1e-9);
  EXPECT_NEAR(in_milliseconds(went.from_work), -40, 1e-9);
  EXPECT_EQ(came.from_rate, Seconds{});
  EXPECT_FALSE(of({}, {}).kernel_class) << "a class that neither has is not told";
}

TEST_F(DifferenceOf, TheLargestComesFirstAndWaitingIsAClassToo) {
  class_of(before, KernelClass::loss) = made_work(10, 1, Limiter::dram);
  class_of(after, KernelClass::loss) = made_work(4, 1, Limiter::dram);
  class_of(before, KernelClass::copies) = made_work(1, 1, Limiter::dram);
  class_of(after, KernelClass::copies) = made_work(2, 1, Limiter::dram);
  before.prediction.idle = made_ms(30), after.prediction.idle = made_ms(33);
  after.prediction.step.time = made_ms(150);
  const Difference d = difference_of(before, after);
  EXPECT_NEAR(in_milliseconds(d.time), -50, 1e-9);
  ASSERT_EQ(d.classes.size(), 3U);
  EXPECT_EQ(d.classes[0].kernel_class, KernelClass::loss);
  EXPECT_FALSE(d.classes[1].kernel_class);
  EXPECT_NEAR(in_milliseconds(d.classes[1].difference), 3, 1e-9);
  EXPECT_NEAR(in_milliseconds(d.classes[1].before.time), 30, 1e-9);
  EXPECT_EQ(d.classes[2].kernel_class, KernelClass::copies);
}

TEST_F(DifferenceOf, MemoryIsThatOfItsParts) {
  after.prediction.memory.at_peak[static_cast<std::size_t>(Category::gradients)] += 300;
  after.prediction.memory.cached_unused -= 500;
  after.prediction.memory.context += 100;
  after.prediction.memory.device_used -= 100;
  const Difference d = difference_of(before, after);
  EXPECT_EQ(d.memory, -100);
  ASSERT_EQ(d.parts.size(), 9U);
  EXPECT_EQ(d.parts[0].part, kCachedPart);
  EXPECT_EQ(d.parts[0].after - d.parts[0].before, -500);
  EXPECT_EQ(d.parts[1].part, static_cast<std::size_t>(Category::gradients));
  EXPECT_EQ(d.parts[1].before, made_gib(1.5));
  EXPECT_EQ(d.parts[2].part, kContextPart);
}

}  // namespace
}  // namespace ridgeline
