// When a stretch of an op trace does again what the one before it did: any difference that one record can have, by
// hand.
#include "sim/workload/repeated_range.h"

#include <gtest/gtest.h>

#include <functional>

namespace ridgeline {
namespace {

constexpr StorageId kWeight = 0, kFirst = 1, kSecond = 2, kEmpty = 3, kOther = 4;

/// Twice: host work, a storage is made, an operation reads a weight and one without bytes and writes the storage, the
/// host waits, the storage goes. Records 0 to 4 and 5 to 9.
OpTrace twice() {
  OpTrace trace;
  trace.ops = {Softmax{}, Softmax{.log = true}};
  trace.storages = {{64, Category::weights}, {32}, {32}, {0}, {64, Category::weights}};
  for (const StorageId own : {kFirst, kSecond}) {
    Call call;
    call.operands_begin = static_cast<std::uint32_t>(trace.operands.size());
    call.inputs = 2;
    call.outputs = 1;
    for (const Operand& operand : {Operand{kWeight, 64}, Operand{kEmpty, 0}, Operand{own, 32}})
      trace.operands.push_back(operand);
    trace.records.push_back({Record::Kind::host, HostClass::linear, 0, 3});
    trace.records.push_back({Record::Kind::allocate, {}, 0, own});
    trace.records.push_back({Record::Kind::op, {}, 0, static_cast<std::uint32_t>(trace.calls.size())});
    trace.records.push_back({Record::Kind::wait_for_gpu, {}, 0, 0});
    trace.records.push_back({Record::Kind::free, {}, 0, own});
    trace.calls.push_back(call);
  }
  return trace;
}
bool again(const OpTrace& trace) { return runs_again(trace, {0, 5}, {5, 10}); }
bool again_after(const std::function<void(OpTrace&)>& change) {
  OpTrace trace = twice();
  change(trace);
  return again(trace);
}

TEST(RepeatedRange, TheSameOnStoragesOfEqualSizeRunsAgain) {
  EXPECT_TRUE(again(twice()));
  EXPECT_FALSE(runs_again(twice(), {0, 5}, {5, 9}));
  EXPECT_FALSE(runs_again(twice(), {0, 4}, {5, 10}));
  EXPECT_FALSE(runs_again(twice(), {0, 0}, {5, 5}));                     // nothing is no stretch
  EXPECT_TRUE(again_after([](OpTrace& t) { t.records[8].index = 7; }));  // a wait has no number
}

TEST(RepeatedRange, EveryFieldOfARecordCounts) {
  EXPECT_FALSE(again_after([](OpTrace& t) { t.records[5].kind = Record::Kind::wait_for_gpu; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.records[5].host_class = HostClass::pointwise; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.records[5].index = 4; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.records[8].stream = 1; }));
}

// Events have numbers of their own in each stretch: what counts is where the one waited for was recorded.
TEST(RepeatedRange, AWaitIsForTheEventInTheSamePlaceOrForOneOlderThanBoth) {
  for (const auto kind : {Record::Kind::wait_event, Record::Kind::host_waits_for_event}) {
    const auto waiting_for = [&](std::uint32_t first, std::uint32_t second, bool recorded) {
      return again_after([&](OpTrace& t) {
        t.records[3] = {kind, {}, 0, first}, t.records[8] = {kind, {}, 0, second};
        if (recorded)
          for (const std::uint32_t stretch : {0U, 1U})
            t.records[5 * stretch] = {Record::Kind::record_event, {}, 0, stretch};
      });
    };
    EXPECT_TRUE(waiting_for(9, 9, false)) << "one event from before";
    EXPECT_FALSE(waiting_for(9, 8, false)) << "two";
    EXPECT_TRUE(waiting_for(0, 1, true)) << "each for its own";
    EXPECT_FALSE(waiting_for(9, 1, true)) << "one from before, one for its own";
    EXPECT_FALSE(waiting_for(0, 0, true)) << "both for that of the first stretch";
  }
  EXPECT_FALSE(again_after([&](OpTrace& t) { t.records[3].kind = Record::Kind::record_event; }));
}

TEST(RepeatedRange, EveryFieldOfACallCounts) {
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].op = 1; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].phase = Phase::backward; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].stream = 1; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].layer = 0; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].module = 1; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].inputs = 1, t.calls[1].outputs = 1; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.calls[1].outputs = 0; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.operands[3].bytes = 32; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.operands[5].bytes = 16; }));
}

TEST(RepeatedRange, StoragesAreTheSameOrMadeAlike) {
  EXPECT_FALSE(again_after([](OpTrace& t) { t.operands[3].storage = kOther; }));  // another weight
  EXPECT_FALSE(again_after([](OpTrace& t) { t.operands[4].storage = kOther; }));  // only one has no bytes
  EXPECT_TRUE(again_after([](OpTrace& t) {
    t.storages[kOther].bytes = 0;
    t.operands[4].storage = kOther;  // neither has
  }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.operands[5].storage = kFirst; }));  // that of the first stretch
  EXPECT_FALSE(again_after([](OpTrace& t) { t.storages[kSecond].bytes = 33; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.storages[kSecond].category = Category::temporaries; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.storages[kSecond].layer = 1; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.storages[kSecond].stream = 1; }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.storages[kSecond].module = 1; }));
}

TEST(RepeatedRange, WhatIsMadeIsFreedAndNothingElse) {
  EXPECT_FALSE(again_after([](OpTrace& t) { t.records[4] = t.records[9] = t.records[3]; }));  // never freed
  EXPECT_FALSE(again_after([](OpTrace& t) {
    for (const std::size_t wait : {3U, 8U}) t.records[wait] = {Record::Kind::free, {}, 0, kWeight};
  }));
  EXPECT_FALSE(again_after([](OpTrace& t) { t.records[9].index = kFirst; }));
}

TEST(RepeatedRange, CallsOfRepeatedRecordsAreCountedAsOftenAsTheyRun) {
  OpTrace trace = twice();
  trace.steps = {{0, 10}};
  EXPECT_EQ(repeated_calls(trace).times_of(0), 1);
  trace.repeats = {{{5, 10}, 6}};
  EXPECT_TRUE(repeats_are_steady(trace));
  const RepeatedCalls calls = repeated_calls(trace);
  EXPECT_EQ(calls.times_of(0), 1);
  EXPECT_EQ(calls.times_of(1), 6);
  EXPECT_EQ(calls.times_of(2), 1);
  trace.storages[kSecond].bytes = 33;
  EXPECT_FALSE(repeats_are_steady(trace));
}

}  // namespace
}  // namespace ridgeline
