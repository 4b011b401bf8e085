// A memory snapshot of several devices told: segments, histories and what our allocator makes of them, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/allocator/pickle.h"
#include "sim/report/history_report.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kSnapMiB = 1 << 20, kSnapBase = 0x7f0000000000;

PickleValue snap_dict(std::initializer_list<std::pair<const char*, PickleValue>> items) {
  std::vector<std::pair<PickleValue, PickleValue>> out;
  for (const auto& [key, value] : items) out.emplace_back(PickleValue::text(key), value);
  return PickleValue::dict(std::move(out));
}
PickleValue snap_number(std::int64_t number) { return PickleValue::integer(number); }

PickleValue snap_block(std::int64_t bytes, const char* state, std::int64_t requested = 0) {
  return snap_dict(
      {{"size", snap_number(bytes)}, {"requested_size", snap_number(requested)}, {"state", PickleValue::text(state)}});
}
struct SnapOwner {
  std::int64_t device = 0, stream = 0, graph = 0, pool = 0;
};
PickleValue snap_segment(SnapOwner owner, std::int64_t offset, std::int64_t bytes, const char* type,
                         std::vector<PickleValue> blocks) {
  return snap_dict({{"device", snap_number(owner.device)},
                    {"address", snap_number(kSnapBase + offset)},
                    {"total_size", snap_number(bytes)},
                    {"segment_type", PickleValue::text(type)},
                    {"stream", snap_number(owner.stream)},
                    {"segment_pool_id", PickleValue::tuple({snap_number(owner.graph), snap_number(owner.pool)})},
                    {"blocks", PickleValue::list(std::move(blocks))}});
}
PickleValue snap_event(const char* action, std::int64_t offset, std::int64_t bytes) {
  return snap_dict({{"action", PickleValue::text(action)},
                    {"addr", snap_number(kSnapBase + offset)},
                    {"size", snap_number(bytes)},
                    {"stream", snap_number(0)}});
}

struct SnapshotReport : ::testing::Test {
  std::filesystem::path file = temporary_path("snapshot.pickle");
  void TearDown() override { std::filesystem::remove(file); }

  void write(std::vector<PickleValue> segments, std::vector<PickleValue> traces, bool expandable = false) const {
    std::ofstream(file, std::ios::binary) << write_pickle(
        snap_dict({{"segments", PickleValue::list(std::move(segments))},
                   {"device_traces", PickleValue::list(std::move(traces))},
                   {"allocator_settings", snap_dict({{"expandable_segments", PickleValue::boolean(expandable)}})}}));
  }
  [[nodiscard]] HistoryQuestion question(std::string settings = "", std::string capacity = "",
                                         std::int64_t device = -1) const {
    return {file.string(), std::move(settings), std::move(capacity), device};
  }
  [[nodiscard]] std::string told(const HistoryQuestion& asked) const {
    std::string text = history_text(asked);
    EXPECT_TRUE(text.starts_with(file.string() + ": ")) << text;
    return text.substr(file.string().size() + 2);
  }

  /// Device 1: 8 MiB from before, then blocks of 4 and 5 MiB in a second segment of 20 MiB, though the first had room
  /// for both. The first of them waits for another stream at the end, the other is free again.
  [[nodiscard]] static std::vector<PickleValue> segments_of_device_1() {
    return {snap_segment({1}, 0, 20 * kSnapMiB, "large",
                         {snap_block(8 * kSnapMiB, "active_allocated", 8 * kSnapMiB - 100),
                          snap_block(12 * kSnapMiB, "inactive")}),
            snap_segment({1}, 64 * kSnapMiB, 20 * kSnapMiB, "large",
                         {snap_block(4 * kSnapMiB, "active_pending_free", 4 * kSnapMiB - 7),
                          snap_block(16 * kSnapMiB, "inactive")})};
  }
  [[nodiscard]] static PickleValue history_of_device_1() {
    return PickleValue::list({snap_event("segment_alloc", 64 * kSnapMiB, 20 * kSnapMiB),
                              snap_event("alloc", 64 * kSnapMiB, 4 * kSnapMiB - 7),
                              snap_event("alloc", 68 * kSnapMiB, 5 * kSnapMiB),
                              snap_event("free_requested", 68 * kSnapMiB, 5 * kSnapMiB),
                              snap_event("free_completed", 68 * kSnapMiB, 5 * kSnapMiB),
                              snap_event("free_requested", 64 * kSnapMiB, 4 * kSnapMiB - 7)});
  }
  void write_three_devices(bool expandable = false) const {
    std::vector<PickleValue> segments = segments_of_device_1();
    segments.push_back(
        snap_segment({0}, 256 * kSnapMiB, 2 * kSnapMiB, "small",
                     {snap_block(kSnapMiB, "active_allocated", 900000), snap_block(512, "active_pending_free", 300),
                      snap_block(kSnapMiB - 512, "inactive")}));
    segments.push_back(snap_segment({3}, 512 * kSnapMiB, 32 * kSnapMiB, "large",
                                    {snap_block(32 * kSnapMiB, "active_allocated", 31 * kSnapMiB)}));
    segments.push_back(snap_segment(
        {3}, 640 * kSnapMiB, 22 * kSnapMiB, "large",
        {snap_block(11 * kSnapMiB, "inactive"), snap_block(11 * kSnapMiB, "active_allocated", 11 * kSnapMiB)}));
    write(std::move(segments), {PickleValue::list(), history_of_device_1(), PickleValue::list()}, expandable);
  }
};

