// Networks of Transformers that were measured (measurements/networks), as questions.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario/scenario.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::testing {

/// The step that a row was measured on, on `hardware`.
inline Scenario scenario_of_measured_network(const nlohmann::json& row, const std::string& hardware) {
  using nlohmann::json;
  const auto path = std::filesystem::path(temporary_path("config-of-a-measured-network.json"));
  std::ofstream(path) << row["config"].dump();
  const std::string optimizer = row["optimizer"], implementation = optimizer.substr(optimizer.find(' ') + 1);
  const bool known = implementation == "fused" || implementation == "foreach";
  json training{{"micro_batch", row["B"]},
                {"precision", row["precision"]},
                {"tf32", false},
                {"optimizer", {{"name", "adamw"}, {"implementation", known ? implementation : "for-loop"}}}};
  if (row["T"].get<int>() > 0) training["sequence_length"] = row["T"];  // an image has a length of its own
  if (row["clip"].get<double>() > 0.0) training["gradient_clipping"] = row["clip"];
  if (row.contains("attention")) training["attention"] = row["attention"];
  if (row.value("checkpoint", false) || row["name"] == "llama_ckpt") training["activation_checkpointing"] = "block";
  if (row.contains("fp8")) training["fp8"] = row["fp8"];
  if (row.contains("loss")) training["loss_code"] = row["loss"];
  ScenarioSource source;
  source.text = json{{"hardware", hardware}, {"model", path.string()}, {"training", training}}.dump();
  source.text_name = row["name"];
  if (row.contains("T2")) source.overrides.push_back({"model.target_length", row["T2"].dump(), ""});
  Scenario scenario = load_scenario(source);
  std::filesystem::remove(path);
  return scenario;
}

/// Tells whether a row is of a loss in chunks that adds to the weight's gradient in 16 bits. No library does: Liger
/// adds in fp32 (networks/fine_tuning.jsonl.gz).
inline bool adds_in_16_bits(const nlohmann::json& row) {
  return row.value("loss", "") == "chunked" && row["precision"] == "bf16";
}

}  // namespace ridgeline::testing
