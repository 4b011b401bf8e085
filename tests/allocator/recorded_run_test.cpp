// What a snapshot says of the run before and during its history; the replay, which knows nothing of it, must agree.
#include "sim/allocator/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/allocator/pickle.h"
#include "sim/allocator/replay.h"

namespace ridgeline {
namespace {

using Action = HistoryEvent::Action;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsEmpty;

constexpr Address kBase = 0x7f0000000000;
constexpr std::int64_t kMiB = 1 << 20;

BlockView used(std::int64_t offset, std::int64_t bytes) {
  return {kBase + static_cast<Address>(offset), bytes, bytes, BlockView::State::allocated};
}
BlockView unused(std::int64_t offset, std::int64_t bytes) {
  return {kBase + static_cast<Address>(offset), bytes, 0, BlockView::State::free};
}
HistoryEvent event(Action action, std::int64_t offset, std::int64_t bytes, std::int64_t stream = 0) {
  return {action, kBase + static_cast<Address>(offset), bytes, stream, 0};
}

MemorySnapshot snapshot_of(std::vector<SegmentView> segments, std::vector<HistoryEvent> events) {
  MemorySnapshot snapshot;
  snapshot.segments = std::move(segments);
  snapshot.history = {"a.pickle", std::move(events)};
  snapshot.owners = {{0, 0, 0}};
  return snapshot;
}
SegmentView segment(std::int64_t offset, std::int64_t bytes, std::vector<BlockView> blocks, bool expandable = false) {
  return {kBase + static_cast<Address>(offset), bytes, PoolKind::large, 0, expandable, std::move(blocks)};
}
HistoryReplay replayed(const MemorySnapshot& snapshot, const RecordedRun& run) {
  ReplayOptions options;
  options.settings = snapshot.settings;
  options.before = run.before;
  return replay(run.history, options);
}

TEST(RecordedRun, BlocksFromBeforeTheHistoryCountThoughNoEventNamesThem) {
  const MemorySnapshot snapshot =
      snapshot_of({segment(0, 20 * kMiB, {used(0, 8 * kMiB), unused(8 * kMiB, 12 * kMiB)})},
                  {event(Action::alloc, 8 * kMiB, 4 * kMiB), event(Action::free_requested, 8 * kMiB, 4 * kMiB),
                   event(Action::free_completed, 8 * kMiB, 4 * kMiB)});
  const RecordedRun run = recorded_run(snapshot);
  EXPECT_EQ(run.blocks_before, 1);
  EXPECT_EQ(run.allocated_before, 8 * kMiB);
  EXPECT_EQ(run.allocated.peak, 12 * kMiB);
  EXPECT_EQ(run.reserved.peak, 20 * kMiB);
  EXPECT_THAT(run.gaps, IsEmpty());
  const HistoryReplay replay = replayed(snapshot, run);
  EXPECT_EQ(replay.peak_allocated, 12 * kMiB);
  EXPECT_EQ(replay.peak_reserved, 20 * kMiB);
  EXPECT_EQ(replay.moved_blocks, 0);
}

TEST(RecordedRun, WhatWasFreedAndGivenBackDuringTheHistoryWasThereBefore) {
  // A block of 10 MiB - 512 KiB had a segment of 10 MiB to itself: what was left was too small to be split off.
  const MemorySnapshot snapshot = snapshot_of(
      {}, {event(Action::free_requested, 0, 10 * kMiB - kMiB / 2),
           event(Action::free_completed, 0, 10 * kMiB - kMiB / 2), event(Action::segment_free, 0, 10 * kMiB)});
  const RecordedRun run = recorded_run(snapshot);
  EXPECT_EQ(run.allocated_before, 10 * kMiB);
  EXPECT_EQ(run.reserved_before, 10 * kMiB);
  EXPECT_EQ(run.allocated.current, 0);
  EXPECT_EQ(run.reserved.current, 0);
  EXPECT_EQ(replayed(snapshot, run).statistics.all.reserved_bytes.current, 0);
}

TEST(RecordedRun, ABlockWaitingForAnotherStreamIsNoLongerAllocated) {
  const MemorySnapshot snapshot =
      snapshot_of({segment(0, 20 * kMiB, {unused(0, 20 * kMiB)})}, {event(Action::free_completed, 0, 20 * kMiB)});
  const RecordedRun run = recorded_run(snapshot);
  EXPECT_EQ(run.allocated.peak, 0);
  ASSERT_EQ(run.before.size(), 1U);
  EXPECT_EQ(run.before[0].blocks[0].state, BlockView::State::pending_free);
  EXPECT_EQ(replayed(snapshot, run).statistics.all.active_bytes.current, 0);
}

TEST(RecordedRun, PartsOfAGrowingSegmentAreJoinedAndTakenApart) {
  const MemorySnapshot snapshot = snapshot_of(
      {segment(0, 20 * kMiB, {used(0, 20 * kMiB)}, true)},
      {event(Action::segment_unmap, 40 * kMiB, 20 * kMiB), event(Action::segment_map, 20 * kMiB, 20 * kMiB),
       event(Action::alloc, 20 * kMiB, 15 * kMiB), event(Action::free_requested, 20 * kMiB, 15 * kMiB),
       event(Action::free_completed, 20 * kMiB, 15 * kMiB), event(Action::segment_unmap, 20 * kMiB, 20 * kMiB)});
  const RecordedRun run = recorded_run(snapshot);
  EXPECT_THAT(run.gaps, IsEmpty());
  EXPECT_EQ(run.before.size(), 2U);
  EXPECT_EQ(run.reserved_before, 40 * kMiB);
  EXPECT_EQ(run.reserved.peak, 40 * kMiB);
  EXPECT_EQ(run.allocated.peak, 35 * kMiB);
}

TEST(RecordedRun, StreamsAndPrivatePoolsAreCountedApart) {
  MemorySnapshot snapshot = snapshot_of(
      {segment(0, 20 * kMiB, {used(0, 20 * kMiB)}), segment(32 * kMiB, 20 * kMiB, {used(32 * kMiB, 20 * kMiB)})},
      {event(Action::segment_alloc, 32 * kMiB, 20 * kMiB, 7), event(Action::alloc, 32 * kMiB, 20 * kMiB, 7)});
  snapshot.owners = {{0, 0, 0}, {7, 0, 1}};
  snapshot.segments[1].stream = 1;
  const RecordedRun run = recorded_run(snapshot);
  ASSERT_EQ(run.pools.size(), 2U);
  EXPECT_EQ(run.pools[0].allocated.peak, 20 * kMiB);
  EXPECT_EQ(run.pools[1].owner, (StreamPool{7, 0, 1}));
  EXPECT_EQ(run.pools[1].reserved.peak, 20 * kMiB);
  EXPECT_EQ(run.allocated.peak, 40 * kMiB);
  EXPECT_EQ(replayed(snapshot, run).segment_allocations, (std::vector<std::int64_t>{20 * kMiB}));
}

TEST(RecordedRun, ARecordingThatLacksEventsSaysSoAndIsReplayedAllTheSame) {
  const MemorySnapshot snapshot = snapshot_of({segment(0, 20 * kMiB, {unused(0, 20 * kMiB)})},
                                              {event(Action::alloc, 0, 4 * kMiB), event(Action::alloc, 0, 6 * kMiB)});
  const RecordedRun run = recorded_run(snapshot);
  ASSERT_EQ(run.gaps.size(), 1U);
  EXPECT_THAT(run.gaps[0], HasSubstr("2 frees are not recorded"));
  EXPECT_EQ(run.allocated.peak, 6 * kMiB);
  EXPECT_EQ(replayed(snapshot, run).peak_allocated, 6 * kMiB);
}

TEST(RecordedRun, OtherSettingsAllocateAgainWhatWasThereBefore) {
  const MemorySnapshot snapshot = snapshot_of({segment(0, 64 * kMiB, {used(0, 2 * kMiB), unused(2 * kMiB, 62 * kMiB)})},
                                              {event(Action::alloc, 2 * kMiB, 30 * kMiB)});
  const RecordedRun run = recorded_run(snapshot);
  ReplayOptions options;
  options.before = run.before;
  options.recorded_addresses = false;
  const HistoryReplay again = replay(run.history, options);
  EXPECT_EQ(again.peak_allocated, 32 * kMiB);
  EXPECT_THAT(again.segment_allocations, ElementsAre(20 * kMiB, 30 * kMiB));
  options.recorded_addresses = true;
  options.capacity = 32 * kMiB;
  const HistoryReplay too_small = replay(run.history, options);
  EXPECT_TRUE(too_small.out_of_memory);
  EXPECT_EQ(too_small.out_of_memory_line, 0U);
}

struct LateRecording {
  const char* file;
  std::int64_t peak_allocated, allocated, peak_reserved, reserved;  ///< torch.cuda.memory_stats() of the same process
  std::size_t pools;
};

// Recorded on an NVIDIA H200 with PyTorch 2.11 after a first step of training: a second step, work on another stream, a
// CUDA graph in its private pool, an emptied cache, one more step. `cpp`: a second step alone, with C++ frames.
TEST(RecordedRun, RecordedLateByPyTorchHasThePeaksThatPyTorchCounted) {
  for (const LateRecording& late : {LateRecording{"plain", 515190784, 381325312, 618659840, 618659840, 6},
                                    {"expandable", 514900480, 381035008, 593494016, 593494016, 6},
                                    {"split", 516939264, 383073792, 618659840, 618659840, 6},
                                    {"cpp", 402821120, 268955648, 511705088, 511705088, 2}}) {
    const std::string path =
        std::string(RIDGELINE_SOURCE_DIR "/measurements/h200/snapshot/late-") + late.file + ".pickle.gz";
    const MemorySnapshot snapshot = read_snapshot(history_bytes(path), late.file);
    const RecordedRun run = recorded_run(snapshot);
    EXPECT_EQ(run.allocated.peak, late.peak_allocated) << late.file;
    EXPECT_EQ(run.allocated.current, late.allocated) << late.file;
    EXPECT_EQ(run.reserved.peak, late.peak_reserved) << late.file;
    EXPECT_EQ(run.reserved.current, late.reserved) << late.file;
    EXPECT_EQ(run.pools.size(), late.pools) << late.file;
    EXPECT_GT(run.blocks_before, 0) << late.file;
    EXPECT_THAT(run.gaps, IsEmpty()) << late.file;
    const HistoryReplay replay = replayed(snapshot, run);
    EXPECT_EQ(replay.peak_allocated, late.peak_allocated) << late.file;
    EXPECT_EQ(replay.peak_reserved, late.peak_reserved) << late.file;
    EXPECT_EQ(replay.segment_allocations,
              snapshot.settings.expandable_segments ? std::vector<std::int64_t>{} : replay.recorded_segments)
        << late.file;
    if (!snapshot.settings.expandable_segments) {
      EXPECT_EQ(replay.moved_blocks, 0) << late.file;
    }
  }
}

TEST(RecordedRun, EachDeviceOfAFileIsReadByItself) {
  const auto segment_of = [](std::int64_t device, std::int64_t bytes) {
    const auto text = [](const char* word) { return PickleValue::text(word); };
    const auto number = [](std::int64_t value) { return PickleValue::integer(value); };
    const PickleValue block = PickleValue::dict({{text("size"), number(bytes)},
                                                 {text("requested_size"), number(bytes)},
                                                 {text("state"), text("active_allocated")}});
    return PickleValue::dict({{text("device"), number(device)},
                              {text("address"), number(1 << 30)},
                              {text("total_size"), number(bytes)},
                              {text("segment_type"), text("large")},
                              {text("stream"), number(0)},
                              {text("blocks"), PickleValue::list({block})}});
  };
  const PickleValue file = PickleValue::dict(
      {{PickleValue::text("segments"), PickleValue::list({segment_of(1, 20 * kMiB), segment_of(0, 30 * kMiB)})}});
  const std::vector<MemorySnapshot> devices = read_snapshots(write_pickle(file), "two.pickle");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].device, 0);
  EXPECT_EQ(recorded_run(devices[0]).reserved.peak, 30 * kMiB);
  EXPECT_EQ(recorded_run(devices[1]).allocated.peak, 20 * kMiB);
}

