#include "sim/allocator/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/allocator/pickle.h"
#include "sim/allocator/replay.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = RIDGELINE_SOURCE_DIR "/tests/allocator/pickles/";

std::string error_of(const std::string& bytes) {
  try {
    read_snapshot(bytes, "a.pickle");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}
std::string replaced(std::string bytes, const std::string& what, const std::string& by) {
  return bytes.replace(bytes.find(what), what.size(), by);
}

TEST(Snapshot, reads_segments_and_history_of_every_protocol_alike) {
  for (const char* protocol : {"2", "4", "5"}) {
    const MemorySnapshot snapshot =
        read_snapshot(history_bytes(kFolder + "snapshot-" + protocol + ".pickle"), "a.pickle");
    ASSERT_EQ(snapshot.segments.size(), 1u);
    EXPECT_EQ(snapshot.segments[0].bytes, 20 << 20);
    ASSERT_EQ(snapshot.segments[0].blocks.size(), 2u);
    EXPECT_EQ(snapshot.segments[0].blocks[0].requested, (2 << 20) - 100);
    EXPECT_EQ(snapshot.segments[0].blocks[1].state, BlockView::State::free);
    EXPECT_EQ(snapshot.devices, 1);
    ASSERT_EQ(snapshot.history.events.size(), 5u);  // the snapshot itself changes nothing
    EXPECT_EQ(snapshot.settings, AllocatorSettings());
    const HistoryReplay result = replay(snapshot.history, {});
    EXPECT_EQ(result.peak_reserved, 20 << 20);
    EXPECT_EQ(result.peak_allocated, 5 << 20);
    EXPECT_EQ(result.moved_blocks, 0);
  }
}

TEST(Snapshot, recorded_by_pytorch_replays_to_its_own_peaks_and_segments) {
  const MemorySnapshot snapshot = read_snapshot(
      history_bytes(RIDGELINE_SOURCE_DIR "/measurements/h200/snapshot/mlp-two-steps.pickle.gz"), "mlp.pickle.gz");
  const HistoryReplay result = replay(snapshot.history, {});
  EXPECT_EQ(result.peak_allocated, 110151680);  // torch.cuda.max_memory_allocated() of the same process
  EXPECT_EQ(result.peak_reserved, 113246208);   // and max_memory_reserved()
  EXPECT_EQ(result.segment_allocations, result.recorded_segments);
  EXPECT_EQ(result.segment_allocations.size(), snapshot.segments.size());
}

TEST(Snapshot, a_pickle_is_told_from_text_by_its_first_byte) {
  EXPECT_TRUE(looks_like_pickle("\x80\x04N."));
  EXPECT_FALSE(looks_like_pickle("action,addr,size,stream\n"));
  EXPECT_FALSE(looks_like_pickle(""));
}

TEST(Snapshot, names_what_is_missing_or_wrong) {
  const std::string bytes = history_bytes(kFolder + "snapshot-4.pickle");
  EXPECT_EQ(error_of(write_pickle(PickleValue::list())), "a.pickle: the snapshot is not a dict");
  EXPECT_THAT(error_of(write_pickle(PickleValue::dict())), HasSubstr("has no \"segments\""));
  EXPECT_THAT(error_of(replaced(bytes, "total_size", "total_sise")), HasSubstr("segments[0] has no \"total_size\""));
  EXPECT_THAT(error_of(replaced(bytes, "inactive", "inactivo")), HasSubstr("blocks[1] is \"inactivo\""));
  EXPECT_THAT(error_of(replaced(bytes, "free_completed", "free_computed_")), HasSubstr("did you mean free_completed?"));
  EXPECT_EQ(error_of(bytes), "");
}

}  // namespace
}  // namespace ridgeline
