// Ways to make a step fit: each row is one that the program takes, and says what its flags give.
#include "sim/study/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/answer/changes.h"
#include "sim/scenario/descriptions.h"

namespace ridgeline {
namespace {

Scenario asked_in_words(const std::string& text) {
  ScenarioSource source;
  source.text = text;
  source.text_name = "test";
  return load_scenario(source);
}

constexpr const char* kTooLarge[] = {
    "model: llama-3-8b\nhardware: nvidia-rtx-3090\ntraining: {micro_batch: 1, sequence_length: 1024}\n",
    "model: llama-3-8b\nhardware: nvidia-rtx-3090\ntraining: {micro_batch: 2, sequence_length: 512, precision: fp32}\n",
    "model: bert-large\nhardware: nvidia-rtx-3090\ntraining: {micro_batch: 96, sequence_length: 512, precision: "
    "fp32}\n",
    "model: llama-3-70b\ncluster: hgx-h100\ntraining: {micro_batch: 1, sequence_length: 1024, parallel: {strategy: "
    "fsdp}}\n",
    "model: llama-3-8b\nhardware: nvidia-t4\ntraining: {micro_batch: 1, sequence_length: 512, lora: {rank: 8}}\n",
};

TEST(Ladder, EachRowIsWhatItsChangesGive) {
  for (const char* text : kTooLarge) {
    SCOPED_TRACE(text);
    Session session;
    const Scenario scenario = asked_in_words(text);
    const StepRun run(session, scenario, "analytic");
    ASSERT_FALSE(run.memory().runs);
    const std::vector<LadderRow> rows = ladder_of(run);
    ASSERT_FALSE(rows.empty());
    for (const LadderRow& row : rows) {
      SCOPED_TRACE(row.label);
      Session other;
      const StepRun again(other, load_changed(*scenario.asked, overrides_of(row.all), other.descriptions()),
                          "analytic");
      EXPECT_EQ(again.memory().needed, row.memory.needed);
      EXPECT_EQ(again.memory().runs, row.step.has_value()) << "no time without the memory";
      if (row.step) {
        EXPECT_EQ(again.step().time, row.step->time);
      }
    }
  }
}

TEST(Ladder, RowsThatAddNeedLessThanTheOneAboveAndEndWithTheFirstThatFits) {
  for (const char* text : kTooLarge) {
    SCOPED_TRACE(text);
    Session session;
    const StepRun run(session, asked_in_words(text), "analytic");
    const std::vector<LadderRow> rows = ladder_of(run);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(rows[i].label);
      EXPECT_LT(rows[i].memory.needed, run.memory().needed);
      if (!rows[i].adds) continue;
      ASSERT_GT(i, 0u);
      EXPECT_LT(rows[i].memory.needed, rows[i - 1].memory.needed);
      EXPECT_FALSE(rows[i - 1].memory.fits);
      std::vector<std::string> both = rows[i - 1].all;
      both.insert(both.end(), rows[i].own.begin(), rows[i].own.end());
      EXPECT_EQ(rows[i].all, both);
    }
  }
}

TEST(Ladder, TheQuestionOfTheFirstMinuteIsAnsweredByAdapters) {
  Session session;
  const StepRun run(session, asked_in_words(kTooLarge[0]), "analytic");
  const std::vector<LadderRow> rows = ladder_of(run);
  for (const char* label : {"LoRA, rank 16", "QLoRA, rank 16"}) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const LadderRow& one) { return one.label == label; });
    ASSERT_NE(row, rows.end()) << label;
    ASSERT_TRUE(row->memory.runs) << label;
    EXPECT_GT(row->step->tokens_per_s, 0.0);
  }
}

TEST(Ladder, ARecordedStepHasNone) {
  Session session;
  Scenario scenario = asked_in_words(kTooLarge[2]);
  scenario.asked = nullptr;
  EXPECT_TRUE(ladder_of(StepRun(session, scenario, "analytic")).empty()) << "nobody asked for it in words";
}

}  // namespace
}  // namespace ridgeline
