// ridgeline collectives: one prediction a line of a file of collectives; mistakes are reported on their own line.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "sim/app/commands.h"
#include "sim/config/override.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/input/lines.h"
#include "sim/network/load_cluster.h"
#include "sim/output/standard_error.h"
#include "sim/output/standard_output.h"
#include "sim/recognition/recognise.h"
#include "sim/report/text/collective_lines.h"
#include "sim/scenario/named_kind.h"
#include "sim/units/user_error.h"
#include "sim/workload/host_class.h"

namespace ridgeline::app {
namespace {

struct CollectivesOptions {
  std::string cluster, file = "-", format, host = "default";
  std::vector<std::string> sets;
};

/// --set "cluster.nodes=2", or without "cluster.".
std::vector<config::Override> cluster_overrides(const std::vector<std::string>& sets) {
  constexpr std::string_view kPrefix = "cluster.";
  std::vector<config::Override> overrides;
  for (const std::string& text : sets) {
    config::Override change = config::parse_override(text);
    change.origin = "--set " + text;
    if (change.key.starts_with(kPrefix)) change.key = change.key.substr(kPrefix.size());
    overrides.push_back(std::move(change));
  }
  return overrides;
}

void run(const CollectivesOptions& options, Outcome& outcome) {
  if (key_of_name(options.cluster) == "hardware")
    throw UserError(
        fmt::format("{} is a GPU; several of one kind are a cluster, such as --cluster hgx-h100 (ridgeline "
                    "hardware --clusters lists them)",
                    options.cluster));
  const Cluster cluster = load_cluster(options.cluster, cluster_overrides(options.sets));
  const bool table = options.format.empty() ? ::isatty(STDOUT_FILENO) == 1 : options.format == "text";
  const Host host = load_host(options.host, host_class_names());
  const Seconds host_call = host.class_costs[static_cast<std::size_t>(HostClass::collective)];
  const CollectiveLines lines(cluster, load_gpu(cluster.gpu_name), host_call, table);
  const bool piped = options.file == "-";
  const std::string name = piped ? "standard input" : options.file;
  std::size_t number = 0, cases = 0;
  const auto predict = [&](std::string_view line) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    if (cases++ == 0) print("{}", lines.heading());
    const CollectiveLines::Answer answer = lines.answer(line);
    if (!answer.text.empty()) print("{}\n", answer.text);
    if (answer.mistake.empty()) return;
    outcome.exit_code = 2;
    if (table) print_message("ridgeline: {}:{}: {}\n", name, number, answer.mistake);
  };
  if (piped) for_each_line(std::cin, name, predict);
  else recognition::check_file(name, "collectives"), for_each_line(name, predict);
  if (cases == 0)
    throw UserError(fmt::format("{}: no collectives in it, expected one JSON object a line (docs/clusters.md)", name));
}

}  // namespace

void add_collectives_command(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<CollectivesOptions>();
  auto* command = program.add_subcommand("collectives", "time of all_reduce, all_gather ... on a cluster (JSON Lines)");
  command->add_option("--cluster", options->cluster, "a name of hw/clusters/ or a path")->required();
  command->add_option("--set", options->sets, "KEY=VALUE: any key of the cluster, e.g. nodes=2")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--host", options->host,
                      "whose part of a call pytorch_call_us has: a name of hw/hosts/ or a path");
  command->add_option("--format", options->format, "text: a table; json: lines. On a terminal text, else json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("file", options->file, "JSON Lines file (plain or gzip), or - for standard input");
  command->callback([options, &outcome] { run(*options, outcome); });
}

}  // namespace ridgeline::app
