#include "sim/app/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/answer/full_prediction.h"
#include "sim/app/output_files.h"
#include "sim/app/page_output.h"
#include "sim/app/print_report.h"
#include "sim/app/version.h"
#include "sim/app/waiting.h"
#include "sim/config/config_error.h"
#include "sim/hardware/load_gpu.h"
#include "sim/output/standard_error.h"
#include "sim/output/standard_output.h"
#include "sim/output/write_file.h"
#include "sim/report/answer_report.h"
#include "sim/report/json/prediction_json.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/prediction_text.h"
#include "sim/report/text/workload_words.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

constexpr int kDoesNotFit = 3;

void refuse_clusters(const ScenarioOptions& asked) {
  bool cluster = false;
  try {
    cluster = load_scenario(asked.source()).cluster.has_value();
  } catch (const config::ConfigError&) {  // hardware left out, which each of the descriptions stands for
  }
  if (cluster)
    throw UserError("--on-every-gpu: goes with hardware, and the scenario has a cluster; sweep over cluster.gpu");
}

/// Network and question; where nobody named a precision, that of the GPUs which hold the network.
std::string title_of_table(const std::vector<Scenario>& scenarios, const std::vector<Prediction>& predictions) {
  std::size_t at = 0;
  while (at + 1 < predictions.size() && !predictions[at].memory.fits) ++at;
  const Scenario& shown = scenarios[predictions[at].memory.fits ? at : 0];
  const bool mixed = std::any_of(scenarios.begin(), scenarios.end(), [&](const Scenario& other) {
    return other.training.precision != shown.training.precision;
  });
  std::string title;
  write_wrapped(title, "",
                shown.recorded ? shown.title
                               : fmt::format("{} on every GPU{}{}", shown.model.name, assumed_words(shown),
                                             mixed ? "; fp32 on GPUs without bf16" : ""));
  write_wrapped(title, "", fmt::format("{} · {}", workload_line(shown), shown.software.name));
  return title;
}

int run_on_every_gpu(const ScenarioOptions& asked, const AnswerOptions& options) {
  if (options.sensitivity && options.format != "json")
    throw UserError("--sensitivity: the table of --on-every-gpu has no room for it; add --format json");
  refuse_clusters(asked);
  std::optional<Waiting> waiting(std::in_place, "predicting on every GPU");
  std::vector<Prediction> predictions;
  auto all = nlohmann::ordered_json::array();
  std::vector<std::string> cannot_run;
  std::vector<double> prices;
  std::vector<Scenario> scenarios;
  Session session;
  for (const std::string& name : hardware_names()) {
    ScenarioSource source = asked.source();
    source.overrides.insert(source.overrides.begin(), {"hardware", name, ""});
    const StepRun run(session, load_scenario(source, session.descriptions()), options.engine);
    try {
      predictions.push_back(full_prediction(run, {.advice = false, .sensitivity = options.sensitivity}));
    } catch (const UserError& error) {  // attention that this GPU lacks
      cannot_run.push_back(fmt::format("{}: {}", name, error.what()));
      continue;
    }
    if (options.format == "json") all.push_back(answer_json(run, predictions.back(), {}, tool_and_revision()));
    prices.push_back(run.scenario().gpu.price_per_hour);
    scenarios.push_back(run.scenario());
  }
  waiting.reset();
  if (predictions.empty()) throw UserError(cannot_run.front());
  if (options.format == "json") {
    print("{}\n", all.dump(2));
    for (const std::string& line : cannot_run) print_message("{}\n", line);
  } else {
    print_report(prediction_table(title_of_table(scenarios, predictions), predictions, prices));
    if (!cannot_run.empty()) print("\n");
    for (const std::string& line : cannot_run) print("{}\n", line);
  }
  const bool all_fit = cannot_run.empty() && std::all_of(predictions.begin(), predictions.end(),
                                                         [](const Prediction& p) { return p.memory.fits; });
  return options.check && !all_fit ? kDoesNotFit : 0;
}

Detail detail_of(const AnswerOptions& options) {
  if (options.quiet) return Detail::line;
  return options.summary && !options.explain ? Detail::summary : Detail::everything;
}

}  // namespace

void AnswerOptions::add_to(CLI::App& command) {
  command.add_option("--engine", engine, "roofline (datasheet ceilings only), analytic or simulate");
  command.add_option("--format", format, "text or json")->check(CLI::IsMember({"text", "json"}));
  auto* every = command.add_flag("--on-every-gpu", every_gpu, "one line for each description in hw/");
  add_output_option(command, "--op-trace", op_trace,
                    "write the run's operations and allocations to this file (JSON Lines; .gz compresses)")
      ->excludes(every);
  add_output_option(command, "--timeline", timeline,
                    "write the step to this file as a Chrome trace (for Perfetto and HolisticTraceAnalysis; .gz "
                    "compresses)")
      ->excludes(every);
  command.add_flag("--timeline-compact", timeline_compact,
                   "write equal micro-batches of --timeline once, with a mark for how often they run");
  command.add_flag("--memory-report", memory_report, "who holds the memory, over the step and at its peak")
      ->excludes(every);
  command
      .add_option("--modules", modules,
                  "time and memory by part of the network, down to so many levels (1: embeddings, layers, head)")
      ->check(CLI::Range(1, 64))
      ->excludes(every);
  add_output_option(command, "--memory-snapshot", memory_snapshot,
                    "write the run's allocations to this file as PyTorch does (for pytorch.org/memory_viz)")
      ->excludes(every);
  add_output_option(command, "--html", html, "write one self-contained page with pictures to this file")
      ->excludes(every);
  command.add_flag("--no-advice", no_advice, "do not try changes");
  command.add_flag("--check", check, "exit code 3 where the step does not fit its device");
  command.add_flag("--sensitivity", sensitivity, "what 10 % more of each resource would give");
  command.add_flag("--notes", all_notes, "every note instead of a line for each kind");
}

