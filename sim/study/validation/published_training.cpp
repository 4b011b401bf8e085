#include "sim/study/validation/published_training.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/measured_ops.h"

namespace ridgeline {

std::vector<PublishedTraining> load_published_training(const MeasuredFile& file) {
  std::vector<PublishedTraining> result;
  for_each_row(file, [&](const nlohmann::json& row) {
    nlohmann::json scenario = row["scenario"];
    scenario["host"] = file.machine.host;
    scenario["software"] = file.machine.software;
    ScenarioSource source;
    source.text = scenario.dump();
    source.text_name = row["id"];
    if (row.contains("host_scale"))
      source.overrides.push_back({"host.scale", std::to_string(row["host_scale"].get<double>()), ""});
    const nlohmann::json overrides = row.value("overrides", nlohmann::json::object());
    for (const auto& [key, value] : overrides.items()) source.overrides.push_back({key, value.get<std::string>(), ""});
    const auto bytes = [&](const char* key) -> std::optional<std::int64_t> {
      if (!row["measured"].contains(key)) return std::nullopt;
      return row["measured"][key].get<std::int64_t>();
    };
    result.push_back({.id = row["id"],
                      .publisher = file.name.starts_with("public/") ? publisher_of(row.value("source", "")) : "",
                      .scenario = load_scenario(source),
                      .step_time = Seconds{row["measured"]["step_time_s"].get<double>()},
                      .peak_allocated = std::max(bytes("peak_allocated_bytes"), bytes("allocated_of_other_rank")),
                      .peak_reserved = bytes("peak_reserved_bytes"),
                      .held_out = row["split"] != "fit"});
  });
  return result;
}

std::vector<ValidatedStep> validate_published_training(const std::string& folder, std::string_view hardware,
                                                       std::string_view engine) {
  const MeasurementIndex index(folder);
  const std::string gpu = hardware.empty() ? "" : load_gpu(std::string(hardware)).name;
  std::vector<ValidatedStep> out;
  for (const MeasuredFile* file : index.of_kind("published-training"))
    for (PublishedTraining& row : load_published_training(*file)) {
      if (!gpu.empty() && row.scenario.gpu.name != gpu) continue;
      ValidatedStep step;
      step.measured.name = row.id;
      step.measured.source = fmt::format("several GPUs, {}{}",
                                         file->name.starts_with("public/") ? "public, " : "ours, ", file->machine.name);
      step.measured.publisher = row.publisher;
      step.measured.seen_by = row.held_out ? "" : file->seen_by;
      step.measured.step_time = row.step_time;
      if (!row.scenario.training.parallel
               .pipelined()) {  // whose memory is that of one stage, which a row need not mean
        step.measured.peak_allocated = row.peak_allocated;
        step.measured.peak_reserved = row.peak_reserved;
      }
      step.scenario = std::move(row.scenario);
      out.push_back(std::move(step));
    }
  Session session;
  tbb::parallel_for(std::size_t{0}, out.size(),
                    [&](std::size_t i) { out[i].predicted = StepRun(session, out[i].scenario, engine).prediction(); });
  return out;
}

}  // namespace ridgeline
