// How a GPU was when a step was recorded: kernels of a recording that never was, whose clock and additions are known.
#include "sim/answer/recorded_conditions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridgeline {
namespace {

constexpr Seconds kFixed{0.8e-6};

/// Six operators whose long calls wait for the clock, six that wait for the DRAM (where asked), and short calls.
std::vector<ComparableCall> recorded(double clock, Seconds added, bool with_dram = true, double all = 1.0) {
  std::vector<ComparableCall> calls;
  std::size_t like = 0;
  const auto call = [&](std::size_t name, double us, double exponent, double off) {
    ComparableCall made;
    made.name = name;
    made.like = like++;
    made.predicted = Seconds(us * 1e-6);
    made.slowed = std::pow(kSlowedClock, -exponent) * made.predicted;
    made.measured = all * off * std::pow(clock, -exponent) * made.predicted + added;
    for (int times = 0; times < 4; ++times) {
      made.asked = times % 2 == 0;
      calls.push_back(made);
    }
  };
  for (std::size_t i = 0; i < 6; ++i) {
    const double off = 0.9 + 0.04 * static_cast<double>(i);  // the laws' own errors
    call(i, 20.0 + 30.0 * static_cast<double>(i), 1.0, off);
    if (with_dram) call(10 + i, 30.0 + 40.0 * static_cast<double>(i), 0.0, off);
    call(20 + i, 1.0 + 0.1 * static_cast<double>(i), 0.2, 1.0);
  }
  return calls;
}

TEST(RecordedConditions, FindTheClockAndWhatIsAdded) {
  // A T4 of 1590 MHz was recorded at 750.
  for (const double clock : {1.0, 0.85, 750.0 / 1590.0})
    for (const Seconds added : {Seconds{}, Seconds{2e-6}}) {
      const RecordedConditions found = recorded_conditions(recorded(clock, added), kFixed);
      EXPECT_NEAR(found.clock, clock, 0.05) << clock;
      EXPECT_NEAR(found.added.value(), added.value(), 0.25e-6) << clock;
    }
}

TEST(RecordedConditions, WhatSlowsDownEverythingIsNoClock) {
  EXPECT_DOUBLE_EQ(recorded_conditions(recorded(1.0, Seconds{}, true, 2.0), kFixed).clock, 1.0);
  // Without kernels that the DRAM limits, half of a clock is as likely a wrong unit.
  EXPECT_DOUBLE_EQ(recorded_conditions(recorded(0.5, Seconds{}, false), kFixed).clock, 1.0);
  EXPECT_NEAR(recorded_conditions(recorded(0.8, Seconds{}, false), kFixed).clock, 0.8, 0.03);
}

TEST(RecordedConditions, AskOneHalfOfTheCallsAndNoneThatShared) {
  std::vector<ComparableCall> calls = recorded(0.7, Seconds{2e-6});
  const RecordedConditions before = recorded_conditions(calls, kFixed);
  for (ComparableCall& call : calls)
    if (!call.asked) call.measured = 3.0 * call.measured;
  const RecordedConditions after = recorded_conditions(calls, kFixed);
  EXPECT_DOUBLE_EQ(after.clock, before.clock);
  EXPECT_EQ(after.added, before.added);
  for (ComparableCall& call : calls) call.beside = 0.5 * call.measured;
  const RecordedConditions none = recorded_conditions(calls, kFixed);
  EXPECT_DOUBLE_EQ(none.clock, 1.0);
  EXPECT_EQ(none.added, Seconds{});
}

TEST(RecordedConditions, OneOperatorOrManyThatDisagreeSayNothing) {
  std::vector<ComparableCall> calls = recorded(0.7, Seconds{});
  for (ComparableCall& call : calls) call.name = 0;
  EXPECT_DOUBLE_EQ(recorded_conditions(calls, kFixed).clock, 1.0);
  calls = recorded(0.7, Seconds{});
  for (ComparableCall& call : calls)
    if (call.name < 3) call.measured = 0.5 * call.measured;
  EXPECT_DOUBLE_EQ(recorded_conditions(calls, kFixed).clock, 1.0);
}

}  // namespace
}  // namespace ridgeline
