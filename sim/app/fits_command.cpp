// ridgeline fits: the largest batch on a GPU for each way to train a network and each precision.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/command_examples.h"
#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/app/waiting.h"
#include "sim/config/override.h"
#include "sim/output/standard_output.h"
#include "sim/report/fits_report.h"
#include "sim/scenario/assumed_sizes.h"
#include "sim/scenario/descriptions.h"
#include "sim/scenario/named_kind.h"
#include "sim/study/fits_table.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"

namespace ridgeline::app {
namespace {

struct FitsOptions {
  std::string model, gpu, engine = "analytic", format = "text";
  std::int64_t length = 0, rank = 16;
  std::vector<std::string> sets;
};

void run(const FitsOptions& options) {
  if (key_of_name(options.model) == "hardware" && key_of_name(options.gpu) == "model")
    throw UserError(fmt::format("the network comes first: ridgeline fits {} {}", options.gpu, options.model));
  for (const auto& [key, name] : {std::pair("model", &options.model), std::pair("hardware", &options.gpu)})
    if (const std::string other = other_kind(key, *name); !other.empty())
      throw UserError(fmt::format("{}; {}", other, command_example("fits")));
  const std::int64_t length = options.length > 0 ? options.length : usual_length(load_model(options.model));
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
  if (options.format == "json")
    print("{}\n", fits_json(scenario, rows).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(fits_text(scenario, rows));
}

}  // namespace

void add_fits_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<FitsOptions>();
  auto* command = program.add_subcommand(
      "fits", "a table: the largest batch of a network on a GPU, by precision and by LoRA, QLoRA, 8-bit Adam, offload");
  command->add_option("model,--model", options->model, "a name of models/, a path, a HuggingFace config.json")
      ->required();
  command->add_option("gpu,--hardware", options->gpu, "a name of hw/ or a path")->required();
  command->add_option("--seq", options->length, "tokens in a sequence (default: 1024, or what the network has)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command->add_option("--rank", options->rank, "of LoRA's and QLoRA's adapters")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}));
  command->add_option("--engine", options->engine, "of the step time: roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_option("--set", options->sets, "KEY=VALUE: any key of scenario, hardware, model, host, software")
      ->allow_extra_args(false)
      ->take_all();
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
