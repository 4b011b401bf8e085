// Recorded histories of an H200 (PyTorch 2.11) against the allocator.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/allocator/replay.h"

namespace ridgeline {
namespace {

std::vector<std::string> recorded_histories() {
  const std::filesystem::path h200 = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "measurements/h200";
  std::vector<std::string> paths;
  for (const char* folder : {"allocations", "more"}) {
    for (const auto& entry : std::filesystem::directory_iterator(h200 / folder)) {
      if (entry.path().string().ends_with(".csv.gz")) paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class RecordedHistory : public testing::TestWithParam<std::string> {
 protected:
  AllocationHistory history_ = read_history(GetParam());
};

TEST(RecordedHistories, are_found) { EXPECT_GE(recorded_histories().size(), 23u); }

TEST(RecordedHistories, of_models_in_use_ask_the_device_for_the_recorded_segments_at_the_recorded_addresses) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/measurements/h200/inference")) {
    if (!entry.path().string().ends_with(".csv.gz")) continue;
    const HistoryReplay result = replay(read_history(entry.path().string()), {});
    EXPECT_EQ(result.segment_allocations, result.recorded_segments) << entry.path();
    EXPECT_EQ(result.moved_blocks, 0) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 13);
}

TEST_P(RecordedHistory, asks_the_device_for_the_recorded_segments_in_the_recorded_order) {
  const HistoryReplay result = replay(history_, {});
  ASSERT_GT(result.recorded_segments.size(), 40u);
  EXPECT_EQ(result.segment_allocations, result.recorded_segments);
}

TEST_P(RecordedHistory, puts_every_block_at_its_recorded_address) {
  const HistoryReplay result = replay(history_, {});
  EXPECT_EQ(result.moved_blocks, 0);
  EXPECT_EQ(result.unknown_frees, 0);
}

TEST_P(RecordedHistory, reserves_hardly_more_with_expandable_segments_and_mostly_less) {
  ReplayOptions options;
  options.settings.expandable_segments = true;
  const HistoryReplay growing = replay(history_, options), plain = replay(history_, {});
  EXPECT_LE(static_cast<double>(growing.peak_reserved), 1.03 * static_cast<double>(plain.peak_reserved));
  EXPECT_GE(growing.peak_reserved, growing.peak_allocated);
  EXPECT_TRUE(growing.segment_allocations.empty());
}

TEST_P(RecordedHistory, fits_a_device_of_its_peak_and_not_one_a_page_smaller_than_its_allocated_peak) {
  const HistoryReplay plain = replay(history_, {});
  ReplayOptions options;
  options.capacity = plain.peak_reserved;
  EXPECT_FALSE(replay(history_, options).out_of_memory);
  options.capacity = plain.peak_allocated - (2 << 20);
  const HistoryReplay small = replay(history_, options);
  EXPECT_TRUE(small.out_of_memory);
  EXPECT_GT(small.failure.missing, 0);
  EXPECT_GE(small.statistics.retries, 1);
}

// Ties broken by other addresses than the driver's change which of two equal blocks is split. Mostly that is all; once
// in 23 recorded runs (llama-b4-purebf16-sdpa-fused) a chain of such choices costs another segment of 500 MiB, 12 %.
TEST(RecordedHistories, reserve_as_much_on_addresses_of_the_model_in_all_but_two) {
  ReplayOptions options;
  options.recorded_addresses = false;
  int different = 0;
  for (const std::string& path : recorded_histories()) {
    const AllocationHistory history = read_history(path);
    const HistoryReplay own = replay(history, options), recorded = replay(history, {});
    const auto reserved = static_cast<double>(recorded.peak_reserved),
               allocated = static_cast<double>(recorded.peak_allocated);
    different += own.peak_reserved != recorded.peak_reserved;
    EXPECT_NEAR(static_cast<double>(own.peak_reserved), reserved, 0.13 * reserved) << path;
    EXPECT_NEAR(static_cast<double>(own.peak_allocated), allocated, 0.003 * allocated) << path;
  }
  EXPECT_LE(different, 2);
}

INSTANTIATE_TEST_SUITE_P(H200, RecordedHistory, testing::ValuesIn(recorded_histories()), [](const auto& test) {
  std::string name = std::filesystem::path(test.param).filename().string();
  name.resize(name.find('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ridgeline
