// Traces of PyTorch's profiler, written event by event.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "sim/trace/read_recording.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {

/// Events of one thread and one stream, written one a line as the profiler does.
class TraceText {
 public:
  TraceText& op(double at, double duration, const std::string& name, const std::string& arguments = "",
                int thread = 1) {
    return add(fmt::format(
        R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {{"External id": {}{}{}}}}})",
        name, thread, at, duration, ++external_, arguments.empty() ? "" : ", ", arguments));
  }
  TraceText& launch(double at, double kernel_at, double kernel_duration, const std::string& kernel = "some_kernel",
                    double call_duration = 4) {
    ++correlation_;
    add(fmt::format(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{"correlation": {}}}}})",
        at, call_duration, correlation_));
    return add(fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{"stream": 7, "correlation": {}, "grid": [8, 1, 1]}}}})",
        kernel, kernel_at, kernel_duration, correlation_));
  }
  TraceText& host(const std::string& category, const std::string& name, double at, double duration) {
    return add(fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}}})",
                           category, name, at, duration));
  }
  TraceText& add(const std::string& event) {
    events_ += (events_.empty() ? "" : ",\n") + event;
    return *this;
  }
  [[nodiscard]] std::string text() const {
    return "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}],\n\"traceEvents\": "
           "[\n" +
           events_ + "\n]}\n";
  }
  [[nodiscard]] std::string file(const std::string& name = "trace.json") const {
    const std::string path = temporary_path(name);
    std::ofstream(path, std::ios::binary) << text();
    return path;
  }
  [[nodiscard]] Replayable read() const {
    return read_recording(file(), [](const RecordedGpu&) { return RecordedDevice{4e12, 1e-6}; });
  }

 private:
  std::string events_;
  int external_ = 0, correlation_ = 100;
};

}  // namespace ridgeline::trace
