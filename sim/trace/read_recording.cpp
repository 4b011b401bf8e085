#include "sim/trace/read_recording.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "sim/trace/execution_trace.h"
#include "sim/trace/json_pieces.h"
#include "sim/trace/read_op_trace.h"
#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

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

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::op_trace: return "op trace";
    case Format::pytorch_profiler: return "PyTorch profiler trace";
    case Format::pytorch_execution_trace: return "PyTorch execution trace";
  }
  return "?";
}

Replayable read_recording(const std::string& path, const DeviceLookup& device) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
      !std::filesystem::is_directory(path, error))
    throw UserError(fmt::format("{}: a pipe or device; a recording is read twice, so it must be a file", path));
  if (is_op_trace(path)) return read_replayable_op_trace(path);
  JsonPieces pieces(path);
  JsonPiece piece;
  Defects defects;
  ProfilerEventReader profiler(path, defects);
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
    }
    if (keys.size() < 12) keys.insert(piece.key);
  }
  if (nodes > 0 && events == 0) return execution.finish();
  if (events == 0)
    throw UserError(
        fmt::format("{}: neither an op trace nor a trace of PyTorch's profiler (\"traceEvents\") nor an execution "
                    "trace (\"nodes\"); it is JSON {}",
                    path, keys.empty() ? "without any key" : fmt::format("with the keys {}", fmt::join(keys, ", "))));
  const ProfilerEvents read = profiler.finish();
  return replay_of_profile(read, path, device, std::move(defects));
}

}  // namespace ridgeline::trace
