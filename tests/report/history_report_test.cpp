// A history of the allocator replayed and told: two blocks, worked out by hand.
#include "sim/report/history_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/report/out_of_memory_report.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// 16 MiB for a block of 15, 20 MiB for one of 4 and the rest of it: the allocator asks for 20 MiB below 10 MiB.
struct HistoryReport : ::testing::Test {
  std::filesystem::path file = temporary_path("history.csv");
  void SetUp() override {
    std::ofstream(file) << "action,addr,size,stream\n"
                           "segment_alloc,7f0000000000,16777216,0\n"
                           "alloc,7f0000000000,15728640,0\n"
                           "segment_alloc,7f0010000000,20971520,0\n"
                           "alloc,7f0010000000,4194304,0\n"
                           "free_requested,7f0000000000,15728640,0\n"
                           "free_completed,7f0000000000,15728640,0\n";
  }
  void TearDown() override { std::filesystem::remove(file); }
  [[nodiscard]] HistoryQuestion question(std::string settings = "", std::string capacity = "") const {
    return {file.string(), std::move(settings), std::move(capacity), -1};
  }
};

// 16 MiB are allocated for 15, since less than 1 MiB more is not split off: with 4 that is 20 MiB of 36; at the end
// 16 MiB of the second segment lie beside the block in it.
TEST_F(HistoryReport, TextIsInGibibytes) {
  EXPECT_EQ(history_text(question()), file.string() + R"(: replay of 6 events

  peak allocated   0.020 GiB
  peak reserved    0.035 GiB
  device segments  2 asked for, the same as recorded, in the same order
  fragmentation    0.016 GiB free in split segments at the end
)");
}

TEST_F(HistoryReport, JsonIsInBytes) {
  const json out = json(history_json(question()));
  constexpr std::int64_t kMiB = 1 << 20;
  EXPECT_EQ(out["source"], "replay");
  EXPECT_EQ(out["peak_allocated_bytes"], 20 * kMiB);
  EXPECT_EQ(out["peak_reserved_bytes"], 36 * kMiB);
  EXPECT_EQ(out["segment_allocations_bytes"], json({16 * kMiB, 20 * kMiB}));
  EXPECT_EQ(out["recorded_segments_bytes"], json({16 * kMiB, 20 * kMiB}));
  EXPECT_EQ(out["events"], 6);
  EXPECT_EQ(out["retries"], 0);
  EXPECT_EQ(out["out_of_memory"], false);
  EXPECT_EQ(out["replayed"]["moved_blocks"], 0);
  EXPECT_FALSE(out.contains("device") || out.contains("segments") || out.contains("recorded"));
}

// Of 24 MiB 16 are taken: 20 more are not there, and nothing is free to be given back.
TEST_F(HistoryReport, WithLessMemoryItSaysWhereItEnds) {
  EXPECT_THAT(history_text(question("", "24 MiB")), HasSubstr("  OUT OF MEMORY at line 5\n"));
  EXPECT_EQ(json(history_json(question("", "24 MiB")))["out_of_memory"], true);
}

TEST_F(HistoryReport, OtherSettingsAskForOtherSegments) {
  const json out = json(history_json(question("expandable_segments:True")));
  EXPECT_NE(out["segment_allocations_bytes"], out["recorded_segments_bytes"]);
  EXPECT_THAT(history_text(question("expandable_segments:True")), HasSubstr("; the recording has 2\n"));
}

TEST_F(HistoryReport, ACapacityOfAByteIsOneAndOfNoneIsNot) {
  EXPECT_THAT(history_text(question("", "1 B")), HasSubstr("  OUT OF MEMORY at line 3\n"));
  EXPECT_THAT(history_text(question("", "16 MiB")), HasSubstr("  OUT OF MEMORY at line 5\n"));
  EXPECT_THAT(history_text(question("", "35 MiB")), HasSubstr("  OUT OF MEMORY at line 5\n"));
  EXPECT_THAT(history_text(question("", "36 MiB")), ::testing::Not(HasSubstr("OUT OF MEMORY")));
  EXPECT_THROW((void)history_text(question("", "0 B")), UserError);
  EXPECT_THROW((void)history_text(question("", "-1 GiB")), UserError);
}

