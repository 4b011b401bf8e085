#include "sim/report/timeline/pipeline_lanes.h"

#include <fmt/format.h>

namespace ridgeline {

void add_lanes(TraceEvents& events, const PipelineTimeline& pipeline, int process) {
  events.metadata("process_name", process, 0, "name", "pipeline");
  events.metadata("process_sort_index", process, 0, "sort_index", 2);
  for (std::size_t rank = 0; rank < pipeline.lanes.size(); ++rank) {
    const int lane = static_cast<int>(rank);
    events.metadata("thread_name", process, lane, "name", fmt::format("rank {}", rank));
    for (const StagePass& pass : pipeline.lanes[rank])
      events.slice("pipeline", to_string(pass.action), process, lane, pass.start.value(), pass.end.value(),
                   [&](JsonObject& arguments) {
                     arguments.add("stage", pass.action.stage).add("micro_batch", pass.action.micro_batch);
                   });
  }
}

void add_rank_kernels(TraceEvents& events, const PipelineTimeline& pipeline,
                      std::span<const StepProgram* const> classes, int first_process, int stream) {
  std::vector<std::vector<const KernelLaunch*>> launches;
  for (const StepProgram* program : classes) {
    std::vector<const KernelLaunch*>& own = launches.emplace_back();
    for (const Action& action : program->steady_step())
      if (action.kind == Action::Kind::launch) own.push_back(&program->launches[action.index]);
  }
  for (std::size_t rank = 0; rank < pipeline.kernels.size(); ++rank) {
    if (rank == pipeline.shown_rank) continue;
    const RankKernels& kernels = pipeline.kernels[rank];
    const int process = first_process + static_cast<int>(rank);
    events.metadata("process_name", process, 0, "name", fmt::format("kernels of rank {}", rank));
    events.metadata("process_sort_index", process, 0, "sort_index", process);
    std::vector<bool> ran(kernels.held.size());
    for (const LaunchRun& run : kernels.runs)
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const KernelSpan& span = kernels.held[i];
        const int thread = stream + 4 * span.stream;
        events.slice("kernel", launches[kernels.of_class][i]->name, process, thread, (span.start + run.shift).value(),
                     (span.end + run.shift).value(), [&](JsonObject& arguments) {
                       arguments.add("rank", rank).add("stream", thread).add("simulated", !ran[i]);
                     });
        ran[i] = true;
      }
  }
}

}  // namespace ridgeline
