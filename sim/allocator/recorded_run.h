// What a memory snapshot says by itself about the run it was taken of: the state its history began with, and the peaks.
//
// The segments are those of the moment of the snapshot. Undoing the events from the last to the first gives what was
// there before the first: the blocks that were allocated before anybody recorded (a model, its optimizer). PyTorch's
// own viewer does the same. Sizes of blocks that are gone at the end follow from what was asked and from where the next
// block lies. Checked by tests/allocator/recorded_run_test.cpp against the replay, which knows nothing of this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/allocator/snapshot.h"

namespace ridgeline {

/// One pool of one stream (and of one CUDA graph, where pools are private).
struct PoolTotals {
  StreamPool owner;
  PoolKind kind = PoolKind::large;
  Counter allocated, reserved;  ///< bytes
};

struct RecordedRun {
  std::vector<SegmentView> before;  ///< when the history began; `stream` counts MemorySnapshot::owners
  AllocationHistory history;        ///< the events; their `stream` counts `owners`
  std::vector<StreamPool> owners;   ///< those of the snapshot, and of segments that were given back
  std::int64_t blocks_before = 0, allocated_before = 0, reserved_before = 0;
  Counter allocated, reserved;  ///< bytes, from the beginning of the history on
  std::vector<PoolTotals> pools;
  std::vector<std::string> gaps;  ///< what the recording lacks, a sentence each; empty where it is whole
};

RecordedRun recorded_run(const MemorySnapshot& snapshot);

}  // namespace ridgeline
