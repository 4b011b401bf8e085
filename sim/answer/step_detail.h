// The steady step kernel by kernel, with the memory meanwhile: what pictures and trace files are drawn from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/memory/memory_run.h"
#include "sim/timeline/pipeline_timeline.h"

namespace ridgeline {

/// A kernel and shape of the step; its launches are spans.
struct KernelKind {
  std::string name, shape;  ///< shape is empty for launches of no operation
  KernelLaunch launch;
  KernelTime each;                        ///< of the first launch; later ones may find the L2 in another state
  std::vector<std::string> modules = {};  ///< parts of the network that launch it ("attention"); none where unknown
};

/// One launch on the GPU. Times are relative to the begin of the step on the GPU.
struct LaunchSpan {
  std::uint32_t kind = 0;  ///< entry of StepDetail::kinds
  Phase phase = Phase::other;
  std::int16_t layer = -1;
  std::uint8_t stream = 0;  ///< entry of StepDetail::streams
  Seconds issued;           ///< the launch call returned
  Seconds start, end;
};

/// Launches [begin, end) of the spans once more, all later by `shift`: they were not simulated one by one.
using SpanCopy = LaunchRun;

/// The allocator after some allocation or free.
struct MemoryPoint {
  Seconds at;  ///< start on the GPU of the kernel that follows in the order of the program
  std::int64_t allocated = 0, reserved = 0;
  BytesByCategory bytes{};
};

struct StepDetail {
  Seconds step;
  std::vector<KernelKind> kinds;     ///< in the order they first run
  std::vector<LaunchSpan> spans;     ///< in the order of the program; what is held once has those of its first run
  std::vector<SpanCopy> copies;      ///< further runs, in the order of their begins
  std::vector<std::string> streams;  ///< what each stream is for; one where there is but the default
  std::vector<MemoryPoint> memory;   ///< in the order of the program, copies too; empty where memory runs out
};

/// How often each of the spans runs.
std::vector<std::int64_t> runs_of_spans(const StepDetail& detail);
/// All of them with their copies, in the order of their starts.
std::vector<LaunchSpan> every_span(const StepDetail& detail);

/// Of a run; throws as it does. Without memory its last field is empty.
StepDetail step_detail(const StepRun& run, bool with_memory = true);

}  // namespace ridgeline
