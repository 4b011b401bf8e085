// What predict and replay have in common: how a question is answered, and in which form.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "sim/app/scenario_options.h"

namespace ridgeline::app {

struct AnswerOptions {
  std::string engine = "analytic", format = "text", op_trace, memory_snapshot, timeline, html;
  bool every_gpu = false, no_advice = false, memory_report = false, sensitivity = false, all_notes = false,
       check = false, timeline_compact = false;
  bool summary = false;  ///< the first answer unless `explain` asks for more
  bool explain = false, quiet = false;
  int modules = 0;
  double run_tokens = 0.0;  ///< of --tokens

  /// The object must outlive the parsing of the command line.
  void add_to(CLI::App& command);
  /// For commands whose text is the first answer: --explain and --quiet.
  void add_detail_to(CLI::App& command);
};

/// Prints the prediction of a described or recorded step and writes the files asked for; returns the exit code. Throws
/// UserError for what the scenario cannot say (memory of a recording without any).
int answer(const ScenarioOptions& scenario, const AnswerOptions& options);
/// The same, of recorded steps only.
int answer_of_recording(const ScenarioOptions& scenario, const AnswerOptions& options);

}  // namespace ridgeline::app
