// ridgeline fit: the largest micro-batch of a scenario that its device holds.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/app/scenario_options.h"
#include "sim/output/standard_output.h"
#include "sim/report/fit_report.h"

namespace ridgeline::app {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::string engine = "analytic", format = "text";
};

void run(const Options& options) {
  const Scenario scenario = load_scenario(options.scenario.source());
  const auto begin = std::chrono::steady_clock::now();
  const FitResult result = fit_batch(scenario, options.engine);
  const Seconds time{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  if (options.format == "json")
    print("{}\n", fit_json(result, time).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print("{}", fit_text(result, time));
}

}  // namespace

void add_fit_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("fit", "the largest micro-batch that fits, and what limits it");
  options->scenario.add_to(*command);
  command->add_option("--engine", options->engine, "of the step time: roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
