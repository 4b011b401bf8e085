// A recorded step predicted on a GPU: its own operations and host work, the kernels of this GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/allocator/settings.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"
#include "sim/hardware/software.h"
#include "sim/scenario/prediction.h"
#include "sim/trace/replayable.h"

namespace ridgeline {

/// All recorded calls of one name.
struct ReplayedOp {
  std::string name;  ///< as recorded: "aten::addmm"; for our own op traces as name_of(Op)
  std::int64_t count = 0;
  bool understood = true;
  Seconds predicted{}, measured{};  ///< of their kernels; measured is 0 where the recording has none
  std::array<Seconds, kTimeClasses> predicted_by_class{}, measured_by_class{};
};

/// How much of the recording has a rule. An operation without one is costed by its bytes.
struct Coverage {
  std::int64_t calls = 0, understood_calls = 0;
  Seconds gpu_time, understood_gpu_time;  ///< measured where the recording has it, predicted otherwise
  [[nodiscard]] double of_calls() const {
    return calls > 0 ? static_cast<double>(understood_calls) / static_cast<double>(calls) : 1.0;
  }
  [[nodiscard]] double of_gpu_time() const { return gpu_time.value() > 0 ? ratio(understood_gpu_time, gpu_time) : 1.0; }
};

struct ReplayResult {
  trace::Format format = trace::Format::op_trace;
  trace::RecordingInfo info;
  Prediction prediction;
  bool memory_predicted = false;  ///< prediction.memory is filled: the recording has births and frees
  /// Of a recording that counts memory without births and frees (the profiler's): its peaks, beside what this GPU's
  /// context takes. Tensors need the same on any GPU; workspaces, and what the allocator caches, may differ.
  std::optional<MemoryPrediction> memory_as_recorded;
  trace::MeasuredStep measured;
  bool has_measured_kernels = false;
  std::vector<ReplayedOp> ops;  ///< longest prediction or measurement first
  std::array<Seconds, kTimeClasses> measured_by_class{};
  Coverage coverage;
  trace::Defects defects;
};

struct ReplaySetting {
  Gpu gpu;
  Host host;
  Software software;
  std::string engine = "analytic";
  /// The host is the recording's own, as fast as it was while it recorded; else `host` stands for itself.
  bool host_as_recorded = false;
  bool cuda_graphs = false;
};

/// Throws UserError for an unknown engine and for shapes that cannot be.
ReplayResult predict_replay(trace::Replayable recorded, const ReplaySetting& setting);

}  // namespace ridgeline