// 17 MiB at most of 40; ours serves both from the rest of the first segment and never asks for the second. At the end
// it has 8 MiB in use and 4 that wait, so 8 of the 20 MiB lie free beside them.
const char* const kOfDevice1 = R"(replay of 6 events, device 1

  peak allocated   0.017 GiB
  peak reserved    0.039 GiB
  before it began  0.008 GiB in 1 blocks, 0.020 GiB reserved
  device segments  0 asked for; the recording has 1
  fragmentation    0.008 GiB free in split segments at the end
  our allocator    would peak at 0.017 GiB allocated, 0.020 GiB reserved
)";
const char* const kAllDevices = R"(
  device   peak allocated    peak reserved   (--device shows one)
       0        0.001 GiB        0.002 GiB
       1        0.017 GiB        0.039 GiB
       3        0.042 GiB        0.053 GiB
)";

TEST_F(SnapshotReport, TheFirstDeviceWithAHistoryIsToldAndAllAreListed) {
  write_three_devices();
  EXPECT_EQ(told(question()), std::string(kOfDevice1) + kAllDevices);
  EXPECT_EQ(told(question("", "", 1)), std::string(kOfDevice1) + kAllDevices);
}

TEST_F(SnapshotReport, WithoutAHistoryTheSegmentsAreToldAsTheyAre) {
  write_three_devices();
  EXPECT_EQ(told(question("", "", 0)),
            std::string(R"(memory snapshot without a recorded history; its segments as they are, device 0

  allocated        0.001 GiB
  requested        0.001 GiB
  reserved         0.002 GiB in 1 segments
)") + kAllDevices);
  EXPECT_EQ(told(question("", "", 3)),
            std::string(R"(memory snapshot without a recorded history; its segments as they are, device 3

  allocated        0.042 GiB
  requested        0.041 GiB
  reserved         0.053 GiB in 2 segments
)") + kAllDevices);
  write({snap_segment({0}, 0, 2 * kSnapMiB, "small", {snap_block(2 * kSnapMiB, "inactive")})}, {});
  EXPECT_THAT(told(question()), Not(HasSubstr("(--device shows one)"))) << "there is one";
  EXPECT_FALSE(history_json(question()).contains("devices"));
}

json of_device_0() {
  return {{"source", "segments"},
          {"device", 0},
          {"peak_allocated_bytes", kSnapMiB},
          {"peak_reserved_bytes", 2 * kSnapMiB},
          {"segments", 1},
          {"allocated_bytes", kSnapMiB},
          {"active_bytes", kSnapMiB + 512},
          {"requested_bytes", 900300},
          {"reserved_bytes", 2 * kSnapMiB}};
}
json of_device_3() {
  return {{"source", "segments"},
          {"device", 3},
          {"peak_allocated_bytes", 43 * kSnapMiB},
          {"peak_reserved_bytes", 54 * kSnapMiB},
          {"segments", 2},
          {"allocated_bytes", 43 * kSnapMiB},
          {"active_bytes", 43 * kSnapMiB},
          {"requested_bytes", 42 * kSnapMiB},
          {"reserved_bytes", 54 * kSnapMiB}};
}
json recorded_of_device_1() {
  return {{"blocks_before", 1},
          {"allocated_before_bytes", 8 * kSnapMiB},
          {"reserved_before_bytes", 20 * kSnapMiB},
          {"peak_allocated_bytes", 17 * kSnapMiB},
          {"peak_reserved_bytes", 40 * kSnapMiB},
          {"allocated_bytes", 8 * kSnapMiB},
          {"reserved_bytes", 40 * kSnapMiB},
          {"pools",
           {{{"stream", 0},
             {"pool_id", {0, 0}},
             {"kind", "large"},
             {"peak_allocated_bytes", 17 * kSnapMiB},
             {"peak_reserved_bytes", 40 * kSnapMiB},
             {"allocated_bytes", 8 * kSnapMiB},
             {"reserved_bytes", 40 * kSnapMiB}}}},
          {"incomplete", json::array()}};
}
json of_device_1() {
  return {{"source", "replay"},
          {"device", 1},
          {"peak_allocated_bytes", 17 * kSnapMiB},
          {"peak_reserved_bytes", 40 * kSnapMiB},
          {"segment_allocations_bytes", json::array()},
          {"recorded_segments_bytes", {20 * kSnapMiB}},
          {"events", 6},
          {"retries", 0},
          {"out_of_memory", false},
          {"replayed",
           {{"peak_allocated_bytes", 17 * kSnapMiB}, {"peak_reserved_bytes", 20 * kSnapMiB}, {"moved_blocks", 2}}},
          {"segments", 2},
          {"allocated_bytes", 8 * kSnapMiB},
          {"active_bytes", 12 * kSnapMiB},
          {"requested_bytes", 12 * kSnapMiB - 107},
          {"reserved_bytes", 40 * kSnapMiB},
          {"recorded", recorded_of_device_1()}};
}

TEST_F(SnapshotReport, JsonHasTheChosenDeviceAndBesideItAllOfThem) {
  write_three_devices();
  json whole = of_device_1();
  whole["devices"] = {of_device_0(), of_device_1(), of_device_3()};
  EXPECT_EQ(json(history_json(question())), whole);
  whole = of_device_0();
  whole["devices"] = {of_device_0(), of_device_1(), of_device_3()};
  EXPECT_EQ(json(history_json(question("", "", 0))), whole);
}

TEST_F(SnapshotReport, ADeviceThatItDoesNotHaveIsAMistake) {
  write_three_devices();
  try {
    (void)history_text(question("", "", 2));
    FAIL() << "there is none";
  } catch (const UserError& error) {
    EXPECT_EQ(error.what(), "--device: " + file.string() + " has no device 2; it has 0, 1, 3");
  }
}

// The block from before is asked for again: one segment of 20 MiB has room for it and for the two of the history.
TEST_F(SnapshotReport, UnderOtherSettingsThePeaksAreOfTheReplay) {
  write_three_devices();
  for (const HistoryQuestion& asked :
       {question("expandable_segments:False", "", 1), question("expandable_segments:False", "1 GiB", 1)}) {
    json whole = json(history_json(asked));
    EXPECT_EQ(whole["peak_allocated_bytes"], 17 * kSnapMiB);
    EXPECT_EQ(whole["peak_reserved_bytes"], 20 * kSnapMiB);
    EXPECT_EQ(whole["segment_allocations_bytes"], json({20 * kSnapMiB}));
    EXPECT_EQ(whole["recorded"], recorded_of_device_1());
    EXPECT_THAT(told(asked), Not(HasSubstr("our allocator"))) << "it is what was asked for";
  }
  const json less = json(history_json(question("", "1 GiB", 1)));
  EXPECT_EQ(less["peak_reserved_bytes"], 20 * kSnapMiB) << "a capacity of one's own";
  EXPECT_EQ(less["segment_allocations_bytes"], json::array()) << "where the blocks were, they are";
}

TEST_F(SnapshotReport, TheSettingsAreThoseOfTheSnapshotWhereNobodyNamesOthers) {
  const std::vector<PickleValue> segments{
      snap_segment({0}, 0, 12 * kSnapMiB, "large", {snap_block(12 * kSnapMiB, "active_allocated", 12 * kSnapMiB)})};
  const PickleValue history =
      PickleValue::list({snap_event("segment_alloc", 0, 12 * kSnapMiB), snap_event("alloc", 0, 12 * kSnapMiB)});
  const auto reserved = [&](const char* settings) {
    return history_json(question(settings))["replayed"]["peak_reserved_bytes"].get<std::int64_t>();
  };
  write(segments, {history}, true);
  EXPECT_EQ(reserved(""), 20 * kSnapMiB) << "an expandable segment grows in steps of 20 MiB";
  EXPECT_EQ(reserved("expandable_segments:False"), 12 * kSnapMiB);
  write(segments, {history}, false);
  EXPECT_EQ(reserved(""), 12 * kSnapMiB);
  EXPECT_EQ(reserved("expandable_segments:True"), 20 * kSnapMiB);
  EXPECT_THAT(told(question()), Not(HasSubstr("our allocator"))) << "it does what was recorded";
  EXPECT_THAT(told(question()), Not(HasSubstr("before it began"))) << "there was nothing";
}

TEST_F(SnapshotReport, WithoutRoomForWhatWasThereBeforeItEndsBeforeItBegins) {
  write_three_devices();
  EXPECT_THAT(told(question("", "19 MiB", 1)), HasSubstr("  OUT OF MEMORY before the history begins\n"));
  EXPECT_THAT(told(question("", "20 MiB", 1)), Not(HasSubstr("OUT OF MEMORY")));
}

TEST_F(SnapshotReport, TwoDevicesAreListedAndNoOtherIsThere) {
  const std::vector<PickleValue> free{snap_block(2 * kSnapMiB, "inactive")};
  write({snap_segment({1}, 0, 2 * kSnapMiB, "small", free),
         snap_segment({2}, 64 * kSnapMiB, 2 * kSnapMiB, "small", free)},
        {});
  EXPECT_EQ(history_json(question())["devices"].size(), 2U);
  EXPECT_EQ(history_json(question())["device"], 1);
  EXPECT_EQ(history_json(question("", "", 2))["device"], 2);
  EXPECT_THAT(told(question()), HasSubstr("(--device shows one)\n       1 "));
  for (const std::int64_t other : {0, 3}) EXPECT_THROW((void)history_text(question("", "", other)), UserError);
}

// A snapshot may have nothing at all.
TEST_F(SnapshotReport, AnEmptySnapshotIsToldToo) {
  write({}, {});
  EXPECT_EQ(told(question()), R"(memory snapshot without a recorded history; its segments as they are, device 0

  allocated        0.000 GiB
  requested        0.000 GiB
  reserved         0.000 GiB in 0 segments
)");
}

// One stream has two pools, which need no table. Private pools are those of CUDA graphs.
TEST_F(SnapshotReport, PoolsOfSeveralStreamsHaveATable) {
  const PickleValue one = snap_block(2 * kSnapMiB, "active_allocated", 2 * kSnapMiB);
  const std::vector<PickleValue> used{one, snap_block(18 * kSnapMiB, "inactive")};
  std::vector<PickleValue> segments{
      snap_segment({0, 0}, 0, 20 * kSnapMiB, "large", used),
      snap_segment({0, 0}, 32 * kSnapMiB, 2 * kSnapMiB, "small",
                   {snap_block(kSnapMiB, "active_allocated", kSnapMiB), snap_block(kSnapMiB, "inactive")})};
  const PickleValue history = PickleValue::list({snap_event("alloc", 0, 2 * kSnapMiB)});
  write(segments, {history});
  EXPECT_THAT(told(question()), Not(HasSubstr("pool")));
  segments.push_back(snap_segment({0, 42, 7, 0}, 64 * kSnapMiB, 24 * kSnapMiB, "large",
                                  {snap_block(24 * kSnapMiB, "active_allocated", 24 * kSnapMiB)}));
  segments.push_back(snap_segment({0, 42, 0, 3}, 96 * kSnapMiB, 26 * kSnapMiB, "large",
                                  {snap_block(26 * kSnapMiB, "active_allocated", 26 * kSnapMiB)}));
  segments.push_back(snap_segment({0, 42, 7, 1}, 128 * kSnapMiB, 28 * kSnapMiB, "large",
                                  {snap_block(28 * kSnapMiB, "active_allocated", 28 * kSnapMiB)}));
  write(segments, {history});
  EXPECT_THAT(told(question()), HasSubstr(R"(
  pool                                  peak allocated     peak reserved
)"));
  for (const char* row : {"  stream 0x0, large                          0.002 GiB         0.020 GiB\n",
                          "  stream 0x0, small                          0.001 GiB         0.002 GiB\n",
                          "  stream 0x2a, large, private (7, 0)         0.023 GiB         0.023 GiB\n",
                          "  stream 0x2a, large, private (0, 3)         0.025 GiB         0.025 GiB\n",
                          "  stream 0x2a, large, private (7, 1)         0.027 GiB         0.027 GiB\n"})
    EXPECT_THAT(told(question()), HasSubstr(row));
}

// The end of the recording has 16 MiB that no event asked for.
TEST_F(SnapshotReport, WhatARecordingLacksIsSaid) {
  write({snap_segment(
            {0}, 0, 20 * kSnapMiB, "large",
            {snap_block(4 * kSnapMiB, "active_allocated", 4 * kSnapMiB), snap_block(16 * kSnapMiB, "inactive")})},
        {PickleValue::list({snap_event("segment_alloc", 0, 20 * kSnapMiB), snap_event("alloc", 0, 4 * kSnapMiB),
                            snap_event("alloc", 4 * kSnapMiB, 5 * kSnapMiB)})});
  EXPECT_TRUE(told(question())
                  .ends_with("  INCOMPLETE: 1 frees are not recorded: the recording ended before the snapshot was "
                             "taken, or lost events\n"))
      << told(question());
  EXPECT_EQ(history_json(question())["recorded"]["incomplete"].size(), 1U);
}

}  // namespace
}  // namespace ridgeline
