// ridgeline models: the shipped networks, or one in full.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/output/standard_output.h"
#include "sim/report/text/model_text.h"
#include "sim/scenario/named_kind.h"
#include "sim/units/user_error.h"
#include "sim/workload/load_model.h"

namespace ridgeline::app {
namespace {

struct ModelsOptions {
  std::string name, format = "text", part;
  bool names = false;
};

void run(const ModelsOptions& options) {
  std::vector<std::string> names = model_names();
  for (const std::string& name : program_names()) names.push_back(name);
  if (options.names) {
    for (const std::string& name : names) print("{}\n", name);
    return;
  }
  std::vector<ModelDescription> models;
  if (options.name.empty())
    for (const std::string& name : names) models.push_back(load_model(name));
  else if (const std::string key = key_of_name(options.name); key == "hardware" || key == "cluster")
    throw UserError(fmt::format("{} is {}: ridgeline hardware {}", options.name, kind_words(key), options.name));
  else if (options.part.empty()) models.push_back(load_model(options.name));
  else models.push_back(load_model(options.name, {{"part", options.part, "--part " + options.part}}));
  if (options.format == "json") {
    auto out = nlohmann::ordered_json::array();
    for (const ModelDescription& model : models) out.push_back(model_json(model));
    print("{}\n", options.name.empty() ? out.dump(2) : out.front().dump(2));
  } else {
    print("{}", options.name.empty() ? model_list(models) : model_text(models.front()));
  }
}

}  // namespace

void add_models_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<ModelsOptions>();
  auto* command = program.add_subcommand("models", "list the networks, or show one with its parameters");
  command->add_option("name", options->name, "a name of models/, a path, a HuggingFace config.json");
  command->add_option("--part", options->part, "of a multimodal network: text, vision or both")
      ->check(CLI::IsMember({"text", "vision", "both"}));
  command->add_flag("--names", options->names, "the names alone, a line each");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
