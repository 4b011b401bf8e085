#include "sim/study/published_training.h"

#include <nlohmann/json.hpp>

#include "sim/study/measured_ops.h"

namespace ridgeline {

std::vector<PublishedTraining> load_published_training(const MeasuredFile& file, int nth) {
  std::vector<PublishedTraining> result;
  int number = 0;
  for_each_row(file, [&](const nlohmann::json& row) {
    if (number++ % nth != 0) return;
    nlohmann::json scenario = row["scenario"];
    scenario["host"] = file.machine.host;
    scenario["software"] = file.machine.software;
    ScenarioSource source;
    source.text = scenario.dump();
    source.text_name = row["id"];
    result.push_back({.id = row["id"],
                      .scenario = load_scenario(source),
                      .step_time = Seconds{row["measured"]["step_time_s"].get<double>()},
                      .held_out = row["split"] != "fit"});
  });
  return result;
}

}  // namespace ridgeline
