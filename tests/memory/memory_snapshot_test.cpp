#include "sim/memory/memory_snapshot.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/allocator/replay.h"
#include "sim/allocator/snapshot.h"
#include "tests/support/step_program_builder.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using testing_support::ProgramBuilder;

constexpr std::int64_t kOneMiB = 1 << 20;

/// Weights, activations and gradients of odd sizes; the optimizer states of the first step stay.
ProgramBuilder recorded_step() {
  ProgramBuilder builder;
  builder.allocate(40 * kOneMiB + 100, Category::weights);
  builder.allocate(1000, Category::inputs);
  for (int step = 0; step < 2; ++step) {
    builder.begin_step();
    const auto activation = builder.allocate(5 * kOneMiB + 1), small = builder.allocate(3000);
    const auto gradient = builder.allocate(40 * kOneMiB + 100, Category::gradients);
    builder.free(activation);
    if (step == 0) builder.allocate(80 * kOneMiB, Category::optimizer_state);
    builder.free(gradient).free(small).end_step();
  }
  return builder;
}
MemoryOptions recording(std::int64_t capacity = 1000 * kOneMiB) {
  MemoryOptions options;
  options.capacity = capacity;
  options.record_history = true;
  return options;
}
void expect_equal(const std::vector<SegmentView>& a, const std::vector<SegmentView>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].address, b[i].address);
    EXPECT_EQ(a[i].bytes, b[i].bytes);
    EXPECT_EQ(a[i].pool, b[i].pool);
    ASSERT_EQ(a[i].blocks.size(), b[i].blocks.size());
    for (std::size_t k = 0; k < a[i].blocks.size(); ++k) {
      EXPECT_EQ(a[i].blocks[k].address, b[i].blocks[k].address);
      EXPECT_EQ(a[i].blocks[k].bytes, b[i].blocks[k].bytes);
      EXPECT_EQ(a[i].blocks[k].state, b[i].blocks[k].state);
    }
  }
}

TEST(MemorySnapshot, holds_the_segments_of_the_run_and_replays_to_them) {
  const ProgramBuilder builder = recorded_step();
  const MemoryOptions options = recording();
  const MemoryResult result = run_memory(builder.program(), options);
  const MemorySnapshot snapshot = read_snapshot(memory_snapshot(builder.program(), result, options.settings), "own");
  expect_equal(snapshot.segments, result.segments);
  EXPECT_EQ(snapshot.history.events.size(), result.history.size());
  const HistoryReplay again = replay(snapshot.history, {});
  EXPECT_EQ(again.moved_blocks, 0);
  EXPECT_EQ(again.peak_reserved, result.peak_reserved);
  EXPECT_EQ(again.peak_allocated, result.peak_allocated);
  EXPECT_EQ(again.segment_allocations, again.recorded_segments);
  expect_equal(again.segments, result.segments);
}

TEST(MemorySnapshot, keeps_the_settings_of_the_allocator) {
  const ProgramBuilder builder = recorded_step();
  MemoryOptions options = recording();
  options.settings = AllocatorSettings::parse(
      "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.5,roundup_power2_divisions:[2:4,>:"
      "8]");
  const MemoryResult result = run_memory(builder.program(), options);
  const MemorySnapshot snapshot = read_snapshot(memory_snapshot(builder.program(), result, options.settings), "own");
  EXPECT_EQ(snapshot.settings, options.settings);
  std::int64_t reserved = 0;
  for (const SegmentView& segment : snapshot.segments) {
    EXPECT_TRUE(segment.expandable);
    reserved += segment.bytes;
  }
  EXPECT_EQ(reserved, result.peak_reserved);
}

TEST(MemorySnapshot, python_loads_it_and_its_sums_are_the_peak) {
  const ProgramBuilder builder = recorded_step();
  const MemoryOptions options = recording();
  const MemoryResult result = run_memory(builder.program(), options);
  const std::string file = temporary_path("snapshot.pickle"), script = temporary_path("read_snapshot.py");
  std::ofstream(file, std::ios::binary) << memory_snapshot(builder.program(), result, options.settings);
  std::ofstream(script) << R"(
import pickle, sys
snapshot = pickle.load(open(sys.argv[1], "rb"))
reserved, allocated = int(sys.argv[2]), int(sys.argv[3])
segments = snapshot["segments"]
assert sum(s["total_size"] for s in segments) == reserved
assert all(sum(b["size"] for b in s["blocks"]) == s["total_size"] for s in segments)
assert all(sum(b["size"] for b in s["blocks"] if b["state"] == "active_allocated") == s["allocated_size"] for s in segments)
assert all(s["segment_pool_id"] == (0, 0) and s["segment_type"] in ("small", "large") for s in segments)
now = peak = 0
live = {}
for e in snapshot["device_traces"][0]:
    assert set(e["frames"][0]) == {"filename", "line", "name"}
    if e["action"] == "alloc":
        assert e["addr"] not in live
        live[e["addr"]] = e["size"]
        now += (e["size"] + 511) // 512 * 512
        peak = max(peak, now)
    elif e["action"] == "free_completed":
        assert live.pop(e["addr"]) == e["size"]
        now -= (e["size"] + 511) // 512 * 512
assert sum(live.values()) == sum(s["requested_size"] for s in segments)
assert peak <= allocated < peak + 2**20 * len(segments), (peak, allocated)
assert snapshot["allocator_settings"]["max_split_size"] == -1
)";
  const std::string command = "python3 " + script + " " + file + " " + std::to_string(result.peak_reserved) + " " +
                              std::to_string(result.peak_allocated);
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove(file);
  std::filesystem::remove(script);
}

TEST(MemorySnapshot, a_run_out_of_memory_ends_with_its_failure) {
  const ProgramBuilder builder = recorded_step();
  const MemoryOptions options = recording(100 * kOneMiB);
  const MemoryResult result = run_memory(builder.program(), options);
  ASSERT_FALSE(result.fits);
  const std::string bytes = memory_snapshot(builder.program(), result, options.settings);
  EXPECT_NE(bytes.find("oom"), std::string::npos);
  EXPECT_NE(bytes.find("device_free"), std::string::npos);
  EXPECT_NO_THROW(read_snapshot(bytes, "own"));
}

}  // namespace
}  // namespace ridgeline
