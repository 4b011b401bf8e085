#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sim/allocator/settings.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

TEST(AllocatorSettings, requests_round_up_to_512_bytes) {
  EXPECT_EQ(rounded_request(1, {}), 512);
  EXPECT_EQ(rounded_request(512, {}), 512);
  EXPECT_EQ(rounded_request(513, {}), 1024);
}

TEST(AllocatorSettings, segments_are_2_mib_20_mib_or_the_request_in_steps_of_2_mib) {
  EXPECT_EQ(segment_size(kMebi, {}), 2 * kMebi);
  EXPECT_EQ(segment_size(kMebi + 512, {}), 20 * kMebi);
  EXPECT_EQ(segment_size(10 * kMebi - 512, {}), 20 * kMebi);
  EXPECT_EQ(segment_size(10 * kMebi, {}), 10 * kMebi);
  EXPECT_EQ(segment_size(10 * kMebi + 512, {}), 12 * kMebi);
}

TEST(AllocatorSettings, the_large_segment_size_replaces_20_mib) {
  const auto settings = AllocatorSettings::parse("large_segment_size_mb:40");
  EXPECT_EQ(segment_size(2 * kMebi, settings), 40 * kMebi);
  EXPECT_EQ(segment_size(10 * kMebi, settings), 10 * kMebi);
}

TEST(AllocatorSettings, four_divisions_round_1200_to_1280) {
  // The example of PyTorch's documentation, in MiB to be over 512 bytes times the divisions.
  const auto settings = AllocatorSettings::parse("roundup_power2_divisions:4");
  EXPECT_EQ(rounded_request(1200 * kMebi, settings), 1280 * kMebi);
  EXPECT_EQ(rounded_request(1024 * kMebi, settings), 1024 * kMebi);
  EXPECT_EQ(rounded_request(1025 * kMebi, settings), 1280 * kMebi);
  EXPECT_EQ(rounded_request(2048, settings), 2048);  // not over 512 bytes times the divisions: to 512 bytes
  EXPECT_EQ(rounded_request(2049, settings), 2560);
}

TEST(AllocatorSettings, divisions_by_size_hold_below_the_first_and_above_the_last_size) {
  const auto settings = AllocatorSettings::parse("roundup_power2_divisions:[64:8,128:2,256:4,>:1]");
  EXPECT_EQ(rounded_request(33 * kMebi, settings), 36 * kMebi);  // eighths of 32 MiB
  EXPECT_EQ(rounded_request(65 * kMebi, settings), 72 * kMebi);
  EXPECT_EQ(rounded_request(129 * kMebi, settings), 192 * kMebi);
  EXPECT_EQ(rounded_request(257 * kMebi, settings), 320 * kMebi);
  EXPECT_EQ(rounded_request(513 * kMebi, settings), 513 * kMebi);
}

TEST(AllocatorSettings, reads_what_pytorch_reads) {
  const auto settings = AllocatorSettings::parse(
      "expandable_segments:True, max_split_size_mb:128,garbage_collection_threshold:0.6,backend:native");
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.max_split_size, 128 * kMebi);
  EXPECT_DOUBLE_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_EQ(AllocatorSettings::parse(""), AllocatorSettings{});
}

TEST(AllocatorSettings, names_the_nearest_key_of_an_unknown_one) {
  try {
    AllocatorSettings::parse("expandable_segment:True");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean expandable_segments?"));
  }
}

TEST(AllocatorSettings, refuses_values_out_of_range) {
  for (const char* text : {"expandable_segments:yes", "max_split_size_mb:1", "garbage_collection_threshold:1.5",
                           "roundup_power2_divisions:3", "roundup_power2_divisions:[64:2", "max_split_size_mb",
                           "large_segment_size_mb:x"}) {
    EXPECT_THROW(AllocatorSettings::parse(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace ridgeline
