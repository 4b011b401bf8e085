#include "sim/report/answer_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/answer/replay.h"
#include "sim/answer/step_detail.h"
#include "sim/answer/whole_step.h"
#include "sim/memory/memory_snapshot.h"
#include "sim/report/json/prediction_json.h"
#include "sim/report/json/question_json.h"
#include "sim/report/page/page_data.h"
#include "sim/report/replay_report.h"
#include "sim/report/run_report.h"
#include "sim/report/text/memory_report_text.h"
#include "sim/report/text/module_text.h"
#include "sim/report/text/prediction_text.h"
#include "sim/report/text/sensitivity_text.h"
#include "sim/report/text/summary_text.h"
#include "sim/report/timeline/chrome_trace.h"
#include "sim/scenario/step_amount.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// The run of the memory, which a recording need not know.
const MemoryResult& memory_of(const StepRun& run, const char* option) {
  try {
    return run.memory_run();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", option, error.what()));
  }
}

/// Of a pipeline the class whose memory is predicted.
const StepRun& fullest_of(const StepRun& run) {
  return run.pipeline() != nullptr ? run.pipeline()->fullest() : run.every_token();
}

MemoryReport memory_report_of(const StepRun& run) {
  const StepRun& of = fullest_of(run);
  return report_memory(of.program(), memory_of(of, "--memory-report"));
}

ReplayResult replay_of(const StepRun& run, const Prediction& prediction) {
  ReplayResult replay = replay_result(run);
  replay.prediction = prediction;
  return replay;
}

constexpr std::size_t kAllRows = 100;

/// Classes in Python: of the optimizer, and of what one layer is.
std::string_view class_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw: return "AdamW";
    case OptimizerKind::adam: return "Adam";
    case OptimizerKind::sgd:
    case OptimizerKind::sgd_momentum: return "SGD";
    case OptimizerKind::adafactor: return "Adafactor";
    case OptimizerKind::adamw_8bit: return "AdamW8bit";
    case OptimizerKind::lion: return "Lion";
    case OptimizerKind::lion_8bit: return "Lion8bit";
    case OptimizerKind::lamb: return "FusedLAMB";
    case OptimizerKind::schedule_free_adamw: return "AdamWScheduleFree";
    case OptimizerKind::muon: return "Muon";
    default: return "Optimizer";
  }
}
std::string_view block_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::gpt2: return "Block";
    case ModelFamily::bert: return "BertLayer";
    case ModelFamily::llama: return "LlamaDecoderLayer";
    case ModelFamily::composed:
    case ModelFamily::program: return "Block";
  }
  return "";
}

}  // namespace

std::string answer_text(const StepRun& run, const Prediction& prediction, Notes notes, const AnswerParts& more) {
  const Scenario& scenario = run.scenario();
  if (more.detail == Detail::line) return summary_line(scenario, prediction);
  const double run_tokens = more.run_tokens > 0.0 ? more.run_tokens : tokens_of_run(scenario);
  std::string text;
  if (scenario.recorded) {
    text = replay_text(scenario.recorded->file->path(), replay_of(run, prediction), notes);
  } else if (more.detail == Detail::summary) {
    text = summary_text(scenario, prediction, more.ladder, run_tokens);
    if (prediction.sensitivity) text += sensitivity_table(*prediction.sensitivity);
    if (notes == Notes::all) text += notes_text(prediction, nullptr, notes);
  } else {
    text = prediction_text(scenario, prediction, notes);
    if (run_tokens > 0.0 && prediction.memory.runs)
      text += "\n  run           " + run_words(scenario, prediction, run_tokens) + "\n";
    if (more.ladder != nullptr) text += "\n" + ladder_text(*more.ladder, kAllRows);
  }
  if (more.modules > 0) text += module_table(prediction.modules, more.modules, knows_allocations(scenario));
  if (more.memory_report) text += memory_report_text(memory_report_of(run));
  return text;
}

