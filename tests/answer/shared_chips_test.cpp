// Chips of one session share what their differences leave equal: each number of a chip, changed, answers as it would
// alone.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/answer/step_run.h"
#include "sim/hardware/keys.h"
#include "sim/report/json/prediction_json.h"

namespace ridgeline {
namespace {

Scenario step_on(const std::string& gpu, const std::string& training) {
  ScenarioSource source;
  source.text = "{hardware: " + gpu + ", model: gpt2, training: {" + training +
                ", optimizer: {name: adamw}, gradient_clipping: 1.0}}";
  source.text_name = "test";
  source.overrides = {{"model.layers", "2", ""}};
  return load_scenario(source);
}

std::string answer_in(Session& session, const Scenario& scenario) {
  return prediction_json(StepRun(session, scenario, "analytic").prediction()).dump();
}

void each_number_answers_as_alone(const Scenario& scenario) {
  Session shared;
  const std::string as_it_is = answer_in(shared, scenario);
  int moved = 0;
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number()) continue;
    for (const double factor : {0.8, 1.25}) {
      Scenario changed = scenario;
      key.set(changed.gpu, factor * key.get(scenario.gpu));
      Session alone;
      const std::string answer = answer_in(alone, changed);
      EXPECT_EQ(answer_in(shared, changed), answer) << key.key << " x " << factor;
      moved += answer != as_it_is;
    }
  }
  EXPECT_GT(moved, 60) << "a test of chips that all answer alike shows nothing";
  EXPECT_EQ(answer_in(shared, scenario), as_it_is);
}

TEST(SharedChips, EachNumberOfAChipAnswersAsAlone) {
  each_number_answers_as_alone(
      step_on("nvidia-h100-sxm5-80gb", "micro_batch: 3, sequence_length: 128, precision: amp-bf16"));
}
TEST(SharedChips, EachNumberOfAnOldChipAnswersAsAlone) {
  each_number_answers_as_alone(
      step_on("nvidia-v100-sxm2-16gb", "micro_batch: 2, sequence_length: 200, precision: fp32"));
}

}  // namespace
}  // namespace ridgeline
