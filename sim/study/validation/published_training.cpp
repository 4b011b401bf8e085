#include "sim/study/validation/published_training.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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
                      .scenario = load_scenario(source),
                      .step_time = Seconds{row["measured"]["step_time_s"].get<double>()},
                      .peak_allocated = std::max(bytes("peak_allocated_bytes"), bytes("allocated_of_other_rank")),
                      .peak_reserved = bytes("peak_reserved_bytes"),
                      .held_out = row["split"] != "fit"});
  });
  return result;
}

}  // namespace ridgeline