// Each of two growing segments goes on growing by itself.
TEST(RecordedRun, TwoGrowingSegmentsFromBeforeAreTwo) {
  MemorySnapshot snapshot = snapshot_of(
      {segment(0, 20 * kMiB, {used(0, 20 * kMiB)}, true),
       segment(1024 * kMiB, 20 * kMiB, {used(1024 * kMiB, 20 * kMiB)}, true)},
      {event(Action::segment_map, 1044 * kMiB, 20 * kMiB, 7), event(Action::alloc, 1044 * kMiB, 20 * kMiB, 7),
       event(Action::free_requested, 0, 20 * kMiB), event(Action::free_completed, 0, 20 * kMiB)});
  snapshot.owners = {{0, 0, 0}, {7, 0, 1}};
  snapshot.segments[1].stream = 1;
  snapshot.settings.expandable_segments = true;
  const RecordedRun run = recorded_run(snapshot);
  ASSERT_EQ(run.before.size(), 2U);
  const HistoryReplay replay = replayed(snapshot, run);
  EXPECT_EQ(replay.peak_allocated, 60 * kMiB);
  EXPECT_EQ(replay.peak_reserved, 60 * kMiB);
  EXPECT_EQ(replay.statistics.all.allocated_bytes.current, 40 * kMiB);
}

// Nothing beside it says whose it was: small pools grow by 2 MiB, large ones by 20.
TEST(RecordedRun, APartOfAGrowingSegmentThatIsGoneIsOfThePoolThatGrowsByItsSize) {
  MemorySnapshot snapshot =
      snapshot_of({}, {event(Action::segment_unmap, 0, 2 * kMiB), event(Action::segment_unmap, 64 * kMiB, 20 * kMiB)});
  snapshot.settings.expandable_segments = true;
  const RecordedRun run = recorded_run(snapshot);
  ASSERT_EQ(run.before.size(), 2U);
  EXPECT_EQ(run.before[0].pool, PoolKind::small);
  EXPECT_EQ(run.before[1].pool, PoolKind::large);
  EXPECT_EQ(run.reserved_before, 22 * kMiB);
  ASSERT_EQ(run.pools.size(), 2U);
  for (const PoolTotals& pool : run.pools)
    EXPECT_EQ(pool.reserved.peak, (pool.kind == PoolKind::small ? 2 : 20) * kMiB);
}

}  // namespace
}  // namespace ridgeline