// With settings of one's own segments lie where the device would put them, and so do the blocks in them.
TEST_F(HistoryReport, OtherSettingsForgetTheRecordedAddresses) {
  EXPECT_EQ(history_json(question())["replayed"]["moved_blocks"], 0);
  EXPECT_EQ(history_json(question("max_split_size_mb:200"))["replayed"]["moved_blocks"], 2);
  EXPECT_EQ(history_json(question("max_split_size_mb:200"))["segment_allocations_bytes"],
            history_json(question())["segment_allocations_bytes"]);
}

TEST_F(HistoryReport, MistakesNameTheirOption) {
  const auto mistake = [](const HistoryQuestion& asked) {
    try {
      (void)history_text(asked);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(mistake(question("", "24 apples")), "--capacity: '24 apples' is not a size; write it as \"24 GiB\"");
  EXPECT_EQ(mistake(question("", "24 GHz")), "--capacity: '24 GHz' is not a size; write it as \"24 GiB\"");
  EXPECT_THAT(mistake(question("no_such:1")), HasSubstr("--settings: "));
  HistoryQuestion other = question();
  other.device = 1;
  EXPECT_THAT(mistake(other), HasSubstr("--device: "));
  std::ofstream(file) << "action,addr,size,stream\n";
  EXPECT_THAT(mistake(question()), HasSubstr("no allocations after the header"));
}

// Two of three blocks of 40 MiB are free, but not side by side: 64 MiB need another segment, or pages.
TEST(OutOfMemoryReport, SaysWhatWouldHaveHelped) {
  constexpr std::int64_t kMiB = 1 << 20;
  MemorySnapshot snapshot;
  std::uint32_t line = 0;
  const auto add = [&](HistoryEvent::Action action, Address address, std::int64_t bytes) {
    snapshot.history.events.push_back({action, address, bytes, 0, ++line});
  };
  using Action = HistoryEvent::Action;
  for (const Address at : {1, 2, 3}) {
    add(Action::segment_alloc, at << 32, 40 * kMiB);
    add(Action::alloc, at << 32, 40 * kMiB);
  }
  for (const Address at : {1, 3}) {
    add(Action::free_requested, at << 32, 40 * kMiB);
    add(Action::free_completed, at << 32, 40 * kMiB);
  }
  for (const Address at : {1, 2, 3}) {
    const auto state = at == 2 ? BlockView::State::allocated : BlockView::State::free;
    snapshot.segments.push_back(
        {at << 32, 40 * kMiB, PoolKind::large, 0, false, {{at << 32, 40 * kMiB, 40 * kMiB, state}}});
  }
  snapshot.owners.resize(1);
  snapshot.out_of_memory.push_back({++line, 64 * kMiB, 4 * kMiB, "train.py:3 step"});
  const OutOfMemoryState state = out_of_memory_state(snapshot, recorded_run(snapshot));
  EXPECT_EQ(state.allocated, 40 * kMiB);
  EXPECT_EQ(state.reserved, 120 * kMiB);
  EXPECT_EQ(state.largest_free_block, 40 * kMiB);
  EXPECT_TRUE(state.expandable_segments_would_do);
  EXPECT_THAT(out_of_memory_text(state), HasSubstr("expandable_segments:True"));
  EXPECT_THAT(out_of_memory_text(state), HasSubstr("64.0 MiB by train.py:3 step"));
  snapshot.out_of_memory.back().bytes = 100 * kMiB;
  const OutOfMemoryState more = out_of_memory_state(snapshot, recorded_run(snapshot));
  EXPECT_FALSE(more.expandable_segments_would_do);
  EXPECT_THAT(out_of_memory_text(more), HasSubstr("16.0 MiB too little"));
}

TEST(OutOfMemoryReport, OfATextIsFoundInALog) {
  const std::string file = temporary_path("train.log");
  std::ofstream(file)
      << "step 1\nCUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of "
         "which 11.06 MiB is free. Of the allocated memory 22.90 GiB is allocated by PyTorch, and 194.87 MiB "
         "is reserved by PyTorch but unallocated.\n";
  const json out = json(history_json({file, "", "", -1}));
  EXPECT_EQ(out["source"], "out_of_memory_text");
  EXPECT_EQ(out["errors"][0]["line"], 2);
  EXPECT_EQ(out["errors"][0]["requested_bytes"], 22 << 20);
  EXPECT_THAT(history_text({file, "", "", -1}), HasSubstr("fragmentation"));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace ridgeline
