// ridgeline hardware: the shipped GPUs and clusters, or one with the source of every number.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/app/hardware_overrides.h"
#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/output/standard_output.h"
#include "sim/report/text/collective_lines.h"
#include "sim/report/text/hardware_text.h"

namespace ridgeline::app {
namespace {

struct HardwareOptions {
  std::string name, format = "text";
  std::vector<std::string> sets;
  bool datasheet = false, keys = false, names = false, clusters = false;
};

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
    std::vector<Gpu> gpus;
    for (const std::string& name : hardware_names()) gpus.push_back(load_gpu(name, {}, numbers));
    if (options.format == "json") {
      auto names = nlohmann::ordered_json::array();
      for (const Gpu& gpu : gpus) names.push_back({{"name", gpu.name}, {"title", gpu.title}});
      print("{}\n", names.dump(2));
    } else {
      print("{}\n{}", hardware_list(gpus), cluster_list());
    }
    return;
  }
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
  command->add_option("name", options->name, "a name of hw/ or of hw/clusters/, or a path");
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
