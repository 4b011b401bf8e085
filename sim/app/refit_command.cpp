// ridgeline refit: a hardware file fitted to operations that its owner timed.
#include <fmt/format.h>

#include <filesystem>

#include "sim/app/commands.h"
#include "sim/app/output_files.h"
#include "sim/hardware/hardware_file.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/output/standard_output.h"
#include "sim/report/text/refit_text.h"
#include "sim/study/calibration/refit_gpu.h"

namespace ridgeline::app {
namespace {

namespace fs = std::filesystem;

struct RefitOptions {
  std::string kernels, hardware, software = "pytorch-2.11", output;
  bool dry_run = false;
};

/// What the new file extends: a name of hw/, or the path from its folder.
std::string base_of(const std::string& hardware, const fs::path& output) {
  if (!names_a_path(hardware)) return hardware;
  const fs::path folder = output.parent_path().empty() ? fs::path(".") : output.parent_path();
  return "./" + fs::relative(hardware, folder).generic_string();
}

void run(const RefitOptions& options) {
  const Gpu before = load_gpu(options.hardware);
  const Software software = load_software(options.software);
  const fs::path output = options.output.empty() ? fs::path(before.name + "-refit.yaml") : fs::path(options.output);
  const auto cases = read_timed_cases(options.kernels, before, software);
  const RefitResult result = refit_gpu(cases, before, software);
  if (options.dry_run || !result.better()) {
    print("{}", refit_text(result));
    print("\nnothing written{}\n",
          result.better() ? "" : ": operations that a fit did not see are not predicted better than before");
    return;
  }
  const std::string text =
      refit_yaml(result, before, base_of(options.hardware, output), fs::path(options.kernels).filename().string());
  write_answer(output.string(), text);
  (void)load_gpu(fs::absolute(output).string());  // reads as it will be used
  print("{}", refit_text(result));
  print("\n{}: use it with --hardware {}{}\n", output.string(), output.is_absolute() ? "" : "./",
        output.generic_string());
}

}  // namespace

void add_refit_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<RefitOptions>();
  auto* command =
      program.add_subcommand("refit", "fit a GPU's description to operations timed on it (tools/measure_kernels.py)");
  command->add_option("--kernels", options->kernels, "JSON lines of docs/kernel-cases.md with us, microseconds")
      ->required();
  command->add_option("--hardware", options->hardware, "GPU to begin with: a name of hw/ or a path")->required();
  command->add_option("--software", options->software, "a name of hw/software or a path");
  add_output_option(*command, "--output", options->output, "file to write (default: NAME-refit.yaml here)");
  command->add_flag("--dry-run", options->dry_run, "show what would change, write nothing");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
