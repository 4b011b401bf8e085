// ridgeline kernels: one prediction a line of a kernel-case file; mistakes are reported on their own line.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/hardware_overrides.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/output/standard_output.h"
#include "sim/output/write_file.h"
#include "sim/report/kernel_json.h"
#include "sim/report/kernel_text.h"
#include "sim/report/kernel_timeline.h"
#include "sim/scenario/residual_ranges.h"
#include "sim/study/gzip_lines.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/kernel_sensitivity.h"

namespace ridgeline::app {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string hardware, engine = "analytic", software = "pytorch-2.11", file = "-", timeline, format = "json";
  std::vector<std::string> sets;
  bool datasheet = false, sensitivity = false;
};

/// What all lines are predicted with.
struct Setting {
  Gpu gpu;
  bool changed = false;  ///< by --set
  Software software;
  ResidualRanges ranges;
  bool sensitivity = false, text = false;
  std::string timeline;  ///< file for the simulation of the (last) case; may be empty
};

/// Predicts one line of text; answers false when the line was a mistake.
bool predict_line(const std::string& text, const Setting& with, const Lowering& lowering, const TimingEngine& engine,
                  std::string& out) {
  ordered_json line;
  try {
    line = ordered_json::parse(text);
    const KernelCase kernel = kernel_case_from(nlohmann::json(line));
    const KernelPrediction prediction = predict_kernel(kernel, lowering, engine);
    std::optional<Sensitivity> sensitivity;
    if (!with.timeline.empty()) write_file(with.timeline, kernel_timeline(prediction));
    if (with.sensitivity) sensitivity = kernel_sensitivity(kernel, with.gpu, with.software, engine.name());
    const Range range = with.ranges.of_kernel(kernel.op, prediction.time, with.gpu, engine.name());
    if (with.text) {
      out = kernel_text(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace), prediction, range);
      return true;
    }
    line["predicted"] = kernel_json(prediction, range, sensitivity ? &*sensitivity : nullptr);
    if (with.changed) line["predicted"]["hardware_changed"] = true;
  } catch (const ordered_json::exception& e) {
    if (!line.is_object()) line = ordered_json{{"line", text.substr(0, 200)}};
    line["error"] = fmt::format("not a JSON object: {}", e.what());
  } catch (const UserError& e) {
    if (!line.is_object()) line = ordered_json{{"line", text.substr(0, 200)}};
    line["error"] = e.what();
  } catch (const std::invalid_argument& e) {
    line["error"] = e.what();
  }
  out = line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return !line.contains("error");
}

void run(const Options& options, Outcome& outcome) {
  const Numbers numbers = options.datasheet ? Numbers::datasheet : Numbers::measured;
  const Setting with{load_gpu(options.hardware, hardware_overrides(options.sets), numbers),
                     !options.sets.empty(),
                     load_software(options.software),
                     ResidualRanges::load(),
                     options.sensitivity,
                     options.format == "text",
                     options.timeline};
  const auto engine = make_engine(options.engine, with.gpu);
  const Lowering lowering(with.gpu, with.software);
  std::string answer;
  std::size_t cases = 0;
  const auto predict = [&](std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    ++cases;
    if (!predict_line(std::string(line), with, lowering, *engine, answer)) outcome.exit_code = 2;
    print("{}\n", answer);
  };
  const bool piped = options.file == "-";
  if (piped)
    for (std::string line; std::getline(std::cin, line);) predict(line);
  else for_each_line(options.file, predict);
  if (cases == 0)
    throw UserError(fmt::format("{}: no kernel cases in it, expected one JSON object a line (docs/kernel-cases.md)",
                                piped ? "standard input" : options.file));
}

}  // namespace

void add_kernels_command(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("kernels", "one prediction a line of a kernel-case file (JSON Lines)");
  command->add_option("--hardware", options->hardware, "GPU: a name of hw/ or a path")->required();
  command->add_option("--set", options->sets, "KEY=VALUE: any key of the hardware, e.g. l2.capacity=\"100 MiB\"")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--engine", options->engine, "roofline, analytic or simulate");
  command->add_option(
      "--timeline", options->timeline,
      "with --engine simulate: writes occupancy, L2 hit rate and DRAM bandwidth over the (last) case as a "
      "Chrome trace; .gz compresses");
  command->add_option("--format", options->format, "json, or text: tables under the names of Nsight Compute")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("--software", options->software, "software stack: a name of hw/software/ or a path");
  command->add_flag("--datasheet", options->datasheet, "ignore the measured section of the hardware file");
  command->add_flag("--sensitivity", options->sensitivity, "what 10 % more of each resource would give each case");
  command->add_option("file", options->file, "JSON Lines file (plain or gzip), or - for standard input");
  command->callback([options, &outcome] { run(*options, outcome); });
}

}  // namespace ridgeline::app
