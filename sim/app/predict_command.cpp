// ridgeline predict: a scenario file, flags, or both, to step time, memory and reasons.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/app/page_output.h"
#include "sim/app/scenario_options.h"
#include "sim/hardware/load_gpu.h"
#include "sim/memory/memory_snapshot.h"
#include "sim/output/standard_output.h"
#include "sim/output/write_file.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/memory_report_text.h"
#include "sim/report/prediction_json.h"
#include "sim/report/prediction_text.h"
#include "sim/scenario/changes.h"
#include "sim/scenario/memory_prediction.h"
#include "sim/scenario/prediction.h"
#include "sim/scenario/unread_changes.h"
#include "sim/trace/write_op_trace.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::string engine = "analytic", format = "text", op_trace, memory_snapshot, timeline, html;
  bool every_gpu = false, no_advice = false, memory_report = false, sensitivity = false;
};

void add_unread_changes(Prediction& prediction, const Scenario& scenario, const std::string& engine) {
  for (std::string& note : unread_changes(scenario, engine)) prediction.notes.push_back(std::move(note));
}

void run_on_every_gpu(const Options& options) {
  if (options.sensitivity && options.format != "json")
    throw UserError("--sensitivity: the table of --on-every-gpu has no room for it; add --format json");
  std::vector<Prediction> predictions;
  Scenario shown;
  for (const std::string& name : hardware_names()) {
    ScenarioSource source = options.scenario.source();
    source.overrides.insert(source.overrides.begin(), {"hardware", name, ""});
    Scenario scenario = load_scenario(source);
    predictions.push_back(predict(scenario, options.engine));
    add_unread_changes(predictions.back(), scenario, options.engine);
    if (options.sensitivity) predictions.back().sensitivity = step_sensitivity(scenario, options.engine);
    shown = std::move(scenario);
  }
  if (options.format == "json") {
    auto all = nlohmann::ordered_json::array();
    for (const Prediction& p : predictions) all.push_back(prediction_json(p));
    print("{}\n", all.dump(2));
  } else {
    print("{}", prediction_table(shown, predictions));
  }
}

MemoryReport memory_report_of(const Scenario& scenario) {
  const ScenarioProgram built = make_scenario_program(scenario);
  MemoryOptions options = memory_options(scenario);
  options.record_samples = true;
  return report_memory(built.program, run_memory(built.program, options));
}

void write_memory_snapshot(const Scenario& scenario, const std::string& path) {
  const ScenarioProgram built = make_scenario_program(scenario);
  MemoryOptions options = memory_options(scenario);
  options.record_history = true;
  write_file(path, memory_snapshot(built.program, run_memory(built.program, options), options.settings));
}

void write_op_trace(const std::string& path, const Scenario& scenario) {
  const ScenarioProgram built = make_scenario_program(scenario);
  const double samples = static_cast<double>(scenario.training.micro_batch * scenario.training.gradient_accumulation);
  write_file(path, trace::op_trace_lines({.producer = "ridgeline predict",
                                          .title = scenario.title,
                                          .samples = samples,
                                          .tokens = samples * static_cast<double>(scenario.training.sequence_length)},
                                         *built.trace));
}

void write_timeline(const std::string& path, const Scenario& scenario, const std::string& engine) {
  const StepRun run = run_step(scenario, engine);
  MemoryOptions options = memory_options(scenario);
  options.record_samples = true;
  const MemoryResult memory = run_memory(run.built.program, options);
  write_file(path, chrome_trace({.title = scenario.title,
                                 .program = run.built.program,
                                 .times = run.times,
                                 .timeline = run.timeline,
                                 .gpu = scenario.gpu,
                                 .host = scenario.host,
                                 .cuda_graphs = run.options.cuda_graphs,
                                 .memory = memory.samples}));
}

void run(const Options& options) {
  if (options.every_gpu) return run_on_every_gpu(options);
  const Scenario scenario = load_scenario(options.scenario.source());
  if (!options.timeline.empty()) write_timeline(options.timeline, scenario, options.engine);
  if (!options.op_trace.empty()) write_op_trace(options.op_trace, scenario);
  Prediction prediction = predict(scenario, options.engine);
  add_unread_changes(prediction, scenario, options.engine);
  if (!options.no_advice) prediction.advice = find_advice(scenario, options.engine, prediction);
  if (!prediction.memory.fits) prediction.memory.would_fit = changes_that_make_it_fit(scenario);
  if (options.sensitivity) prediction.sensitivity = step_sensitivity(scenario, options.engine);
  MemoryReport report;
  if (options.memory_report) report = memory_report_of(scenario);
  if (!options.memory_snapshot.empty()) write_memory_snapshot(scenario, options.memory_snapshot);
  if (!options.html.empty()) {
    const std::string title = fmt::format("{} on {}", scenario.title, scenario.gpu.title);
    write_page(options.html, title, nlohmann::ordered_json::array({page_part_of(title, scenario, prediction)}), {});
  }
  if (options.format == "json") {
    nlohmann::ordered_json json = prediction_json(prediction);
    if (options.memory_report) json["memory_report"] = memory_report_json(report);
    print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print("{}", prediction_text(scenario, prediction));
    if (options.memory_report) print("{}", memory_report_text(report));
  }
}

}  // namespace

void add_predict_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("predict", "step time and peak memory of one training step, with reasons");
  options->scenario.add_to(*command);
  command->add_option("--engine", options->engine, "roofline (datasheet ceilings only), analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  auto* every = command->add_flag("--on-every-gpu", options->every_gpu, "one line for each description in hw/");
  command
      ->add_option("--op-trace", options->op_trace,
                   "write the run's operations and allocations to this file (JSON Lines; .gz compresses)")
      ->excludes(every);
  command
      ->add_option("--timeline", options->timeline,
                   "write the step to this file as a Chrome trace (for Perfetto and HolisticTraceAnalysis; .gz "
                   "compresses)")
      ->excludes(every);
  command->add_flag("--memory-report", options->memory_report, "who holds the memory, over the step and at its peak")
      ->excludes(every);
  command
      ->add_option("--memory-snapshot", options->memory_snapshot,
                   "write the run's allocations to this file as PyTorch does (for pytorch.org/memory_viz)")
      ->excludes(every);
  command->add_option("--html", options->html, "write one self-contained page with pictures to this file")
      ->excludes(every);
  command->add_flag("--no-advice", options->no_advice, "do not try changes");
  command->add_flag("--sensitivity", options->sensitivity, "what 10 % more of each resource would give");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
