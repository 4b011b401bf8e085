#include "sim/allocator/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/allocator/pickle.h"
#include "sim/allocator/replay.h"
#include "sim/allocator/snapshot_container.h"

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
  for (const char* protocol : {"0", "1", "2", "4", "5"}) {
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

TEST(Snapshot, names_what_is_missing_or_wrong) {
  const std::string bytes = history_bytes(kFolder + "snapshot-4.pickle");
  EXPECT_EQ(error_of(write_pickle(PickleValue::text("no dict"))), "a.pickle: the snapshot is not a dict");
  EXPECT_EQ(error_of(write_pickle(PickleValue::list())), "") << "memory_snapshot() alone, a list of segments";
  EXPECT_THAT(error_of(write_pickle(PickleValue::dict())), HasSubstr("has no \"segments\""));
  EXPECT_THAT(error_of(replaced(bytes, "total_size", "total_sise")), HasSubstr("segments[0] has no \"total_size\""));
  EXPECT_THAT(error_of(replaced(bytes, "inactive", "inactivo")), HasSubstr("blocks[1] is \"inactivo\""));
  EXPECT_THAT(error_of(replaced(bytes, "free_completed", "free_computed_")), HasSubstr("did you mean free_completed?"));
  EXPECT_EQ(error_of(bytes), "");
}

/// A snapshot of one segment of 20 MiB whose history ends out of memory.
PickleValue ended_out_of_memory() {
  const auto text = [](const char* value) { return PickleValue::text(value); };
  const auto frame = [&](const char* file, int line, const char* name) {
    return PickleValue::dict(
        {{text("filename"), text(file)}, {text("line"), PickleValue::integer(line)}, {text("name"), text(name)}});
  };
  const PickleValue frames =
      PickleValue::list({frame("??", 0, "at::empty"), frame("/x/torch/nn/functional.py", 9, "linear"),
                         frame("/home/me/train.py", 12, "step")});
  const PickleValue blocks = PickleValue::list(
      {PickleValue::dict({{text("size"), PickleValue::integer(4 << 20)},
                          {text("requested_size"), PickleValue::integer(4 << 20)},
                          {text("state"), text("active_allocated")},
                          {text("frames"), frames}}),
       PickleValue::dict({{text("size"), PickleValue::integer(16 << 20)}, {text("state"), text("inactive")}})});
  const PickleValue segments =
      PickleValue::list({PickleValue::dict({{text("address"), PickleValue::integer(1 << 30)},
                                            {text("total_size"), PickleValue::integer(20 << 20)},
                                            {text("segment_type"), text("large")},
                                            {text("blocks"), blocks}})});
  const PickleValue event = PickleValue::dict({{text("action"), text("oom")},
                                               {text("size"), PickleValue::integer(64 << 20)},
                                               {text("device_free"), PickleValue::integer(1 << 20)},
                                               {text("frames"), frames}});
  return PickleValue::dict(
      {{text("segments"), segments}, {text("device_traces"), PickleValue::list({PickleValue::list({event})})}});
}

TEST(Snapshot, keeps_the_out_of_memory_event_and_who_holds_memory) {
  const MemorySnapshot snapshot = read_snapshot(write_pickle(ended_out_of_memory()), "a.pickle");
  ASSERT_EQ(snapshot.out_of_memory.size(), 1u);
  EXPECT_EQ(snapshot.out_of_memory[0].line, 1u);
  EXPECT_EQ(snapshot.out_of_memory[0].bytes, 64 << 20);
  EXPECT_EQ(snapshot.out_of_memory[0].device_free, 1 << 20);
  EXPECT_EQ(snapshot.out_of_memory[0].place, "linear in functional.py:9, called by train.py:12 step");
  ASSERT_EQ(snapshot.holders.size(), 1u);
  EXPECT_EQ(snapshot.holders[0].bytes, 4 << 20);
  EXPECT_EQ(snapshot.holders[0].place, snapshot.out_of_memory[0].place);
}

TEST(Snapshot, comes_out_of_the_viewers_page_and_of_torch_save) {
  const std::string pickle = history_bytes(kFolder + "snapshot-2.pickle");
  const auto peak_of = [](const std::string& bytes) {
    return replay(read_snapshot(unpacked_snapshot(bytes, "a"), "a").history, {}).peak_allocated;
  };
  EXPECT_EQ(peak_of(pickle), 5 << 20);
  EXPECT_EQ(peak_of(history_bytes(kFolder + "snapshot.html")), 5 << 20);
  EXPECT_EQ(peak_of(history_bytes(kFolder + "snapshot.pt")), 5 << 20);
  const std::string saved = history_bytes(kFolder + "snapshot.pt");
  for (std::size_t length = 4; length < saved.size(); length += 7)
    EXPECT_THROW(read_snapshot(unpacked_snapshot(saved.substr(0, length), "a"), "a"), UserError) << length;
  EXPECT_THROW(unpacked_snapshot("<html></html>", "a"), UserError);
  EXPECT_THROW(unpacked_snapshot("<\"base64\": \"gA", "a"), UserError);
}

}  // namespace
}  // namespace ridgeline
