#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/allocator/history.h"
#include "sim/allocator/replay.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& text) {
  try {
    replay(parse_history(text, "a.csv"), {});
  } catch (const HistoryError& error) {
    return error.what();
  }
  return "";
}

const std::string kHeader = "action,addr,size,stream\n";

TEST(History, reads_the_events_in_order) {
  const AllocationHistory history = parse_history(
      kHeader +
          "segment_alloc,7f00,2097152,0\r\nalloc,7f00,100,0\n\nfree_requested,7f00,100,0\nfree_completed,7f00,100,0",
      "a.csv");
  ASSERT_EQ(history.events.size(), 4u);
  EXPECT_EQ(history.events[0].action, HistoryEvent::Action::segment_alloc);
  EXPECT_EQ(history.events[1].address, 0x7f00u);
  EXPECT_EQ(history.events[1].bytes, 100);
  EXPECT_EQ(history.events[3].line, 6u);
}

TEST(History, names_the_line_and_the_nearest_action_of_a_misspelt_one) {
  EXPECT_EQ(error_of(kHeader + "aloc,7f00,100,0\n"),
            "a.csv:2: unknown action \"aloc\"; did you mean alloc? Allowed: alloc, free_requested, free_completed, "
            "segment_alloc, segment_free, segment_map, segment_unmap, snapshot or one of 2 more");
}

TEST(History, names_the_line_that_has_too_few_or_too_many_fields) {
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,100,0\nalloc,7f00,100\n"), StartsWith("a.csv:3: expected four fields"));
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,100,0,1\n"), StartsWith("a.csv:2: expected four fields"));
}

TEST(History, names_the_line_of_a_number_that_is_none) {
  EXPECT_THAT(error_of(kHeader + "alloc,7x00,100,0\n"), HasSubstr("a.csv:2: \"7x00\" is not a hexadecimal address"));
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,-1,0\n"), HasSubstr("a.csv:2: \"-1\" is not a number of bytes"));
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,99999999999999999999,0\n"), HasSubstr("is not a number of bytes"));
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,9223372036854775807,0\n"), HasSubstr("is not a number of bytes"))
      << "rounded up it is none any more";
}

TEST(History, refuses_a_file_without_header) {
  EXPECT_THAT(error_of("alloc,7f00,100,0\n"), StartsWith("a.csv:1: expected the header"));
}
TEST(History, reads_past_a_byte_order_mark_and_empty_lines_to_its_header) {
  EXPECT_EQ(parse_history("\xef\xbb\xbf" + kHeader + "alloc,7f00,100,0\n", "a.csv").events.size(), 1u);
  EXPECT_EQ(parse_history("\n\r\n" + kHeader + "alloc,7f00,100,0\n", "a.csv").events.front().line, 4u);
  EXPECT_THAT(error_of("\n \n"), StartsWith("a.csv:2: expected the header"));
  EXPECT_THAT(error_of("\n\n"), HasSubstr("a.csv: the file is empty"));
}
TEST(History, refuses_an_empty_file) { EXPECT_THAT(error_of(""), HasSubstr("a.csv: the file is empty")); }

TEST(History, refuses_a_block_allocated_twice) {
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,100,0\nalloc,7f00,100,0\n"),
              StartsWith("a.csv:3: a block was allocated twice at address 7f00"));
}

TEST(History, refuses_a_free_completed_before_it_was_requested) {
  EXPECT_THAT(error_of(kHeader + "alloc,7f00,100,0\nfree_completed,7f00,100,0\n"),
              StartsWith("a.csv:3: a block was freed out of order"));
}

TEST(History, counts_frees_of_blocks_from_before_the_recording) {
  const HistoryReplay result =
      replay(parse_history(kHeader + "free_requested,7f00,100,0\nfree_completed,7f00,100,0\n", "a.csv"), {});
  EXPECT_EQ(result.unknown_frees, 1);
}

TEST(History, says_that_a_compressed_file_ends_too_early) {
  const auto whole =
      std::filesystem::path(RIDGELINE_SOURCE_DIR) / "measurements/h200/allocations/bert-large-b4-fp32.csv.gz";
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto cut = std::filesystem::path(temporary_path("cut.csv.gz"));
  std::ofstream(cut, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size() / 2));
  try {
    read_history(cut.string());
    FAIL() << "half a file was read";
  } catch (const HistoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ends too early"));
    EXPECT_THAT(error.what(), StartsWith(cut.string()));
  }
}

TEST(History, says_that_a_folder_is_none) { EXPECT_THROW(read_history(RIDGELINE_SOURCE_DIR "/docs"), HistoryError); }
TEST(History, says_that_a_file_does_not_exist) { EXPECT_THROW(read_history("/nowhere/a.csv"), HistoryError); }

}  // namespace
}  // namespace ridgeline
