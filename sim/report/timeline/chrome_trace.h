// A step as a Chrome trace: what Perfetto, chrome://tracing and HolisticTraceAnalysis read.
//
// Spelled as PyTorch's profiler spells it: host threads with operators (cat "cpu_op", with the shapes and types of
// their arguments) and driver calls ("cuda_runtime"), a GPU stream with "kernel", "gpu_memset" and "gpu_memcpy", joined
// by `correlation` and by flows "ac2g"; ProfilerStep and Optimizer.step on both sides; counters for memory and
// utilisation. Microseconds from the moment the host begins the step. Keys: docs/json.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"
#include "sim/memory/memory_run.h"
#include "sim/program/step_program.h"
#include "sim/timeline/pipeline_timeline.h"
#include "sim/timeline/timeline.h"
#include "sim/timing/kernel_time.h"
#include "sim/units/text_buffer.h"

namespace ridgeline {

struct ChromeTraceInput {
  const std::string& title;
  const StepProgram& program;
  std::span<const KernelTime> times;  ///< as run_timeline took them
  const Timeline& timeline;
  const Gpu& gpu;
  const Host& host;
  bool cuda_graphs = false;
  std::span<const MemorySample> memory;        ///< of the steady step; may be empty
  std::string_view optimizer = "Optimizer";    ///< its class in Python: "AdamW"
  const PipelineTimeline* pipeline = nullptr;  ///< of all ranks, where the step is one rank's of a pipeline
  /// Runs of each class of the pipeline's ranks, where `pipeline` has the kernels of all ranks.
  std::span<const StepProgram* const> classes = {};
  double cuda = 0.0;            ///< 12.4: toolkit of the libraries; 0: not said
  std::string_view block = "";  ///< class of the module that a layer is: "BertLayer"; empty: not known
};

/// The same input gives the same text.
void write_chrome_trace(const ChromeTraceInput& input, TextBuffer& out);
std::string chrome_trace(const ChromeTraceInput& input);

}  // namespace ridgeline
