// ridgeline kernels: one prediction a line of a kernel-case file; mistakes are reported on their own line.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/command_examples.h"
#include "sim/app/commands.h"
#include "sim/app/hardware_overrides.h"
#include "sim/app/output_files.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/input/lines.h"
#include "sim/output/standard_output.h"
#include "sim/recognition/recognise.h"
#include "sim/report/kernel_lines.h"
#include "sim/report/text/counted_kernels.h"
#include "sim/trace/nsight/ncu_counters.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct KernelsOptions {
  std::string hardware, engine = "analytic", software = "pytorch-2.11", file = "-", timeline, format = "json", ncu;
  std::vector<std::string> sets;
  bool datasheet = false, sensitivity = false;
};

/// The file is one of Nsight Compute itself: what it counted, without a prediction.
void print_counted(const KernelsOptions& options) {
  const CountedKernels counted(trace::read_ncu(options.file));
  if (options.format == "text") return print("{}", counted.table(options.file));
  for (const std::string& line : counted.json_lines()) print("{}\n", line);
}

/// Answers of cases with the counters of their kernels beside them.
class JoinedLines {
 public:
  JoinedLines(const KernelsOptions& options, const KernelLines& lines, const KernelLines& as_json)
      : text_(options.format == "text"), lines_(lines), as_json_(as_json) {
    if (!options.ncu.empty()) counted_.emplace(trace::read_ncu(options.ncu));
  }
  KernelLines::Answer answer(std::string_view line) {
    KernelLines::Answer answer = lines_.answer(line);
    if (!counted_ || answer.mistake) return answer;
    auto json = nlohmann::ordered_json::parse(text_ ? as_json_.answer(line).text : answer.text);
    counted_->join(json);
    if (text_) answer.text += CountedKernels::lines_of(json);
    else answer.text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    return answer;
  }

 private:
  bool text_;
  const KernelLines &lines_, &as_json_;
  std::optional<CountedKernels> counted_;
};

void run(const KernelsOptions& options, Outcome& outcome) {
  if (options.file != "-" && trace::looks_like_ncu(options.file)) return print_counted(options);
  if (options.hardware.empty())
    throw UserError(
        fmt::format("--hardware is missing (a name of hw/ or a path); for example: {}", command_example("kernels")));
  const Numbers numbers = options.datasheet ? Numbers::datasheet : Numbers::measured;
  const Gpu gpu = load_gpu(options.hardware, hardware_overrides(options.sets), numbers);
  const Software software = load_software(options.software);
  KernelLineOptions shown{!options.sets.empty(), options.sensitivity, options.format == "text",
                          !options.timeline.empty()};
  const KernelLines lines(gpu, software, options.engine, shown);
  shown.text = false;
  const KernelLines as_json(gpu, software, options.engine, shown);
  JoinedLines joined(options, lines, as_json);
  if (!options.timeline.empty()) refuse_input(options.timeline);
  std::size_t cases = 0;
  std::string timeline;
  const auto predict = [&](std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    ++cases;
    KernelLines::Answer answer = joined.answer(line);
    if (!answer.mistake) timeline = std::move(answer.timeline);
    if (answer.mistake) outcome.exit_code = 2;
    print("{}\n", answer.text);
  };
  const bool piped = options.file == "-";
  const std::string name = piped ? "standard input" : options.file;
  if (piped) for_each_line(std::cin, name, predict);
  else recognition::check_file(name, "kernels"), for_each_line(name, predict);
  if (cases == 0)
    throw UserError(
        fmt::format("{}: no kernel cases in it, expected one JSON object a line (docs/kernel-cases.md)", name));
  if (!timeline.empty()) write_answer(options.timeline, timeline);
}

}  // namespace

void add_kernels_command(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<KernelsOptions>();
  auto* command = program.add_subcommand("kernels", "one prediction a line of a kernel-case file (JSON Lines)");
  command->add_option("--hardware", options->hardware, "GPU: a name of hw/ or a path");
  command->add_option(
      "--ncu", options->ncu,
      "counters of Nsight Compute (ncu --csv): measured beside predicted ones, in the order of the cases");
  command->add_option("--set", options->sets, "KEY=VALUE: any key of the hardware, e.g. l2.capacity=\"100 MiB\"")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--engine", options->engine, "roofline, analytic or simulate");
  add_output_option(
      *command, "--timeline", options->timeline,
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
