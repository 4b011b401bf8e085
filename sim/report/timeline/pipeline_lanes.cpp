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

}  // namespace ridgeline
