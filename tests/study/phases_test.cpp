// Phases that share a GPU: each is its scenario's own step, beside what the others leave there.
#include "sim/study/phases.h"

#include <gtest/gtest.h>

#include "sim/config/parse_yaml.h"
#include "sim/units/user_error.h"

namespace ridgeline::phases_of_training {
namespace {

PhasedTraining phases_with(const std::string& more_of_reference, const std::string& more_of_update = "") {
  return read_phases(config::parse_yaml(
      "title: GRPO\nhardware: nvidia-h200-sxm-141gb\nmodel: qwen2.5-0.5b\nphases:\n"
      "  - {name: generate, inference: {sequences: 8, prompt_length: 128, new_tokens: 16, precision: bf16}}\n"
      "  - {name: reference, inference: {sequences: 8, prompt_length: 144, precision: bf16}" +
          more_of_reference +
          "}\n"
          "  - {name: update, times: 2, network_of: generate, training: {micro_batch: 4, sequence_length: 144, "
          "precision: bf16}" +
          more_of_update + "}\n",
      "test"));
}

TEST(Phases, AreTheirScenariosBesideWhatOthersLeave) {
  Session session;
  const PhasedTraining training = phases_with("");
  const PhasesAnswer answer = answer_phases(session, training, "analytic");
  ASSERT_EQ(answer.phases.size(), 3u);
  Seconds round;
  for (std::size_t i = 0; i < 3; ++i) {
    const StepRun run(session, training.phases[i].scenario, "analytic");
    EXPECT_EQ(answer.phases[i].once, run.timeline().step);
    EXPECT_EQ(answer.phases[i].own, run.memory().needed);
    round += static_cast<double>(training.phases[i].times) * run.timeline().step;
  }
  EXPECT_DOUBLE_EQ(answer.round.value(), round.value());
  const PhaseAnswer &generate = answer.phases[0], &reference = answer.phases[1], &update = answer.phases[2];
  EXPECT_EQ(update.weights, 0) << "it trains the network that generates";
  EXPECT_GT(update.states, generate.weights) << "two states in bf16, each as large as the weights but for buffers";
  EXPECT_EQ(generate.of_others, reference.weights + update.states);
  EXPECT_EQ(update.of_others, reference.weights);
  EXPECT_EQ(reference.of_others, generate.weights + update.states);
}

TEST(Phases, WhatIsOffloadedMakesRoomForTheOthersAndIsCopied) {
  Session session;
  const PhasesAnswer kept = answer_phases(session, phases_with(""), "analytic"),
                     sent = answer_phases(session, phases_with(", offloaded: true", ", offloaded: true"), "analytic");
  EXPECT_EQ(sent.phases[0].of_others, 0);
  EXPECT_EQ(sent.host, kept.phases[1].weights + kept.phases[2].states);
  EXPECT_GT(sent.round, kept.round);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(sent.phases[i].peak, kept.phases[i].peak);
}

TEST(Phases, MistakesAreSaid) {
  EXPECT_THROW(read_phases(config::parse_yaml("phases: []\n", "test")), UserError);
  EXPECT_THROW(read_phases(config::parse_yaml("hardware: nvidia-h200-sxm-141gb\nmodel: gpt2\nphases:\n  - {name: a, "
                                              "network_of: b, training: {micro_batch: 1, sequence_length: 64}}\n",
                                              "test")),
               UserError);
}

}  // namespace
}  // namespace ridgeline::phases_of_training
