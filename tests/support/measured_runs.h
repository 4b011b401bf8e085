// The training steps measured on an H200 (measurements/h200/steps.jsonl.gz and more), each with the scenario it
// ran.
#pragma once

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/kernels/attention/attention_choice.h"
#include "sim/scenario/scenario.h"
#include "sim/study/validation/step_validation.h"
#include "sim/workload/training_step.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::testing {

struct MeasuredRun {
  std::string name;
  nlohmann::json row;
  Scenario scenario;

  [[nodiscard]] OpTrace trace(int steps = 2) const {
    const AttentionChoice attention =
        choose_attention(scenario.training, scenario.model, scenario.gpu, scenario.software);
    return training_run(scenario.model, scenario.training, attention, steps);
  }
  /// A file beside the row, where one was recorded.
  [[nodiscard]] std::optional<std::string> recorded(const std::string& folder, const std::string& ending) const {
    const std::string root = std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/";
    for (const std::string& place : {root + folder, root + "more/" + folder, root + "more/"}) {
      const std::string path = place + "/" + name + ending;
      if (std::filesystem::exists(path)) return path;
    }
    return std::nullopt;
  }
};

/// Every transformer that ran without torch.compile.
inline const std::vector<MeasuredRun>& measured_runs() {
  static const std::vector<MeasuredRun> runs = [] {
    std::vector<MeasuredRun> result;
    for (const char* file : {"h200/steps.jsonl.gz", "h200/more/steps.jsonl.gz"}) {
      for_each_row(measurements().file(file), [&](const nlohmann::json& row) {
        if (row.contains("error") || row.value("compile", false)) return;
        const auto source = scenario_of_measured_step(row, "nvidia-h200-sxm-141gb");
        if (!source) return;
        Scenario scenario = load_scenario(*source);
        const std::string name = row["name"];
        result.push_back({name, row, std::move(scenario)});
      });
    }
    return result;
  }();
  return runs;
}

/// A whole gzip file as text.
inline std::string unzipped(const std::string& path) {
  std::ifstream raw(path, std::ios::binary);
  boost::iostreams::filtering_istream in;
  in.push(boost::iostreams::gzip_decompressor());
  in.push(raw);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace ridgeline::testing
