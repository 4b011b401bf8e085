// Training steps measured on an H200 (measurements/h200), each with the program that predicts it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/kernels/attention/attention_choice.h"
#include "sim/program/step_program.h"
#include "sim/study/validation/step_validation.h"
#include "sim/workload/training_step.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::testing_support {

struct MeasuredCase {
  std::string name, folder;  ///< folder of measurements: "h200" or "h200/more"
  nlohmann::json row;
  Scenario scenario;
  std::unique_ptr<OpTrace> trace;  ///< the program points to it
  StepProgram program;
};

/// Every eager transformer step of the H200.
inline const std::vector<MeasuredCase>& measured_cases() {
  static const std::vector<MeasuredCase> cases = [] {
    std::vector<MeasuredCase> result;
    for (const char* folder : {"h200", "h200/more"}) {
      for_each_row(testing::measurements().file(folder + std::string("/steps.jsonl.gz")),
                   [&](const nlohmann::json& row) {
                     MeasuredCase c;
                     c.row = row;
                     if (!c.row.contains("step_ms_median") || c.row.value("compile", false)) return;
                     const auto source = scenario_of_measured_step(c.row, "nvidia-h200-sxm-141gb");
                     if (!source) return;
                     c.name = c.row["name"];
                     c.folder = folder;
                     c.scenario = load_scenario(*source);
                     const Scenario& s = c.scenario;
                     c.trace = std::make_unique<OpTrace>(
                         training_run(s.model, s.training, choose_attention(s.training, s.model, s.gpu, s.software)));
                     c.program = make_program(*c.trace, s.gpu, s.software);
                     result.push_back(std::move(c));
                   });
    }
    return result;
  }();
  return cases;
}

/// Value below which `share` of the values lie.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace ridgeline::testing_support
