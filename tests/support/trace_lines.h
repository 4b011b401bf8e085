// Traces of PyTorch's profiler with every number of an event given, and what is read of them in words.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <string>
#include <vector>

#include "sim/trace/read_recording.h"
#include "tests/support/temporary_path.h"
#include "tests/support/trace_listing.h"

namespace ridgeline::trace {

/// "name: us of kernels" of each call, then the totals of the step.
inline std::string measured_of(const Replayable& r) {
  std::string text;
  for (const RecordedCall& call : r.recorded)
    text += fmt::format("{}: {:.6g} us of {} kernels{}{}\n", call.name, call.measured * 1e6, call.kernels,
                        call.understood ? "" : ", not understood",
                        call.beside > 0 ? fmt::format(", {:.6g} beside others", call.beside * 1e6) : "");
  const MeasuredStep& m = r.measured;
  return text +
         fmt::format("{}: busy {:.6g} sum {:.6g} span {:.6g} step {:.6g} kernels {} allocated {} reserved {} on {}",
                     m.which_step, m.busy * 1e6, m.kernel_sum * 1e6, m.span * 1e6, m.step * 1e6, m.kernels,
                     m.peak_allocated, m.peak_reserved, m.gpu);
}

/// TraceLines of a trace of PyTorch's profiler.
class TraceLines {
 public:
  TraceLines& op(double at, double duration, const std::string& name, const std::string& arguments = "",
                 int thread = 1) {
    return add("cpu_op", name, at, duration, 1, thread, arguments);
  }
  TraceLines& call(double at, const std::string& name, int correlation, int thread = 1, double duration = 4) {
    return add("cuda_runtime", name, at, duration, 1, thread, fmt::format("\"correlation\": {}", correlation));
  }
  TraceLines& gpu(double at, double duration, const std::string& name, int correlation, int stream = 7,
                  const std::string& category = "kernel", const std::string& more = "") {
    return add(category, name, at, duration, 0, stream,
               fmt::format("\"stream\": {}, \"correlation\": {}, \"grid\": [2, 3, 4]{}", stream, correlation, more));
  }
  /// A launch that takes 4 us, and its kernel.
  TraceLines& launch(double at, double kernel_at, double kernel_duration, int correlation, int thread = 1) {
    return call(at, "cudaLaunchKernel", correlation, thread)
        .gpu(kernel_at, kernel_duration, "some_kernel", correlation);
  }
  TraceLines& mark(double at, double duration, const std::string& name) {
    return add("user_annotation", name, at, duration, 1, 1, "");
  }
  TraceLines& memory(double at, std::int64_t allocated, std::int64_t reserved) {
    events_.push_back(fmt::format(
        R"({{"ph":"i","name":"[memory]","ts":{},"args":{{"Total Allocated":{},"Total Reserved":{},"Device Type":1}}}})",
        at, allocated, reserved));
    return *this;
  }
  [[nodiscard]] Replayable read() const {
    const std::string path = temporary_path("worked.json");
    std::ofstream(path, std::ios::binary)
        << "{\"deviceProperties\": [{\"name\": \"NVIDIA H200\"}],\n\"traceEvents\": [\n"
        << fmt::format("{}", fmt::join(events_, ",\n")) << "]}\n";
    return read_recording(path, [](const RecordedGpu&) { return RecordedDevice{4e12, 1e-6}; });
  }

 private:
  TraceLines& add(const std::string& category, const std::string& name, double at, double duration, int process,
                  int thread, const std::string& arguments) {
    events_.push_back(
        fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", category,
                    name, process, thread, at, duration, arguments));
    return *this;
  }
  std::vector<std::string> events_;
};

/// Arguments of so many tensors of one type, as the profiler writes them.
inline std::string tensors(std::initializer_list<const char*> sizes, const char* type = "float") {
  std::string dims, types;
  for (const char* one : sizes) {
    dims += fmt::format("{}{}", dims.empty() ? "" : ", ", one);
    types += fmt::format("{}\"{}\"", types.empty() ? "" : ", ", type);
  }
  return fmt::format(R"("Input Dims": [{}], "Input type": [{}])", dims, types);
}

}  // namespace ridgeline::trace
