// ridgeline_fit: makes the tables of fitted constants (data/laws/*.yaml) from the committed measurements, or checks
// that they are what the fit makes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "fit/collective_ranges.h"
#include "fit/fit_class.h"
#include "fit/host_scales.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/units/user_error.h"

namespace ridgeline::fit {
namespace {

namespace fs = std::filesystem;

struct TableFit {
  const char* name;
  bool settled;  ///< its committed numbers are those of this program
  std::vector<std::string> ops;
  std::vector<Problem> (*problems)(const Measurements&, const Laboratory&);
};
std::vector<std::string> ops_but(const std::vector<std::string>& others) {
  std::vector<std::string> ops = kernel_op_names();
  std::erase_if(ops,
                [&](const std::string& op) { return std::find(others.begin(), others.end(), op) != others.end(); });
  return ops;
}

/// In the order of fits: a table may use those before it.
const std::vector<TableFit>& table_fits() {
  static const std::vector<TableFit> fits{
      {"memory_bound", true, ops_but({}), memory_bound_problems},
      {"split_reduction", true, {"mm", "bmm", "addmm"}, split_reduction_problems},
      {"products", true, {"mm", "bmm", "addmm"}, product_problems},
      {"attention",
       true,
       {"flash_attention", "flash_attention_backward", "cudnn_attention", "cudnn_attention_backward",
        "efficient_attention", "efficient_attention_backward"},
       attention_problems},
      {"convolution", true, {"conv2d", "conv2d_backward"}, convolution_problems},
      {"network", true, {"none"}, network_problems},
      {"overlap", true, {"none"}, overlap_problems},
      {"host_classes", true, {"none"}, host_class_problems},
      {"wrappers", true, {"none"}, wrapper_problems}};
  return fits;
}

/// The table of ranges of collectives, which is no fit.
/// Scales of hosts, which are printed and compared: costs that rest on them are divided by them.
constexpr std::string_view kScales = "host_scale";
constexpr double kScaleTolerance = 0.02;  // half of what a median of so many steps leaves open
constexpr std::string_view kRanges = "collective_range";

struct Request {
  fs::path root = RIDGELINE_SOURCE_DIR, laws;
  std::vector<std::string> tables;
  std::vector<std::string> only_classes;
  bool check = false, dry_run = false;
  FitOptions options;
};

std::string text_of_errors(const Errors& errors) {
  return fmt::format("{:5} kernels {:6.2f} % median {:6.2f} % mean", errors.kernels, errors.median, errors.mean);
}

void print(const ClassReport& report) {
  fmt::print("\n{}  ({:.1f} s, {} iterations, {} starts agree)\n", report.name, report.seconds, report.iterations,
             report.starts_that_agree);
  fmt::print("  fitted    {}   before {:.2f}, {:.2f}\n", text_of_errors(report.after.in_sample),
             report.before.in_sample.median, report.before.in_sample.mean);
  if (report.after.cross_validated.kernels > 0)
    fmt::print("  5 folds   {}\n", text_of_errors(report.after.cross_validated));
  fmt::print("  held out  {}   before {:.2f}, {:.2f}\n", text_of_errors(report.after.held_out),
             report.before.held_out.median, report.before.held_out.mean);
  for (const auto& [machine, percent] : report.after.machines) fmt::print("  {} {:+.2f} %\n", machine, percent);
  for (const ConstantReport& one : report.constants) {
    if (one.sd == 0.0 && !one.bound && one.before == one.after) continue;
    fmt::print("  {:24} {:>10.4g} -> {:<10.4g}", one.name, one.before, one.after);
    if (one.bound) fmt::print(" at its bound");
    else if (one.sd > 0.0) fmt::print(" sd {:.2g} %, of the data alone {:.2g} %", one.sd, one.data_sd);
    fmt::print("{}\n", !one.bound && one.data_sd > 50.0 ? "  NOT SETTLED BY THE DATA" : "");
  }
  std::fflush(stdout);
}

/// Fits or checks one table; the number of classes that are not as a fit makes them.
int run_table(const Request& request, const TableFit& fits, const Laboratory& laboratory) {
  const fs::path path =
      (request.laws.empty() ? request.root / "data/laws" : request.laws) / (std::string(fits.name) + ".yaml");
  LawTable table = read_table(path);
  const Priors priors = read_priors(request.root / "fit/priors" / (std::string(fits.name) + ".yaml"));
  const Measurements measurements = load_measurements(request.root, fits.ops);
  const std::vector<Problem> problems = fits.problems(measurements, laboratory);
  fmt::print("{}: {} rows, {} left out because their shapes are held out\n", fits.name, measurements.rows.size(),
             measurements.twins);
  int wrong_classes = 0;
  for (const LawClass& one : table.classes)
    if (priors.find(one.name) == nullptr)
      throw UserError(fmt::format("fit/priors/{}.yaml: nothing is said of class {}", fits.name, one.name));
  for (const auto& [name, known] : priors.classes) {
    LawClass* law_class = table.find(name);
    if (law_class == nullptr)
      throw UserError(fmt::format("fit/priors/{}.yaml: {} is no class of the table", fits.name, name));
    const auto& only = request.only_classes;
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    const auto problem =
        std::find_if(problems.begin(), problems.end(), [&name = name](const Problem& one) { return one.name == name; });
    if (known.fitted.empty()) {
      if (!request.check) set_known(table, *law_class, priors, known);
      const Parameters parameters(table, *law_class, priors, known, {});
      for (const std::string& text : parameters.disagreements()) {
        fmt::print("{}: {}: {}\n", fits.name, name, text);
        wrong_classes += request.check ? 1 : 0;
      }
      continue;
    }
    if (problem == problems.end())
      throw UserError(fmt::format("{}: {}: there are no measurements to fit it on", fits.name, name));
    if (!request.check) {
      print(fit_class(table, *law_class, priors, known, *problem, measurements.machines, request.options));
      continue;
    }
    const auto wrong = check_class(table, *law_class, priors, known, *problem, measurements.machines);
    wrong_classes += wrong.empty() ? 0 : 1;
    fmt::print("{}: {}: {}\n", fits.name, name, wrong.empty() ? "as the fit makes it" : "NOT as the fit makes it");
    for (const std::string& text : wrong) fmt::print("  {}\n", text);
    std::fflush(stdout);
  }
  if (!request.check && !request.dry_run) write_table(table, path);
  return wrong_classes;
}

/// Quantiles in the place of a fit.
int run_ranges(const Request& request) {
  const fs::path path = (request.laws.empty() ? request.root / "data/laws" : request.laws) / "collective_range.yaml";
  const MeasurementIndex index(request.root / "measurements");
  LawTable table = read_table(path);
  const std::vector<std::string> wrong = check_collective_ranges(index, table);
  for (const std::string& text : wrong) fmt::print("collective_range: {}\n", text);
  if (request.check) return wrong.empty() ? 0 : 1;
  set_collective_ranges(index, table);
  for (const LawClass& one : table.classes)
    fmt::print("collective_range: {}: {} to {}, {}\n", one.name, one.values().at("low"), one.values().at("high"),
               text_of_errors(one.fit->held_out));
  if (!request.dry_run) write_table(table, path);
  return 0;
}

/// Prints what the steps ask for; the number of files that state another scale.
int run_scales(const Request& request) {
  int wrong = 0;
  for (const HostScale& one : host_scales(request.root)) {
    const bool same = std::abs(one.stated / one.asked - 1.0) < kScaleTolerance;
    fmt::print("hw/hosts/{}.yaml: scale {}; {} steps ask for {:.3g} (half of them within {:.3g} to {:.3g}){}\n",
               one.host, one.stated, one.steps.size(), one.asked, one.least, one.most,
               same ? "" : ": NOT what they ask for");
    wrong += same ? 0 : 1;
  }
  return wrong;
}

int run(const Request& request) {
  for (const std::string& name : request.tables)
    if (name != kRanges && name != kScales &&
        std::none_of(table_fits().begin(), table_fits().end(), [&](const TableFit& one) { return name == one.name; }))
      throw UserError(fmt::format(
          "\"{}\" is no table; there are memory_bound, split_reduction, products, attention, convolution, network, "
          "overlap, host_classes, wrappers, collective_range and host_scale",
          name));
  const Laboratory laboratory{load_gpu("nvidia-h200-sxm-141gb"), load_software("pytorch-2.11"),
                              load_gpu("nvidia-h100-sxm5-80gb")};
  int wrong = 0;
  for (const TableFit& fits : table_fits()) {
    const auto& wanted = request.tables;
    if (wanted.empty() ? fits.settled : std::find(wanted.begin(), wanted.end(), fits.name) != wanted.end())
      wrong += run_table(request, fits, laboratory);
  }
  const auto& wanted = request.tables;  // after the constants that they are ranges of
  if (wanted.empty() || std::find(wanted.begin(), wanted.end(), kRanges) != wanted.end()) wrong += run_ranges(request);
  if (wanted.empty() || std::find(wanted.begin(), wanted.end(), kScales) != wanted.end()) wrong += run_scales(request);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ridgeline::fit

int main(int argc, char** argv) {
  ridgeline::fit::Request request;
  CLI::App app{"Makes the tables of fitted constants (data/laws) from the committed measurements (docs/refit.md)."};
  app.add_option(
      "TABLE", request.tables,
      "memory_bound, split_reduction, products, attention, convolution, network, overlap, host_classes, wrappers, "
      "collective_range; those "
      "that are settled "
      "where none is given");
  app.add_flag("--check", request.check, "fit nothing anew: fail unless each table is what the fit makes of the data");
  CLI::Option* dry_run = app.add_flag("--dry-run", request.dry_run, "report, and leave the tables as they are");
  app.add_option("--class", request.only_classes, "only these classes of kernels");
  app.add_option("--starts", request.options.starts, "starts of each fit")->check(CLI::Range(1, 1000));
  app.add_flag("!--no-cross-validation", request.options.cross_validate,
               "leave it out; goes with --dry-run, since a table that is written states its errors")
      ->needs(dry_run);
  app.add_option("--root", request.root, "folder with data/, fit/ and tests/ (the source tree)");
  app.add_option("--laws", request.laws, "folder of the tables, if not data/laws of it");
  CLI11_PARSE(app, argc, argv);
  try {
    return ridgeline::fit::run(request);
  } catch (const ridgeline::UserError& e) {
    fmt::print(stderr, "ridgeline_fit: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "ridgeline_fit: {}\n", e.what());
    return 1;
  }
}
