// Training steps of Transformers' networks that see, hear and mix experts, measured on an NVIDIA H200 from their
// configurations; no constant was fitted on them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/answer/step_run.h"
#include "tests/support/measurement_index.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;

constexpr double kHubBusyWorst = 10.0, kHubAllocatedWorst = 1.0;  // percent
/// Listed in measurements/DEVIATIONS.md: percent.
const std::map<std::string, double> kOtherHubBusy{
    {"jamba-2x1024", 12.0}, {"segformer-8", 15.0}, {"wav2vec2-4", 15.0}, {"wav2vec2-stable-4", 57.0}};
const std::map<std::string, double> kOtherHubAllocated{{"trocr-8x64", 1.5},  {"layoutlmv3-8x512", 1.5},
                                                       {"segformer-8", 1.5}, {"segformer-amp-8", 1.5},
                                                       {"wav2vec2-4", 5.5},  {"wav2vec2-stable-4", 1.5}};

Prediction hub_prediction(const json& row) {
  const std::filesystem::path path = temporary_path("hub-step.json");
  std::ofstream(path) << row["config"].dump();
  json training{{"micro_batch", row["batch"]}, {"precision", row["precision"]}, {"optimizer", {{"name", "adamw"}}}};
  if (row["length"] != 0 && !row["name"].get<std::string>().starts_with("wav2vec2"))
    training["sequence_length"] = row["length"];
  if (row["attention"] == "eager") training["attention"] = "eager";
  ScenarioSource source;
  source.text = json{
      {"hardware", "nvidia-h200-sxm-141gb"},
      {"software", "pytorch-2.11"},
      {"model", path.string()},
      {"training",
       training}}.dump();
  source.text_name = row["name"];
  if (row.contains("image_size"))
    source.overrides = {{"model.encoder.image_size", std::to_string(row["image_size"].get<int>()), ""}};
  Prediction result = predict(load_scenario(source), "analytic");
  std::filesystem::remove(path);
  return result;
}

double hub_bar(const std::map<std::string, double>& others, const std::string& name, double otherwise) {
  const auto found = others.find(name);
  return found == others.end() ? otherwise : found->second;
}
double off_in_percent(double predicted, double measured) { return 100.0 * std::abs(predicted / measured - 1.0); }

TEST(HubSteps, MeetMeasuredTimeAndMemory) {
  int rows = 0;
  for_each_row(testing::measurements().file("h200/networks.jsonl.gz"), [&](const json& row) {
    const std::string name = row["name"];
    const Prediction p = hub_prediction(row);
    EXPECT_LT(off_in_percent(p.step.gpu_busy.value(), 1e-3 * row["busy_ms"].get<double>()),
              hub_bar(kOtherHubBusy, name, kHubBusyWorst))
        << name;
    EXPECT_LT(off_in_percent(static_cast<double>(p.memory.peak_allocated), row["allocated"].get<double>()),
              hub_bar(kOtherHubAllocated, name, kHubAllocatedWorst))
        << name;
    ++rows;
  });
  EXPECT_EQ(rows, 17);
}

}  // namespace
}  // namespace ridgeline