void AnswerOptions::add_detail_to(CLI::App& command) {
  summary = true;
  auto* more = command.add_flag("--explain", explain,
                                "all that is known: phases, kernels, host, energy, every change that would help");
  command.add_option("--tokens", run_tokens, "of a whole run (15e9): its steps, time, energy and price")
      ->check([](const std::string& given) {
        double tokens = 0.0;
        return CLI::detail::lexical_cast(given, tokens) && tokens > 0.0
                   ? std::string()
                   : fmt::format("{}: expected a number above 0, such as 15e9", given);
      });
  command.add_flag("--quiet", quiet, "one line: fits or not, time, memory")->excludes(more);
}

int answer_of_recording(const ScenarioOptions& asked, const AnswerOptions& options) {
  const ScenarioSource source = asked.source();
  if (!source.recording && load_scenario_tree(*source.file).find("trace") == nullptr)
    throw UserError(fmt::format("{}: names no recording (trace: FILE); ridgeline predict answers it", *source.file));
  return answer(asked, options);
}

int answer(const ScenarioOptions& asked, const AnswerOptions& options) {
  if (options.every_gpu) return run_on_every_gpu(asked, options);
  std::optional<Waiting> waiting(std::in_place, "predicting");
  Session session;
  StepRun run(session, load_scenario(asked.source(), session.descriptions()), options.engine);
  // A page and a timeline show memory where it is known.
  if (options.memory_report || options.modules > 0 || !options.memory_snapshot.empty() || !options.html.empty() ||
      !options.timeline.empty())
    run.expect_memory_run();
  Prediction prediction;  // outlives who reads it below
  // Files are made beside the report, and all is made before anything is written.
  std::unique_ptr<FileWriter> timeline;
  if (!options.timeline.empty()) {
    refuse_input(options.timeline);
    timeline = std::make_unique<FileWriter>(options.timeline);
  }
  std::vector<std::pair<std::string, std::future<std::string>>> files;
  const auto make = [&files](const std::string& path, auto text) {
    if (!path.empty()) files.emplace_back(path, std::async(std::launch::async, with_same_budget(std::move(text))));
  };
  // The timeline is the largest by far: it goes to its unfinished file as it is made.
  make(options.timeline, [&] {
    TextBuffer out([&](std::string_view piece) { timeline->add(piece); });
    write_timeline(run, options.timeline_compact ? Unrolled::no : Unrolled::yes, out);
    out.flush();
    return std::string();
  });
  make(options.op_trace, [&] { return answer_op_trace(run); });
  make(options.memory_snapshot, [&] { return answer_memory_snapshot(run); });
  const Detail detail = detail_of(options);
  const bool all = options.format == "json" || detail == Detail::everything || !options.html.empty();
  // A step that does not run is shown with ways that do, each predicted, not with what would help it if it had the
  // memory.
  const bool climbs = !options.no_advice && options.format != "json" && detail != Detail::line && !run.memory().runs;
  const std::vector<LadderRow> ladder = climbs ? ladder_of(run) : std::vector<LadderRow>{};
  prediction = full_prediction(run, {.advice = !options.no_advice && (all || (detail == Detail::summary && !climbs)),
                                     .would_fit = all,
                                     .sensitivity = options.sensitivity,
                                     .memory_of_modules = options.modules > 0});
  make(options.html, [&] {
    const std::string title = fmt::format("{} on {}", run.scenario().title, run.scenario().gpu.title);
    return page_text(title, nlohmann::ordered_json::array({answer_page_part(run, prediction, title)}), {});
  });
  const AnswerParts more{.memory_report = options.memory_report,
                         .modules = options.modules,
                         .detail = detail,
                         .run_tokens = options.run_tokens,
                         .ladder = climbs ? &ladder : nullptr};
  const std::string shown = options.format == "json"
                                ? answer_json(run, prediction, more, tool_and_revision())
                                          .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                                      "\n"
                                : answer_text(run, prediction, options.all_notes ? Notes::all : Notes::folded, more);
  std::vector<std::string> texts;
  for (auto& [path, text] : files) texts.push_back(text.get());
  waiting.reset();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].first;
    auto bytes = static_cast<double>(texts[i].size());
    if (timeline && path == options.timeline) {
      refuse_input(path);
      bytes = static_cast<double>(std::exchange(timeline, nullptr)->finish());
    } else {
      write_answer(path, texts[i]);
    }
    print_message("wrote {} ({})\n", path, to_string(Bytes{bytes}));
  }
  if (options.format == "json") print_text(shown);
  else print_report(shown);
  return options.check && !prediction.memory.fits ? kDoesNotFit : 0;
}

}  // namespace ridgeline::app
