#include "sim/answer/other_ranks.h"

#include <memory>
#include <utility>

#include "sim/answer/replay.h"
#include "sim/trace/matching_collectives.h"
#include "sim/trace/read_recording.h"

namespace ridgeline {

void check_other_ranks(const Scenario& scenario, std::string_view engine, std::span<const std::string> recordings) {
  if (recordings.empty() || !scenario.recorded) return;
  const trace::Replayable own = replayable_of(scenario, engine);
  for (const std::string& path : recordings) {
    Scenario other = scenario;
    RecordedWorkload recorded = *scenario.recorded;
    recorded.file = std::make_shared<const trace::RecordingFile>(path);
    other.recorded = std::make_shared<const RecordedWorkload>(std::move(recorded));
    trace::check_collectives_match(own.recording.trace, scenario.recorded->file->path(),
                                   replayable_of(other, engine).recording.trace, path);
  }
}

}  // namespace ridgeline
