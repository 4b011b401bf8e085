// A PyTorch memory snapshot: the pickle that torch.cuda.memory._dump_snapshot() writes, as far as the allocator goes.
//
// It holds the segments at one moment and, where the history was recorded, one list of events a device. Frames and
// what is unknown here are passed over. Keys: torch/cuda/memory.py and torch/csrc/cuda/memory_snapshot.cpp;
// verified with a recording of PyTorch 2.11 (measurements/h200/snapshot).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/allocator/caching_allocator.h"
#include "sim/allocator/history.h"

namespace ridgeline {

/// A stream, and the CUDA graph whose private pool it is (0, 0: none).
struct StreamPool {
  std::int64_t stream = 0, graph = 0, graph_pool = 0;
  bool operator==(const StreamPool&) const = default;
};

/// A request that could not be met.
struct OutOfMemoryEvent {
  std::uint32_t line = 0;        ///< counts the events of the history from 1
  std::int64_t bytes = 0;        ///< that were requested
  std::int64_t device_free = 0;  ///< bytes of the device, as the driver said then; -1: not recorded
  std::string place;             ///< of the request: place_of()
};

/// Blocks in use that were requested at one place.
struct Holder {
  std::string place;  ///< empty where no stack was recorded
  std::int64_t bytes = 0, blocks = 0;
};

/// Of one device.
struct MemorySnapshot {
  std::int64_t device = 0;
  int devices = 0;                    ///< of the file, with a history or segments
  AllocationHistory history;          ///< `line` counts its events from 1. Empty where none was recorded
  std::vector<SegmentView> segments;  ///< as they are; `stream` counts `owners`; pending blocks are active_pending_free
  std::vector<StreamPool> owners;     ///< whose segments there are
  std::vector<OutOfMemoryEvent> out_of_memory;
  std::vector<Holder> holders;  ///< of the segments, the largest first
  AllocatorSettings settings;   ///< as far as the snapshot names them
};

/// Throws UserError with `source` and the key or event that is missing or wrong.
/// Those of all devices with a history or segments, by device.
std::vector<MemorySnapshot> read_snapshots(std::string_view bytes, const std::string& source);
/// That of the first device with a history, else the first with segments, else an empty one.
MemorySnapshot read_snapshot(std::string_view bytes, const std::string& source);

}  // namespace ridgeline
