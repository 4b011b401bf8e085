// The events of a PyTorch profiler trace (Kineto's Chrome trace) that matter for a replay.
//
// Kept: operators, calls of the CUDA runtime and driver, what ran on the GPU, annotations, totals of the allocator.
// Times are microseconds after the first event kept. Traces of PyTorch 1.8 on are read: categories and argument names
// have changed since.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/trace/replayable.h"

namespace ridgeline::trace {

/// Every different name once.
class NamePool {
 public:
  std::uint32_t add(std::string_view name);
  [[nodiscard]] const std::string& operator[](std::uint32_t index) const { return *names_[index]; }

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<const std::string*> names_;
};

/// Which of the file's events it was: files of several ranks hold one rank's behind the other's.
using EventPlace = std::int64_t;

struct HostEvent {
  double begin = 0.0, end = 0.0;
  std::int64_t thread = 0, process = 0;
  EventPlace place = 0;
  std::uint32_t name = 0;
};
struct OperatorEvent : HostEvent {
  std::int64_t external_id = -1;
  std::int64_t line = 0;  ///< of the file
  std::string arguments;  ///< JSON as recorded; parsed where the shapes are needed
};
struct RuntimeEvent : HostEvent {
  std::int64_t correlation = -1, external_id = -1;
};
struct GpuEvent {
  enum class Kind : std::uint8_t { kernel, copy, set };
  Kind kind = Kind::kernel;
  double begin = 0.0, end = 0.0;
  std::uint32_t name = 0;
  std::int64_t correlation = -1, external_id = -1, stream = 0, blocks = 0, bytes = 0, device = 0;
  EventPlace place = 0;
  /// What Kineto writes beside a kernel of NCCL: elements that this rank sends and receives; empty otherwise.
  struct Message {
    std::string name, type;
    std::int64_t sent = 0, received = 0, ranks = 0;
    std::string group{};  ///< the description of the process group
  };
  Message message{};
  std::int64_t blocks_down = 0;  ///< the second side of the grid
};
/// A wait as Kineto writes it with its streams ("cuda_sync").
struct SyncEvent {
  enum class Kind : std::uint8_t { stream_waits, host_waits_for_event, host_waits_for_stream, host_waits_for_all };
  Kind kind = Kind::host_waits_for_all;
  double begin = 0.0, end = 0.0;
  std::int64_t stream = -1, wait_on_stream = -1;
  std::int64_t correlation = -1,
               record_correlation = -1;  ///< of the call that waits, of the one that recorded the event
  EventPlace place = 0;
};
/// The allocator after an allocation or a free.
struct MemoryEvent {
  double at = 0.0;
  std::int64_t allocated = 0, reserved = 0;
  EventPlace place = 0;
};

enum class ProfilerSource : std::uint8_t { kineto, nsight, timeline };  ///< timeline: of predict --timeline

struct ProfilerEvents {
  NamePool names;
  std::vector<OperatorEvent> operators;
  std::vector<RuntimeEvent> runtime;  ///< launches and waits
  std::vector<GpuEvent> gpu;
  std::vector<SyncEvent> syncs;
  std::vector<HostEvent> annotations;
  std::vector<HostEvent> steps;      ///< where others than ProfilerStep#N mark them
  std::vector<HostEvent> overheads;  ///< time the profiler took for itself
  std::vector<MemoryEvent> memory;
  double predicted_step = 0.0;       ///< microseconds of a timeline's step; 0: not said
  std::string gpu_name;
  std::int64_t gpu_memory = 0;                   ///< bytes; 0: not said
  std::int64_t gpu_sms = 0, gpu_capability = 0;  ///< 90 for 9.0; 0: not said
  std::vector<GpuUse> gpus;                      ///< of all that the recording tells of; empty: of one alone
  ProfilerSource source = ProfilerSource::kineto;
  std::string cut_off;     ///< why the file ends before its events do; empty where it does not
  bool hip = false;        ///< launched through AMD's runtime: kernels are none of NVIDIA's
  std::size_t ranks = 1;   ///< whose events the file holds; kept are the first one's
  std::int64_t world = 0;  ///< ranks of the job; 0: not said
  double toolkit = 0.0;    ///< CUDA of the year that events and kernels are called so; 0: of late ones
};

/// Takes the pieces of a trace one by one.
class ProfilerEventReader {
 public:
  ProfilerEventReader(std::string path, Defects& defects);
  ~ProfilerEventReader();
  ProfilerEventReader(const ProfilerEventReader&) = delete;
  ProfilerEventReader& operator=(const ProfilerEventReader&) = delete;

  /// An element of "traceEvents", followed by JsonPieces::kPadding readable bytes. Throws UserError "file:line: what"
  /// for times that are no numbers; what is merely missing is counted among the defects.
  void event(std::string_view text, std::int64_t line);
  /// An element of "deviceProperties".
  void device(std::string_view text);
  /// "distributedInfo".
  void distributed(std::string_view text);
  /// "step_us": the file is a timeline that was predicted, in which no profiler took time.
  void predicted(std::string_view text);
  /// Everything read, ordered by begin.
  ProfilerEvents finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline::trace
