#include "sim/trace/read_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/config/files_read.h"
#include "sim/input/foreign_database.h"
#include "sim/trace/execution_trace.h"
#include "sim/trace/json_pieces.h"
#include "sim/trace/nsight/read_nsight.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/profiler/host_clock.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

/// Of CUDA's own number for it: 12040 is 12.4. 0 where it is none.
double cuda_version(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr int kMajor = 1000, kMinor = 10, kMost = 1000 * kMajor;
  if (error != std::errc{} || number < kMajor || number > kMost) return 0.0;
  return number / kMajor + (number % kMajor / kMinor) * 0.1;
}

/// Tells whether graphs launched all that ran on the GPU.
bool all_in_graphs(const ProfilerEvents& events) {
  std::set<std::int64_t> graphs;
  for (const RuntimeEvent& call : events.runtime)
    if (events.names[call.name].find("GraphLaunch") != std::string::npos) graphs.insert(call.correlation);
  return !graphs.empty() && std::all_of(events.gpu.begin(), events.gpu.end(),
                                        [&](const GpuEvent& item) { return graphs.contains(item.correlation); });
}

bool is_database(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kSqliteBegin.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return file.gcount() == static_cast<std::streamsize>(head.size()) && head == kSqliteBegin;
}

/// Whether the first object of the text is the header of an op trace.
bool is_op_trace(const std::string& path) {
  TextSource source(path);
  std::string text;
  source.read(text);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] != '{') return false;
  const std::string_view header = std::string_view(text).substr(begin, text.find('\n', begin) - begin);
  return header.find("\"ridgeline\"") != header.npos;
}

/// Whether the text begins as a trace does, with a list that has nothing in it.
bool holds_empty_list(const std::string& path) {
  TextSource source(path);
  std::string text;
  source.read(text);
  for (const std::string_view key : {"\"traceEvents\"", "\"nodes\""}) {
    const std::size_t at = text.find(key);
    if (at == text.npos) continue;
    std::string_view rest = std::string_view(text).substr(at + key.size());
    for (const char wanted : {':', '[', ']'}) {
      rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t\r\n")));
      if (rest.empty() || rest.front() != wanted) return false;
      rest.remove_prefix(1);
    }
    return true;
  }
  return false;
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::op_trace: return "op trace";
    case Format::pytorch_profiler: return "PyTorch profiler trace";
    case Format::pytorch_execution_trace: return "PyTorch execution trace";
    case Format::nsight_systems: return "Nsight Systems report";
  }
  return "?";
}

RecordingFile::RecordingFile(const std::string& path) : path_(path) {
  check_readable(path);
  config::FilesRead::note(path);
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
      !std::filesystem::is_directory(path, error))
    throw UserError(fmt::format("{}: a pipe or device; a recording is read twice, so it must be a file", path));
  if (const std::string how = how_to_export(path); !how.empty()) throw UserError(fmt::format("{}: {}", path, how));
  if (is_database(path)) {
    format_ = Format::nsight_systems;
    take_events(read_nsight(path, defects_));
    return;
  }
  if (is_op_trace(path)) {
    ready_ = read_replayable_op_trace(path);
    format_ = ready_.format;
    host_measured_ = ready_.host_measured;
    host_slowness_ = ready_.host_slowness;
    return;
  }
  JsonPieces pieces(path);
  pieces.let_end_early();
  JsonPiece piece;
  ProfilerEventReader profiler(path, defects_);
  ExecutionTraceReader execution(path);
  std::set<std::string> keys;
  std::int64_t events = 0, nodes = 0;
  while (pieces.next(piece)) {
    if (piece.key == "traceEvents" || (piece.key.empty() && piece.element)) {
      profiler.event(piece.text, pieces.line());
      ++events;
    } else if (piece.key == "nodes" && piece.element) {
      execution.node(piece.text, pieces.line());
      ++nodes;
    } else if (piece.key == "schema") {
      execution.schema(piece.text);
    } else if (piece.key == "deviceProperties") {
      profiler.device(piece.text);
    } else if (piece.key == "distributedInfo") {
      profiler.distributed(piece.text);
    } else if (piece.key == "step_us") {
      profiler.predicted(piece.text);
    } else if (piece.key == "cuda_runtime_version") {
      cuda_ = cuda_version(piece.text);
    }
    if (keys.size() < 12) keys.insert(piece.key);
  }
  const bool within_events = pieces.cut_inside().empty() || pieces.cut_inside() == "traceEvents";
  if (!pieces.cut_off().empty() && (events == 0 || !within_events))
    throw UserError(fmt::format("{}:{}: {}", path, pieces.line(), pieces.cut_off()));
  if (nodes > 0 && events == 0) {
    ready_ = execution.finish();
    format_ = ready_.format;
    return;
  }
  if (events == 0 && holds_empty_list(path))
    throw UserError(fmt::format("{}: the recording holds no events: \"traceEvents\" or \"nodes\" is empty", path));
  if (events == 0)
    throw UserError(
        fmt::format("{}: neither an op trace nor a trace of PyTorch's profiler (\"traceEvents\") nor an execution "
                    "trace (\"nodes\"); scenarios are for ridgeline predict; it is JSON {}",
                    path, keys.empty() ? "without any key" : fmt::format("with the keys {}", fmt::join(keys, ", "))));
  format_ = Format::pytorch_profiler;
  ProfilerEvents all = profiler.finish();
  if (!pieces.cut_off().empty()) {
    all.cut_off = fmt::format("{}:{}: {}", path, pieces.line(), pieces.cut_off());
    defects_.add("the file is cut off: only steps that are whole in it count");
  }
  take_events(std::move(all));
}

void RecordingFile::take_events(ProfilerEvents events) {
  events_ = std::make_shared<const ProfilerEvents>(std::move(events));
  host_measured_ = true;
  host_slowness_ = HostClock(*events_).slowness();
  in_cuda_graphs_ = events_->source == ProfilerSource::timeline && all_in_graphs(*events_);
}

Replayable RecordingFile::made_for(const DeviceLookup& device) const {
  return events_ ? replay_of_profile(*events_, path_, device, defects_) : ready_;
}

RecordedGpu RecordingFile::gpu() const {
  if (!events_) return {};
  return {events_->gpu_name, events_->gpu_memory, events_->hip, events_->gpu_sms, events_->gpu_capability};
}

bool looks_like_recording(const std::string& path) {
  check_readable(path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (head.starts_with("\x1f\x8b")) return true;  // gzip, which no scenario is
  if (head.starts_with(kSqliteBegin) || !how_to_export(path).empty()) return true;
  if (head.starts_with("\xef\xbb\xbf")) head.erase(0, 3);  // a byte-order mark
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == head.npos || (head[begin] != '{' && head[begin] != '[')) return false;
  for (const std::string_view key :
       {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\"", "\"ridgeline\"", "\"schema\"", "\"ph\""})
    if (head.find(key) != head.npos) return true;
  return false;
}

Replayable read_recording(const std::string& path, const DeviceLookup& device) {
  return RecordingFile(path).made_for(device);
}

}  // namespace ridgeline::trace
