// ridgeline fit: the largest micro-batch of a scenario that its device holds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/app/scenario_options.h"
#include "sim/app/waiting.h"
#include "sim/output/standard_output.h"
#include "sim/report/fit_report.h"

namespace ridgeline::app {
namespace {

struct FitOptions {
  ScenarioOptions scenario;
  std::string engine = "analytic", format = "text";
};

/// The search finds the batch: one that nobody names is 1.
ScenarioSource with_a_batch(ScenarioSource source) {
  const auto says = [](const config::Override& o) {
    return o.key == "training.micro_batch" || o.key.starts_with("inference");
  };
  if (std::any_of(source.overrides.begin(), source.overrides.end(), says)) return source;
  if (source.file) {
    const config::Node tree = load_scenario_tree(*source.file);
    if (tree.kind != config::Node::Kind::mapping) return source;
    const config::Node* training = tree.find("training");
    if (tree.find("inference") || tree.find("trace") || (training && training->find("micro_batch"))) return source;
  }
  source.overrides.insert(source.overrides.begin(), {"training.micro_batch", "1", "fit"});
  return source;
}

void run(const FitOptions& options) {
  const Scenario scenario = load_scenario(with_a_batch(options.scenario.source()));
  Session session;
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Waiting> waiting(std::in_place, "searching the largest batch");
  const FitResult result = fit_batch(session, scenario, options.engine);
  waiting.reset();
  const Seconds time{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  if (options.format == "json")
    print("{}\n", fit_json(result, time).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(fit_text(result, time));
}

}  // namespace

void add_fit_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<FitOptions>();
  auto* command = program.add_subcommand("fit", "the largest micro-batch that fits, and what limits it");
  options->scenario.add_to(*command);
  command->add_option("--engine", options->engine, "of the step time: roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
