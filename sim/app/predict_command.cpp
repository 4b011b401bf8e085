// ridgeline predict: a scenario file, flags, or both, to step time, memory and reasons.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/hardware/load_gpu.h"
#include "sim/report/prediction_json.h"
#include "sim/report/prediction_text.h"
#include "sim/scenario/prediction.h"

namespace ridgeline::app {
namespace {

/// A flag that is short for a key of the scenario.
struct Shorthand {
  const char* flag;
  const char* key;
  const char* help;
};
constexpr Shorthand kShorthands[] = {
    {"--model", "model", "model: a name of models/, a path, a HuggingFace config.json"},
    {"--hardware", "hardware", "GPU: a name of hw/ or a path"},
    {"--batch", "training.micro_batch", "sequences in one forward pass"},
    {"--seq", "training.sequence_length", "tokens in a sequence"},
    {"--accumulation", "training.gradient_accumulation", "micro-batches in a step"},
    {"--precision", "training.precision", "fp32, tf32, amp-fp16, amp-bf16, bf16"},
    {"--attention", "training.attention", "eager, sdpa, flash, cudnn, efficient, math"},
    {"--optimizer", "training.optimizer.name", "adamw, adam, sgd, sgd-momentum, adafactor, adamw-8bit, adamw-kahan"},
    {"--implementation", "training.optimizer.implementation", "of the optimizer: for-loop, foreach, fused"},
    {"--clipping", "training.gradient_clipping", "largest gradient norm, or none"},
    {"--checkpointing", "training.activation_checkpointing", "none, block"},
    {"--host", "host", "host: a name of hw/hosts/"},
    {"--software", "software", "software stack: a name of hw/software/"},
};

struct Options {
  std::string file, engine = "analytic", format = "text";
  std::vector<std::string> sets;
  std::string shorthands[std::size(kShorthands)];
  bool every_gpu = false, datasheet = false, no_advice = false;
};

ScenarioSource source_of(const Options& options) {
  ScenarioSource source;
  if (!options.file.empty()) source.file = options.file;
  source.numbers = options.datasheet ? Numbers::datasheet : Numbers::measured;
  for (std::size_t i = 0; i < std::size(kShorthands); ++i)
    if (!options.shorthands[i].empty())
      source.overrides.push_back({kShorthands[i].key, options.shorthands[i],
                                  fmt::format("{} {}", kShorthands[i].flag, options.shorthands[i])});
  for (const std::string& text : options.sets) source.overrides.push_back(config::parse_override(text));
  return source;
}

void run_on_every_gpu(const Options& options) {
  std::vector<Prediction> predictions;
  Scenario shown;
  for (const std::string& name : hardware_names()) {
    ScenarioSource source = source_of(options);
    source.overrides.insert(source.overrides.begin(), {"hardware", name, ""});
    Scenario scenario = load_scenario(source);
    predictions.push_back(predict(scenario, options.engine));
    shown = std::move(scenario);
  }
  if (options.format == "json") {
    auto all = nlohmann::ordered_json::array();
    for (const Prediction& p : predictions) all.push_back(prediction_json(p));
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print("{}", prediction_table(shown, predictions));
  }
}

void run(const Options& options) {
  if (options.every_gpu) return run_on_every_gpu(options);
  const Scenario scenario = load_scenario(source_of(options));
  Prediction prediction = predict(scenario, options.engine);
  if (!options.no_advice) prediction.advice = find_advice(scenario, options.engine, prediction);
  if (options.format == "json")
    fmt::print("{}\n",
               prediction_json(prediction).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else fmt::print("{}", prediction_text(scenario, prediction));
}

}  // namespace

void add_predict_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("predict", "step time and peak memory of one training step, with reasons");
  command->add_option("scenario", options->file, "scenario file (YAML); flags alone will do");
  for (std::size_t i = 0; i < std::size(kShorthands); ++i)
    command->add_option(kShorthands[i].flag, options->shorthands[i], kShorthands[i].help);
  command->add_option("--set", options->sets, "KEY=VALUE: any key of scenario, hardware, model, host, software")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--engine", options->engine, "roofline (datasheet ceilings only) or analytic");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--on-every-gpu", options->every_gpu, "one line for each description in hw/");
  command->add_flag("--datasheet", options->datasheet, "ignore the measured section of the hardware file");
  command->add_flag("--no-advice", options->no_advice, "do not try changes");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
