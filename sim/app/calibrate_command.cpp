// ridgeline calibrate: measured microkernels into the measured section of a hardware file.
#include <fmt/format.h>

#include <filesystem>

#include "sim/app/commands.h"
#include "sim/app/output_files.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/hardware_file.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/measured_section.h"
#include "sim/input/text_source.h"
#include "sim/output/standard_output.h"
#include "sim/report/text/calibration_text.h"
#include "sim/study/calibration/calibration.h"
#include "sim/study/calibration/calibration_effect.h"

namespace ridgeline::app {
namespace {

struct CalibrateOptions {
  std::string probe, hardware, output;
  bool dry_run = false;
};

/// No description is written over: the new one stands in the current folder.
std::string output_of(const CalibrateOptions& options, const std::string& file) {
  if (!options.output.empty()) return options.output;
  return std::filesystem::path(file).stem().string() + "-calibrated.yaml";
}

void run(const CalibrateOptions& options) {
  const ProbeResult probe = load_probe_result(options.probe);
  const std::string file = hardware_file(options.hardware), output = output_of(options, file);
  const Gpu datasheet = load_gpu(file, {}, Numbers::datasheet), before = load_gpu(file);
  const HardwareSheet sheet = load_hardware_sheet(file);
  std::vector<std::string> order;
  for (const SheetRow& row : sheet.values) order.push_back(row.key);
  const Calibration calibration = calibrate(probe, datasheet, measured_rows(config::load_yaml(file)), order);
  const std::string text = with_measured_section(read_text(file), calibration.rows, calibration.conditions);
  const Gpu after = gpu_from_yaml(text, output);  // read as it will be, before anything is written
  const std::string shown =
      calibration_text(sheet, hardware_sheet_from_yaml(text, output), calibration, calibration_effect(before, after));
  if (!options.dry_run) write_answer(output, text);
  print("{}", shown);
  if (options.dry_run) {
    print("\nnothing written\n");
    return;
  }
  print("\n{}: {} numbers from the microkernels, {} kept\n", output, calibration.from_probe.size(),
        calibration.rows.size() - calibration.from_probe.size());
}

}  // namespace

void add_calibrate_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<CalibrateOptions>();
  auto* command = program.add_subcommand(
      "calibrate", "turn a result of ./dev probe into the measured section of a hardware file; show what moves");
  command->add_option("probe", options->probe, "JSON file of ./dev probe")->required();
  command->add_option("--hardware", options->hardware, "GPU: a name of hw/ or a path")->required();
  add_output_option(*command, "--output", options->output, "file to write (default: NAME-calibrated.yaml here)");
  command->add_flag("--dry-run", options->dry_run, "show what would change, write nothing");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
