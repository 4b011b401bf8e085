// ridgeline kernels: one prediction a line of a kernel-case file; mistakes are reported on their own line.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/report/kernel_json.h"
#include "sim/report/kernel_timeline.h"
#include "sim/scenario/residual_ranges.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/kernel_sensitivity.h"
#include "sim/trace/text_source.h"

namespace ridgeline::app {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string hardware, engine = "analytic", software = "pytorch-2.11", file = "-", timeline;
  bool datasheet = false, sensitivity = false;
};

/// Predicts one line of text; answers false when the line was a mistake.
bool predict_line(const std::string& text, const Gpu& gpu, const Software& software, const TimingEngine& engine,
                  const ResidualRanges& ranges, const Options& options, std::string& out) {
  ordered_json line;
  try {
    line = ordered_json::parse(text);
    const KernelCase kernel = kernel_case_from(nlohmann::json(line));
    const KernelPrediction prediction = predict_kernel(kernel, gpu, software, engine);
    std::optional<Sensitivity> sensitivity;
    if (!options.timeline.empty()) trace::write_text(options.timeline, kernel_timeline(prediction));
    if (options.sensitivity) sensitivity = kernel_sensitivity(kernel, gpu, software, engine.name());
    line["predicted"] = kernel_json(prediction, ranges.of_kernel(kernel.op, prediction.time, gpu, engine.name()),
                                    sensitivity ? &*sensitivity : nullptr);
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
  const Gpu gpu = load_gpu(options.hardware, {},
                           options.datasheet ? Numbers::datasheet : Numbers::measured);
  const Software software = load_software(options.software);
  const auto engine = make_engine(options.engine, gpu);
  const ResidualRanges ranges = ResidualRanges::load();
  std::ifstream file;
  if (options.file != "-") {
    file.open(options.file);
    if (!file) throw UserError(fmt::format("{}: cannot be opened for reading", options.file));
  }
  std::istream& in = options.file == "-" ? std::cin : file;
  std::string text, answer;
  while (std::getline(in, text)) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!predict_line(text, gpu, software, *engine, ranges, options, answer)) outcome.exit_code = 2;
    fmt::print("{}\n", answer);
  }
}

}  // namespace

void add_kernels_command(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("kernels", "one prediction a line of a kernel-case file (JSON Lines)");
  command->add_option("--hardware", options->hardware, "GPU: a name of hw/ or a path")->required();
  command->add_option("--engine", options->engine, "roofline, analytic or simulate");
  command->add_option(
      "--timeline", options->timeline,
      "with --engine simulate: writes occupancy, L2 hit rate and DRAM bandwidth over the (last) case as a "
      "Chrome trace; .gz compresses");
  command->add_option("--software", options->software, "software stack of hw/software/");
  command->add_flag("--datasheet", options->datasheet, "ignore the measured section of the hardware file");
  command->add_flag("--sensitivity", options->sensitivity, "what 10 % more of each resource would give each case");
  command->add_option("file", options->file, "JSON Lines file, or - for standard input");
  command->callback([options, &outcome] { run(*options, outcome); });
}

}  // namespace ridgeline::app
