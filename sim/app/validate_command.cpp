// ridgeline validate: error tables from the committed measurements; also rewrites what is generated from them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/app/commands.h"
#include "sim/config/data_folder.h"
#include "sim/input/text_source.h"
#include "sim/output/standard_output.h"
#include "sim/output/terminal.h"
#include "sim/output/write_file.h"
#include "sim/report/text/accuracy_text.h"
#include "sim/report/text/microkernel_text.h"
#include "sim/study/microkernels/committed_results.h"
#include "sim/study/validation/published_training.h"
#include "sim/study/validation/residual_table.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct ValidateOptions {
  std::string hardware, format = "text", measurements, engine = "analytic";
  bool write_docs = false, microkernels = false, write_residuals = false, kernels_only = false;
};

constexpr std::string_view kBegin = "<!-- accuracy: begin -->\n", kEnd = "<!-- accuracy: end -->";

void replace_section(std::string& text, std::string_view begin_mark, std::string_view end_mark,
                     const std::string& section) {
  const auto begin = text.find(begin_mark), end = text.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos)
    throw UserError(fmt::format("README.md: the markers {} are missing", end_mark));
  text.replace(begin + begin_mark.size(), end - begin - begin_mark.size(), section);
}

/// docs/microkernels.md: of the GPUs whose probe results are committed.
void write_microkernels(const std::filesystem::path& root) {
  const CommittedResults committed(root / "hw/probe/results");
  write_file((root / "docs/microkernels.md").string(), microkernel_markdown(committed.evidence()));
}

/// Own and published steps, predicted.
std::vector<ValidatedStep> measured_steps(const std::string& folder, const std::string& hardware) {
  std::vector<ValidatedStep> steps = validate_steps(folder, hardware, "analytic");
  std::vector<ValidatedStep> published = validate_published_training(folder, hardware, "analytic");
  std::move(published.begin(), published.end(), std::back_inserter(steps));
  return steps;
}

void run(const ValidateOptions& options) {
  const UnderBudget unlimited(nullptr);  // its questions are the program's own
  const auto root = config::data_folder("hw").parent_path();
  if (options.microkernels) {
    write_microkernels(root);
    print("docs/microkernels.md: microkernels measured and predicted\n");
    return;
  }
  const std::string folder = options.measurements.empty() ? (root / "measurements").string() : options.measurements;
  const auto cases =
      validate_kernels(folder, options.hardware, options.engine == "simulate" || options.write_residuals);
  if (options.write_residuals) {
    // Predictions of steps read the file: it holds the ranges of these kernels first.
    write_file((root / "hw/residuals.json").string(), residual_text(residual_table(cases)));
    const std::vector<ValidatedStep> steps = measured_steps(folder, options.hardware);
    write_file((root / "hw/residuals.json").string(), residual_text(residual_table(cases, steps)));
    print("hw/residuals.json: ranges from {} kernels and {} steps\n", cases.size(), steps.size());
    return;
  }
  if (options.format == "lines") {
    print("{}", case_lines(cases));
    return;
  }
  std::vector<ValidatedStep> steps;
  if (!options.kernels_only) steps = validate_steps(folder, options.hardware, "analytic");
  const auto families = family_accuracy(cases);
  std::vector<StepAccuracy> step_rows = step_accuracy(steps);
  if (!options.kernels_only) {
    const auto published = step_accuracy(validate_published_training(folder, options.hardware, "analytic"));
    step_rows.insert(step_rows.end(), published.begin(), published.end());
  }
  if (options.write_docs) {
    set_page_style({});  // documents are as wide wherever they are written
    write_file((root / "docs/accuracy.md").string(), accuracy_markdown(families, step_rows, steps));
    const std::string readme_path = (root / "README.md").string();
    std::string readme = read_text(readme_path);
    replace_section(readme, kBegin, kEnd, accuracy_lines(accuracy_overview(families, step_rows)));
    write_file(readme_path, readme);
    write_microkernels(root);
    print("docs/accuracy.md and README.md: tables from {} kernels and {} steps\n", cases.size(), steps.size());
    return;
  }
  if (options.format == "json") print("{}\n", accuracy_json(families, step_rows).dump(2));
  else print("{}", accuracy_text(families, step_rows));
}

}  // namespace

void add_validate_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = program.add_subcommand("validate", "error tables from the committed measurements");
  command->add_option("--hardware", options->hardware, "only this GPU");
  command->add_option("--format", options->format, "text, json, or lines: every kernel")
      ->check(CLI::IsMember({"text", "json", "lines"}));
  command->add_option("--engine", options->engine, "analytic, or simulate: its rows too")
      ->check(CLI::IsMember({"analytic", "simulate"}));
  command->add_option("--measurements", options->measurements, "folder of the measurements (measurements)");
  command->add_flag("--kernels-only", options->kernels_only, "leave out training steps");
  command->add_flag("--write-docs", options->write_docs,
                    "rewrite docs/accuracy.md, docs/microkernels.md and the README's five rows");
  command->add_flag("--write-microkernels", options->microkernels, "rewrite docs/microkernels.md alone");
  command->add_flag("--write-residuals", options->write_residuals,
                    "rewrite hw/residuals.json, the source of every range");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
