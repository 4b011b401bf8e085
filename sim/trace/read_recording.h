// Any file that holds a recorded training step, its kind found from its content: our op trace (JSON Lines), a trace of
// PyTorch's profiler, a PyTorch execution trace, plain or gzip; or a report of Nsight Systems exported as SQLite.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/trace/profiler/read_profiler_trace.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

/// A recording that was read once and can be made ready for several GPUs. Safe to share between threads.
class RecordingFile {
 public:
  /// Throws UserError with file, line and what is wrong: not JSON, JSON of another kind, cut off, sizes that cannot be.
  explicit RecordingFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Format format() const { return format_; }
  /// Throws UserError where nothing in it can be replayed.
  [[nodiscard]] Replayable made_for(const DeviceLookup& device) const;
  /// What the header says; a profiler's trace says nothing.
  [[nodiscard]] const RecordingInfo& info() const { return ready_.recording.info; }
  [[nodiscard]] RecordedGpu gpu() const;               ///< as the recording names it
  [[nodiscard]] double cuda() const { return cuda_; }  ///< 12.4: toolkit of the recording; 0: not said
  /// The same; where the recording does not say it, by what its kernels are called.
  [[nodiscard]] double toolkit() const { return cuda_ > 0.0 || !events_ ? cuda_ : events_->toolkit; }
  /// Allocations and frees are recorded one by one.
  [[nodiscard]] bool memory_known() const { return !events_ && ready_.memory_known; }
  [[nodiscard]] bool host_measured() const { return host_measured_; }
  /// Its host times are those of its own host, without a profiler's share to take out: a predicted timeline, or a
  /// report of Nsight Systems.
  [[nodiscard]] bool host_as_it_was() const { return events_ && events_->source != ProfilerSource::kineto; }
  /// A predicted timeline of a step that ran as CUDA graphs.
  [[nodiscard]] bool in_cuda_graphs() const { return in_cuda_graphs_; }
  [[nodiscard]] double host_slowness() const { return host_slowness_; }  ///< Replayable::host_slowness

 private:
  void take_events(ProfilerEvents events);

  std::string path_;
  Format format_ = Format::op_trace;
  Replayable ready_;                              ///< of formats that know no GPU
  std::shared_ptr<const ProfilerEvents> events_;  ///< of a profiler's trace or report
  Defects defects_;                               ///< met while its events were read
  bool host_measured_ = false, in_cuda_graphs_ = false;
  double host_slowness_ = 1.0, cuda_ = 0.0;
};

/// By its name or its first bytes; a scenario, or no file at all, does not. What it holds may still be broken.
bool looks_like_recording(const std::string& path);

/// Throws UserError with file, line and what is wrong: not JSON, JSON of another kind, cut off, sizes that cannot be.
Replayable read_recording(const std::string& path, const DeviceLookup& device);

std::string_view name_of(Format format);

}  // namespace ridgeline::trace
