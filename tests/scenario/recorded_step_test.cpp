// A scenario of a recorded step: what its file's header says, and what the scenario may change of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

/// An op trace whose header has these members.
std::string recording_of(const std::string& header, const std::string& name = "step.jsonl") {
  const std::string path = temporary_path(name);
  std::ofstream(path) << R"({"ridgeline":"op-trace","version":1,"parameters":0)" << header << "}\n"
                      << "{\"record\":\"step\"}\n{\"record\":\"host\",\"class\":\"linear\",\"times\":1}\n"
                      << "{\"record\":\"end\"}\n";
  return path;
}
Scenario of_recording(const std::string& header, const std::string& more = "") {
  return load_scenario({.file = {},
                        .text = "hardware: nvidia-h200-sxm-141gb\ntrace: " + recording_of(header) + "\n" + more,
                        .text_name = "recorded.yaml",
                        .overrides = {}});
}
std::string told_beside(const std::string& more) {
  try {
    (void)of_recording("", more);
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(RecordedStep, TheHeaderSaysWhatAStepHolds) {
  const Scenario read = of_recording(R"(,"title":"a small network","precision":"amp-bf16","samples":24,"tokens":3072)");
  EXPECT_EQ(read.title, "a small network");
  ASSERT_TRUE(read.recorded);
  EXPECT_EQ(read.recorded->samples, 24.0);
  EXPECT_EQ(read.recorded->tokens, 3072.0);
  EXPECT_EQ(read.recorded->precision, Precision::amp_bf16);
  EXPECT_EQ(read.training.precision, Precision::amp_bf16);
  EXPECT_FALSE(read.recorded->recorded_on);
  EXPECT_FALSE(read.cuda_graphs);
  EXPECT_NE(read.host.name, "as recorded");
}

TEST(RecordedStep, PrecisionsAreThoseOfScenarios) {
  const auto precision = [](const std::string& name) {
    return of_recording(R"(,"precision":")" + name + "\"").training.precision;
  };
  EXPECT_EQ(precision("fp32"), Precision::fp32);
  EXPECT_EQ(precision("tf32"), Precision::tf32);
  EXPECT_EQ(precision("amp-fp16"), Precision::amp_fp16);
  EXPECT_EQ(precision("amp-bf16"), Precision::amp_bf16);
  EXPECT_EQ(precision("bf16"), Precision::bf16);
  EXPECT_EQ(precision("something"), Precision::fp32);
  EXPECT_FALSE(of_recording(R"(,"precision":"something")").recorded->precision);
  EXPECT_FALSE(of_recording("").recorded->precision);
}

TEST(RecordedStep, TheScenarioSaysMore) {
  const std::string header = R"(,"title":"a small network","samples":24,"tokens":3072)";
  const Scenario changed = of_recording(
      header, "title: mine\nrecorded_on: nvidia-t4\ntraining: {samples: 5, tokens: 70, cuda_graphs: true}\n");
  EXPECT_EQ(changed.title, "mine");
  EXPECT_EQ(changed.recorded->samples, 5.0);
  EXPECT_EQ(changed.recorded->tokens, 70.0);
  EXPECT_TRUE(changed.cuda_graphs);
  ASSERT_TRUE(changed.recorded->recorded_on);
  EXPECT_EQ(changed.recorded->recorded_on->name, "nvidia-t4");
  const Scenario samples = of_recording(header, "training: {samples: 5}\n");
  EXPECT_EQ(samples.recorded->samples, 5.0);
  EXPECT_EQ(samples.recorded->tokens, 3072.0);
  EXPECT_FALSE(samples.cuda_graphs);
  EXPECT_EQ(of_recording("").title, "step.jsonl") << "without a title the file's name";
}

TEST(RecordedStep, WhatARecordingHasNoneOfIsRefusedInItsPlace) {
  EXPECT_EQ(told_beside("training: {samples: 0}\n"),
            "recorded.yaml:3:21: training.samples: 0 is out of range, expected above 0");
  EXPECT_EQ(told_beside("training: {tokens: -1}\n"),
            "recorded.yaml:3:20: training.tokens: -1 is out of range, expected above 0");
  EXPECT_EQ(told_beside("training: {micro_batch: 4}\n"),
            "recorded.yaml:3:25: training.micro_batch: a recorded step runs as it was recorded; of training it takes "
            "cuda_graphs, samples and tokens (of a step) only");
  EXPECT_NE(told_beside("model: gpt2\n").find("recorded.yaml:3:8: model: the recording ("), std::string::npos);
  EXPECT_NE(told_beside("inference: {prompt_length: 4}\n").find("says what ran: leave out trace or inference"),
            std::string::npos);
}

}  // namespace
}  // namespace ridgeline
