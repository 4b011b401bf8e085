// ridgeline fits: the largest batch on a GPU for each way to train a network and each precision.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/app/waiting.h"
#include "sim/config/override.h"
#include "sim/report/fits_report.h"
#include "sim/scenario/descriptions.h"
#include "sim/study/fits_table.h"
#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"

namespace ridgeline::app {
namespace {

struct FitsOptions {
  std::string model, gpu, engine = "analytic";
  std::int64_t length = 0, rank = 16;
  std::vector<std::string> sets;
};

/// Where nobody says how long: 1024 tokens, or as many as the network has positions for.
std::int64_t usual_length(const std::string& name) {
  constexpr std::int64_t kUsual = 1024;
  const ModelDescription model = load_model(name);
  if (const std::int64_t only = only_length(model); only > 0) return only;
  return model.has_position_table() ? std::min(kUsual, model.max_positions) : kUsual;
}

void run(const FitsOptions& options) {
  const std::int64_t length = options.length > 0 ? options.length : usual_length(options.model);
  ScenarioSource source;
  source.overrides = {{"model", options.model, options.model},
                      {"hardware", options.gpu, options.gpu},
                      {"training.micro_batch", "1", "fits"},
                      {"training.sequence_length", std::to_string(length), fmt::format("--seq {}", length)}};
  for (const std::string& set : options.sets) source.overrides.push_back(config::parse_override(set));
  Session session;
  const Scenario scenario = load_scenario(source, session.descriptions());
  std::vector<FitsRow> rows;
  {
    const Waiting waiting("searching the largest batches");
    rows = fits_table(session, *scenario.asked, options.rank, options.engine);
  }
  print_report(fits_text(scenario, rows));
}

}  // namespace

void add_fits_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<FitsOptions>();
  auto* command = program.add_subcommand(
      "fits", "a table: the largest batch of a network on a GPU, by precision and by LoRA, QLoRA, 8-bit Adam, offload");
  command->add_option("model", options->model, "a name of models/, a path, a HuggingFace config.json")->required();
  command->add_option("gpu", options->gpu, "a name of hw/ or a path")->required();
  command->add_option("--seq", options->length, "tokens in a sequence (default: 1024, or what the network has)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option("--rank", options->rank, "of LoRA's and QLoRA's adapters")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}));
  command->add_option("--engine", options->engine, "of the step time: roofline, analytic or simulate");
  command->add_option("--set", options->sets, "KEY=VALUE: any key of scenario, hardware, model, host, software")
      ->allow_extra_args(false)
      ->take_all();
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
