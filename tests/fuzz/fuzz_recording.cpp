// Recorded steps of all three formats, read from a file as they are, made ready for a replay, their operations lowered.
#include <algorithm>
#include <stdexcept>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/file_of_bytes.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

void lower_some(const OpTrace& trace) {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  static const Software software = load_software("pytorch-2.11");
  static const Lowering lowering(gpu, software);
  for (std::size_t i = 0; i < std::min<std::size_t>(trace.ops.size(), 8); ++i) {
    try {
      (void)lowering.lower(trace.ops[i]);
    } catch (const std::invalid_argument&) {  // a shape that cannot be, told so
    }
  }
}

std::string wrong_trace(const OpTrace& trace) {
  for (const Record& record : trace.records) {
    using Kind = Record::Kind;
    if ((record.kind == Kind::allocate || record.kind == Kind::free) && record.index >= trace.storages.size())
      return "a storage that is not there";
    if (record.kind == Kind::op && record.index >= trace.calls.size()) return "a call that is not there";
  }
  for (const Call& call : trace.calls) {
    if (call.op >= trace.ops.size()) return "an operation that is not there";
    if (call.operands_begin + std::size_t{call.inputs} + call.outputs > trace.operands.size())
      return "operands that are not there";
  }
  return {};
}

}  // namespace

std::string fuzz_recording(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return {};
  const trace::DeviceLookup device = [](const trace::RecordedGpu&) { return trace::RecordedDevice{2e12, 2e-6, {}}; };
  try {
    const trace::Replayable ready = trace::read_recording(file_of_bytes(data, size), device);
    if (std::string wrong = wrong_trace(ready.recording.trace); !wrong.empty()) return wrong;
    if (size % 4 == 0) lower_some(ready.recording.trace);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("/proc/self/fd") == std::string_view::npos)
      return std::string("a message that names no place: ") + error.what();
  }
  return {};
}

std::string fuzz_op_trace(const std::uint8_t* data, std::size_t size) {
  if (size % 2 == 0) return fuzz_recording(data, size);
  try {
    const trace::Recording read = trace::parse_op_trace({reinterpret_cast<const char*>(data), size}, "input");
    if (std::string wrong = wrong_trace(read.trace); !wrong.empty()) return wrong;
    const trace::Recording again = trace::parse_op_trace(trace::op_trace_lines(read.info, read.trace), "again");
    if (again.trace.records.size() != read.trace.records.size() || again.trace.calls.size() != read.trace.calls.size())
      return "what was written is read otherwise";
    // Operations that nobody calls are not written: from here on it is the same text.
    const std::string written = trace::op_trace_lines(again.info, again.trace);
    const trace::Recording third = trace::parse_op_trace(written, "once more");
    if (trace::op_trace_lines(third.info, third.trace) != written) return "what was written is not what was read";
  } catch (const UserError& error) {
    if (std::string_view(error.what()).find("input:") == std::string_view::npos)
      return std::string("a message that names no place: ") + error.what();
  }
  return {};
}

}  // namespace ridgeline
