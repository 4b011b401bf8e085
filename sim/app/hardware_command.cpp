// ridgeline hardware: the shipped GPUs and clusters, or one with the source of every number.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/hardware_overrides.h"
#include "sim/app/waiting.h"
#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/other_simulators/translate.h"
#include "sim/output/standard_output.h"
#include "sim/recognition/recognise.h"
#include "sim/report/text/collective_lines.h"
#include "sim/report/text/hardware_text.h"
#include "sim/scenario/named_kind.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct HardwareOptions {
  std::string name, format = "text", system, as;
  std::vector<std::string> sets;
  bool datasheet = false, keys = false, names = false, clusters = false;
};

/// Prints the description that another simulator's file becomes; false for other files and names.
bool print_translation(const HardwareOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(options.name, ignored)) return false;
  const recognition::FileKind* kind = recognition::recognise(options.name).kind;
  if (kind == nullptr || !other_simulators::is_other_simulators(kind->name)) return false;
  const auto result = other_simulators::translated(
      other_simulators::machine_facts(options.name, kind->name, options.system), options.name);
  const bool cluster = options.as.empty() ? result.chip.empty() : options.as == "cluster";
  const std::string& text = cluster ? result.cluster : result.chip;
  if (text.empty()) throw UserError(fmt::format("{}: says nothing of a {}", options.name, cluster ? "cluster" : "GPU"));
  print("{}", text);
  const std::string_view other = cluster ? result.chip : result.cluster;
  if (!other.empty() && options.as.empty())
    print("# --as {} prints the {} of the same file.\n", cluster ? "gpu" : "cluster", cluster ? "GPU" : "cluster");
  return true;
}

void run(const HardwareOptions& options) {
  if (options.keys) {
    print("{}", hardware_keys_markdown());
    return;
  }
  if (options.names) {
    for (const std::string& name : hardware_names()) print("{}\n", name);
    return;
  }
  if (options.clusters) {
    for (const std::string& name : cluster_names()) print("{}\n", name);
    return;
  }
  const Numbers numbers = options.datasheet ? Numbers::datasheet : Numbers::measured;
  if (options.name.empty()) {
    std::optional<Waiting> waiting(std::in_place, "reading descriptions");
    std::vector<Gpu> gpus;
    for (const std::string& name : hardware_names()) gpus.push_back(load_gpu(name, {}, numbers));
    waiting.reset();
    if (options.format == "json") {
      auto names = nlohmann::ordered_json::array();
      for (const Gpu& gpu : gpus) names.push_back({{"name", gpu.name}, {"title", gpu.title}});
      print("{}\n", names.dump(2));
    } else {
      print("{}\n{}", hardware_list(gpus), cluster_list());
    }
    return;
  }
  if (key_of_name(options.name) == "model")
    throw UserError(fmt::format("{} is a network: ridgeline models {}", options.name, options.name));
  if (print_translation(options)) return;
  const auto overrides = hardware_overrides(options.sets);
  const HardwareSheet sheet = describes_cluster(options.name) ? load_cluster_sheet(options.name, overrides)
                                                              : load_hardware_sheet(options.name, overrides, numbers);
  if (options.format == "json") print("{}\n", hardware_json(sheet).dump(2));
  else print("{}", hardware_text(sheet));
}

}  // namespace

void add_hardware_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<HardwareOptions>();
  auto* command =
      program.add_subcommand("hardware", "list GPUs and clusters, or show one with the source of each number");
  command->add_option("name", options->name,
                      "a name of hw/ or of hw/clusters/, or a path; of a file of Calculon, LLMCompass, SimuMax, GenZ, "
                      "LLMServingSim, ASTRA-sim or GPGPU-Sim the description that it becomes");
  command->add_option("--as", options->as, "of another simulator's file: gpu or cluster")
      ->check(CLI::IsMember({"gpu", "cluster"}));
  command->add_option("--system", options->system, "of a file of GenZ with several");
  command->add_option("--set", options->sets, "KEY=VALUE: any key of the description")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--names", options->names, "the names alone, a line each");
  command->add_flag("--clusters", options->clusters, "the names of clusters alone, a line each");
  command->add_flag("--datasheet", options->datasheet, "ignore the measured section");
  command->add_flag("--keys", options->keys,
                    "every key of a description: meaning, allowed values, the laws that read it");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