nlohmann::ordered_json answer_json(const StepRun& run, const Prediction& prediction, const AnswerParts& more,
                                   const std::string& tool) {
  const Scenario& scenario = run.scenario();
  nlohmann::ordered_json json{{"schema", kJsonSchema},
                              {"tool", tool},
                              {"question", question_json(scenario, run.engine())},
                              {"measured", measured_json(scenario)}};
  json.update(scenario.recorded ? replay_json(scenario.recorded->file->path(), replay_of(run, prediction))
                                : prediction_json(prediction));
  if (scenario.run) json["run"] = run_json(scenario, prediction);
  if (more.modules > 0) json["modules"] = module_json(prediction.modules, more.modules, knows_allocations(scenario));
  if (more.memory_report) json["memory_report"] = memory_report_json(memory_report_of(run));
  return json;
}

void write_timeline(const StepRun& held, Unrolled unrolled, TextBuffer& out) {
  const StepRun& run = held.every_token();
  const Scenario& scenario = run.scenario();
  std::optional<WholeStep> whole;
  if (unrolled == Unrolled::yes) whole = whole_step(run);
  std::optional<PipelineTimeline> pipeline;
  std::vector<const StepProgram*> classes;
  if (unrolled == Unrolled::yes && run.pipeline() != nullptr) {
    pipeline = run.pipeline()->with_every_rank();
    for (const RankKernels& rank : pipeline->kernels) {
      classes.resize(std::max(classes.size(), rank.of_class + 1));
      classes[rank.of_class] = &run.pipeline()->run_of_class(rank.of_class).program();
    }
  }
  std::span<const MemorySample> memory;
  if (whole) memory = whole->memory;
  else if (knows_allocations(scenario)) memory = run.memory_run().samples;
  write_chrome_trace({.title = scenario.title,
                      .program = whole ? whole->step.program : run.program(),
                      .times = whole ? whole->times : run.times(),
                      .timeline = whole ? whole->timeline : run.timeline(),
                      .gpu = scenario.gpu,
                      .host = scenario.host,
                      .cuda_graphs = scenario.cuda_graphs,
                      .memory = memory,
                      .optimizer = scenario.recorded ? "Optimizer" : class_of(scenario.training.optimizer.kind),
                      .pipeline = pipeline                    ? &*pipeline
                                  : run.pipeline() != nullptr ? &run.pipeline()->timeline()
                                                              : nullptr,
                      .classes = classes,
                      .cuda = scenario.software.cuda,
                      .block = scenario.recorded ? "" : block_of(scenario.model.family)},
                     out);
}

std::string answer_timeline(const StepRun& run, Unrolled unrolled) {
  TextBuffer text;
  write_timeline(run, unrolled, text);
  return std::move(text).take();
}

std::string answer_op_trace(const StepRun& run) {
  const Scenario& scenario = run.scenario();
  const StepAmount amount = amount_of_step(scenario);
  return trace::op_trace_lines({.producer = scenario.recorded ? "ridgeline replay" : "ridgeline predict",
                                .title = scenario.title,
                                .precision = scenario.recorded ? scenario.recorded->file->info().precision : "",
                                .samples = amount.samples,
                                .tokens = amount.tokens,
                                .ranks = scenario.training.parallel},
                               run.every_token().trace());
}

std::string answer_memory_snapshot(const StepRun& run) {
  const StepRun& of = fullest_of(run);
  return memory_snapshot(of.program(), memory_of(of, "--memory-snapshot"), run.scenario().allocator);
}

nlohmann::ordered_json answer_page_part(const StepRun& run, const Prediction& prediction, const std::string& title) {
  nlohmann::ordered_json part = page_part(title, prediction, step_detail(run), run.scenario().gpu);
  if (run.scenario().recorded) part["critical_path"] = critical_path_json(run.recording()->critical_path);
  return part;
}

}  // namespace ridgeline
