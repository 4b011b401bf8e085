#include "sim/study/validation/parallel_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/study/validation/measured_ops.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// The speed of a host beside a row, as a scale: times of an in-place addition on one element and of a 64 x 64 linear
/// layer with autograd, over those on the host whose costs the classes are (5.1 and 18.5 us at its scale of 1.12).
double scale_of_host(const json& host_us) {
  constexpr double kAddition = 5.1, kLinear = 18.5, kItsScale = 1.12;
  return kItsScale * std::sqrt(host_us.at(0).get<double>() / kAddition * host_us.at(1).get<double>() / kLinear);
}

/// Nine in ten of what host-bound steps say of a scale that was taken so, minutes before or after: 1.64 times the root
/// mean square of the logarithms over the rows that host costs were fitted on (12 to 16 %).
constexpr std::string_view kSpreadOfSuchScales = "23 %";

/// Of a row, or of each rank of a pipeline: their mean.
double scale_of_hosts(const json& host_us) {
  if (!host_us.front().is_array()) return scale_of_host(host_us);
  double sum = 0.0;
  for (const json& rank : host_us) sum += scale_of_host(rank);
  return sum / static_cast<double>(host_us.size());
}

/// Of what a row's device held, the part that its configuration did not ask for: communicators of those that ran before
/// it in the same processes (`device_used_before`, the process's cache aside), and of the script, which added a number
/// up over all ranks, where the scenario has groups of fewer.
std::int64_t foreign_bytes(const json& row) {
  // Kernels and handles of libraries, which a process of its own loads too: 140 to 152 MiB where all configurations
  // used the group of all ranks alone.
  constexpr std::int64_t kLibraries = std::int64_t{152} << 20;
  if (!row.contains("device_used_before")) return 0;
  const json& start = row["device_used_at_start"];
  const std::int64_t grown =
      row["device_used_before"].get<std::int64_t>() - start["first_all_reduce"].get<std::int64_t>();
  std::int64_t foreign = std::max<std::int64_t>(0, grown - kLibraries);
  const json how = row["scenario"]["training"].value("parallel", json::object());
  if (how.value("replicate", 1) > 1)
    foreign += start["first_all_reduce"].get<std::int64_t>() - start["process_group"].get<std::int64_t>();
  return foreign;
}

ParallelStep parallel_step(const MeasuredFile& file, const json& row) {
  MeasuredStep m;
  m.name = fmt::format("{} (run {})", row["name"].get<std::string>(), row["run"].get<int>());
  const std::string kind = row["kind"];
  const bool pipeline = kind == "pp";
  const bool fitted = row["split"] == "fit" && kind != "single" && !pipeline;
  m.source = kind == "single"           ? "h200/parallel, one GPU"
             : pipeline                 ? "h200/parallel, pipelines"
             : kind == "compiled"       ? "h200/parallel, compiled"
             : kind == "mp"             ? "h200/parallel, a network cut by hand"
             : kind == "dp"             ? "h200/parallel, DataParallel"
             : kind == "sharded-blocks" ? "h100/parallel, sharded blocks"
                                        : "h200/parallel";
  if (fitted) m.seen_by = file.seen_by;
  m.host_fitted = fitted;
  m.step_time = Seconds{row["step_ms_median"].get<double>() * 1e-3};
  // Stages differ by what they hold, and ranks by whether they still hold the buckets of the first step.
  const auto fullest = [](const json& ranks) {
    return std::max_element(ranks.begin(), ranks.end())->get<std::int64_t>();
  };
  m.peak_allocated = fullest(row["peak"]["allocated"]);
  // Elsewhere segments of the configuration before were still cached.
  if (row["reserved_trust"] == "high") {
    m.peak_reserved = fullest(row["peak"]["reserved"]);
    if (row["device_used"].is_number()) m.device_used = row["device_used"].get<std::int64_t>() - foreign_bytes(row);
  }
  ScenarioSource source;
  source.text = row["scenario"].dump();
  source.text_name = row["name"];
  source.overrides.push_back({"host.scale", fmt::format("{}", scale_of_hosts(row["host_us"])), ""});
  source.overrides.push_back({"host.spread", std::string(kSpreadOfSuchScales), ""});
  const char* const tf32 = row["scenario"]["training"]["precision"] == "fp32" ? "false" : "true";  // both, as measured
  for (const char* key : {"training.tf32", "training.cudnn_tf32"}) source.overrides.push_back({key, tf32, ""});
  const double busy_ms = row["profiled"]["gpu_busy_ms"].get<double>() / row["profiled"]["steps"].get<double>();
  return {.measured = std::move(m),
          .scenario = load_scenario(source),
          .busy_share = busy_ms / row["step_ms_median"].get<double>(),
          .allocated_by_rank =
              pipeline ? row["peak"]["allocated"].get<std::vector<std::int64_t>>() : std::vector<std::int64_t>{},
          .reserved_by_rank =
              pipeline ? row["peak"]["reserved"].get<std::vector<std::int64_t>>() : std::vector<std::int64_t>{},
          .held_out = row["split"] != "fit",
          .name_hash = hash_of(row["name"].get<std::string>()),
          .row = hash_of(row.dump())};
}

}  // namespace

std::vector<ParallelStep> load_parallel_steps(const MeasuredFile& file) {
  std::vector<ParallelStep> result;
  for_each_row(file, [&](const json& row) { result.push_back(parallel_step(file, row)); });
  return result;
}

}  // namespace ridgeline
