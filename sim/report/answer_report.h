// The answer to a question of any kind, described or recorded: as text, as JSON, as the files that other tools read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"
#include "sim/report/text/notes.h"
#include "sim/study/ladder.h"
#include "sim/units/text_buffer.h"

namespace ridgeline {

/// What is told on demand.
/// The first answer (summary_text), one line of it, or all that is known.
enum class Detail : std::uint8_t { everything, summary, line };

struct AnswerParts {
  bool memory_report = false;  ///< who holds the memory
  int modules = 0;             ///< levels of the network by which time and memory are told; 0: a line
  Detail detail = Detail::everything;
  double run_tokens = 0.0;                         ///< of a run to be told about; 0: none
  const std::vector<LadderRow>* ladder = nullptr;  ///< of a step that does not run; null: none was made
};

/// `prediction` is that of `run`, with what was asked for beside it; `more` is what to add to them;
/// `tool` says what made it. Throw UserError where a recording does not know what is asked for.
std::string answer_text(const StepRun& run, const Prediction& prediction, Notes notes, const AnswerParts& more);
nlohmann::ordered_json answer_json(const StepRun& run, const Prediction& prediction, const AnswerParts& more,
                                   const std::string& tool);

/// The step as a Chrome trace.
enum class Unrolled : bool { no, yes };
/// `unrolled`: equal micro-batches that are simulated once are written as often as they run.
void write_timeline(const StepRun& run, Unrolled unrolled, TextBuffer& out);
std::string answer_timeline(const StepRun& run, Unrolled unrolled = Unrolled::yes);
/// The run's operations and allocations, a line each.
std::string answer_op_trace(const StepRun& run);
/// The run's allocations as PyTorch's memory snapshot.
std::string answer_memory_snapshot(const StepRun& run);
/// One section of a page.
nlohmann::ordered_json answer_page_part(const StepRun& run, const Prediction& prediction, const std::string& title);

}  // namespace ridgeline
