// What published runs kept of their speed under a lower power limit (measurements/public/power_limits.jsonl).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

constexpr double kPoints = 0.05;

double seconds_at(const nlohmann::json& run, double watts) {
  const nlohmann::json& s = run["scenario"];
  const std::string work =
      s.value("forward_only", false)
          ? fmt::format(
                "inference: {{sequences: {}, prompt_length: {}, new_tokens: 0, precision: {}, attention: sdpa}}",
                s["batch"].get<int>(), s["sequence"].get<int>(), s["precision"].get<std::string>())
          : fmt::format("training: {{micro_batch: {}, sequence_length: {}, precision: {}}}", s["batch"].get<int>(),
                        s["sequence"].get<int>(), s["precision"].get<std::string>());
  ScenarioSource source;
  source.text_name = run["id"];
  source.text = fmt::format("title: published\nhardware: {}\nmodel: {}\n{}\n", run["hardware"].get<std::string>(),
                            s["model"].get<std::string>(), work);
  source.overrides.push_back({"hardware.power.limit", fmt::format("{} W", watts), ""});
  Session session;
  return StepRun(session, load_scenario(source), "analytic").timeline().step.value();
}

TEST(PublishedPower, runs_keep_of_their_speed_what_was_published) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/measurements/public/power_limits.jsonl");
  int compared = 0, held_out = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json run = nlohmann::json::parse(line);
    ASSERT_FALSE(run["source"].get<std::string>().empty());
    ASSERT_FALSE(run["quote"].get<std::string>().empty());
    if (!run.contains("points")) continue;
    const double full = seconds_at(run, run["baseline_w"]);
    double last = 1.0;
    for (const auto& point : run["points"]) {
      const double watts = point[0], published = point[1], predicted = full / seconds_at(run, watts);
      fmt::print("{:32} {:4.0f} W  published {:5.3f}  predicted {:5.3f}\n", run["id"].get<std::string>(), watts,
                 published, predicted);
      EXPECT_LE(predicted, last * (1.0 + 1e-4)) << run["id"] << " at " << watts;
      last = predicted;
      if (watts < run.value("compared_from_w", 0.0)) continue;
      if (run["id"] == "qwertyforce-rtx3090-vit-tf32" && watts == 230.0) {  // measurements/DEVIATIONS.md
        EXPECT_NEAR(predicted - published, 0.061, 0.005);
      } else {
        EXPECT_NEAR(predicted, published, kPoints) << run["id"] << " at " << watts << " W";
      }
      ++compared;
      held_out += run["use"] == "held out";
    }
  }
  EXPECT_GE(compared, 12);
  EXPECT_GE(held_out, 10);
}

/// Along the limit of every GPU, steps of GPT-2 get longer smoothly.
TEST(PublishedPower, gpt2_slows_down_smoothly_with_the_limit_on_every_gpu) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    nlohmann::json run{{"id", name},
                       {"hardware", name},
                       {"scenario", {{"model", "gpt2"}, {"batch", 8}, {"sequence", 512}, {"precision", "amp-fp16"}}}};
    double last = 0.0;
    for (int i = 0; i < 20; ++i) {
      const double watts = gpu.power.limit.value() * std::pow(0.95, i);
      if (watts < 1.25 * gpu.power.idle.value()) break;
      const double seconds = seconds_at(run, watts);
      if (last > 0.0) {
        EXPECT_GE(seconds, last * 0.995) << name << " at " << watts << " W";
        // Near the power of idling a twentieth less of the limit is more of what is left for the work.
        const double idle = gpu.power.idle.value(), left = (watts / 0.95 - idle) / (watts - idle);
        EXPECT_LE(seconds, last * std::max(1.10, left)) << name << " at " << watts << " W";
      }
      last = seconds;
    }
  }
}

}  // namespace
}  // namespace ridgeline
