// The first answer: its size, what stands in which line, and what a step without the memory does not say.
#include "sim/report/text/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/units/user_error.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Scenario summary_scenario() {
  Scenario s;
  s.title = "a question";
  s.gpu.name = "nvidia-made";
  s.software.name = "a-software";
  s.training.micro_batch = 8;
  s.training.sequence_length = 512;
  s.training.precision = Precision::amp_fp16;
  return s;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void expect_small(const std::string& text) {
  const std::vector<std::string> lines = lines_in(text);
  EXPECT_LE(lines.size(), kSummaryLines) << text;
  for (const std::string& line : lines) EXPECT_LE(line.size(), kSummaryColumns) << line;
}

TEST(Summary, SaysWhatFitsHowLongAndWhy) {
  Prediction p = made_prediction();
  p.memory.needed = p.memory.device_used;
  p.advice = {{"training.precision=bf16", made_ms(30), made_gib(2), "half the bytes"}};
  p.notes = {"one", "two"};
  EXPECT_EQ(summary_text(summary_scenario(), p, nullptr), R"(a made step on nvidia-made
FITS: needs 12.50 of 40.00 GiB

  asked         8 x 512 tokens, amp-fp16
  step time     200 ms (190 ms to 215 ms), 81,920 tokens/s, 160 samples/s
  memory        GiB: optimizer state 3.00, activations 2.75, weights 2.00,
                gradients 1.50, CUDA context 1.50, cached 1.00, temporaries
                0.50, rest 0.25
  limited by    arithmetic: kernels at the rate of the math units, 40 % of the
                step; DRAM 30 %, launches and host 11 %
  code          plain PyTorch modules, torch's AdamW (foreach), a-software

  what helps    -30.0 ms  -2.00 GiB  --precision bf16
  more          --explain: kernels, phases, host, energy, 2 notes
)");
}

Prediction without_memory() {
  Prediction p = made_prediction();
  p.memory.runs = p.memory.fits = false;
  p.memory.needed = made_gib(100);
  p.memory.needed_at_peak = {made_gib(60), made_gib(30), 0, made_gib(8)};
  p.memory.needed_unused = made_gib(0.5);
  p.memory.out_of_memory.emplace().missing_bytes = 17 * kMadeMiB;
  return p;
}

TEST(Summary, WhatDoesNotFitHasNoTimeAndLacksWhatTheWholeStepLacks) {
  const std::vector<LadderRow> none;
  const std::string text = summary_text(summary_scenario(), without_memory(), &none);
  EXPECT_EQ(lines_in(text)[1], "DOES NOT FIT: needs 100.00 GiB, 40.00 GiB are there, 60.0 GiB short");
  EXPECT_THAT(text, Not(HasSubstr("step time")));
  EXPECT_THAT(text, Not(HasSubstr("limited by")));
  EXPECT_THAT(text, Not(HasSubstr("17")));
  EXPECT_THAT(text, HasSubstr("GiB: weights 60.00, gradients 30.00, activations 8.00, rest 2.00\n"));
  EXPECT_THAT(text, HasSubstr("what would fit  nothing of what was tried\n"));
  EXPECT_THAT(summary_text(summary_scenario(), without_memory(), nullptr), Not(HasSubstr("would fit")));
}

LadderRow made_row(const std::string& label, bool adds, const std::string& set, double needed, bool fits) {
  LadderRow row{label, adds, {set}, {set}, made_memory(), {}};
  row.memory.needed = made_gib(needed);
  row.memory.runs = row.memory.fits = fits;
  if (fits) row.step = made_step();
  return row;
}

TEST(Summary, ALadderNamesTheFlagsAndTheTimeOfWhatFits) {
  const std::vector<LadderRow> rows{
      made_row("bf16", false, "training.precision=bf16", 60, false),
      made_row("checkpointing", true, "training.activation_checkpointing=block", 45, false),
      made_row("LoRA, rank 16", false, "training.lora.rank=16", 22.5, true)};
  EXPECT_EQ(ladder_text(rows, 10), R"(  what would fit        GiB      step  tokens/s  flags (+: with those above)
  bf16                60.00  too much         -  --precision bf16
  + checkpointing     45.00  too much         -  --checkpointing block
  LoRA, rank 16       22.50    200 ms    81,920  --lora 16
)");
  // Rows that do not fit give way to those that do.
  EXPECT_EQ(lines_in(ladder_text(rows, 2)).back(), "  LoRA, rank 16       22.50    200 ms    81,920  --lora 16");
}

TEST(Summary, IsSmallWhateverThePredictionHas) {
  Prediction p = made_prediction();
  p.scenario = std::string("a long title ") + std::string(100, 'x') + " of a scenario";
  p.parallel = made_parallel();
  p.generation = Generation{made_ms(31), made_ms(7), made_gib(0.5)};
  p.step.validated = false;
  p.unread = p.notes = {std::string(70, 'n') + " " + std::string(60, 'm')};
  for (int i = 0; i < 9; ++i)
    p.advice.push_back({"training.optimizer.implementation=fused", made_ms(30), made_gib(2), "half the bytes"});
  Scenario s = summary_scenario();
  s.assumes_precision = true;
  s.training.lora.emplace().frozen = FrozenWeights::nf4;
  s.training.activation_checkpointing = ActivationCheckpointing::block;
  s.measured.step_time = made_ms(160);
  for (const bool fits : {true, false}) {
    p.memory.fits = fits;
    const std::string text = summary_text(s, p, nullptr);
    expect_small(text);
    EXPECT_THAT(lines_in(text)[1], StartsWith(fits ? "FITS" : "MAY NOT FIT"));
  }
  std::vector<LadderRow> rows;
  for (int i = 0; i < 14; ++i)
    rows.push_back(made_row("8 GPUs, FSDP", i % 2 == 1,
                            "cluster=a-cluster-of-a-long-name training.activation_checkpointing=block "
                            "training.parallel.strategy=fsdp training.parallel.data=8",
                            50 - i, i % 5 == 4));
  Prediction large = without_memory();
  large.scenario = p.scenario;
  const std::string text = summary_text(s, large, &rows);
  expect_small(text);
  EXPECT_THAT(text, HasSubstr("  200 ms"));
}

// 81,920 tokens/s and 200 ms: 16,384 tokens a step. 350 W for 8.192e9 / 81,920 = 100,000 s are 9.72 kWh, 27.8 hours.
TEST(Summary, ARunHasStepsTimeEnergyAndPrice) {
  Scenario s = summary_scenario();
  EXPECT_EQ(run_words(s, made_prediction(), 8.192e9), "8.192 B tokens: 500,000 steps, 27.8 hours, 9.722 kWh");
  s.gpu.price_per_hour = 2.0;
  EXPECT_EQ(run_words(s, made_prediction(), 8.192e9), "8.192 B tokens: 500,000 steps, 27.8 hours, 9.722 kWh, 56 USD");
  EXPECT_THAT(run_words(s, made_prediction(), 8.192e10), HasSubstr("11.6 days"));
  EXPECT_THAT(summary_text(s, made_prediction(), nullptr, 8.192e9), HasSubstr("\n  run           8.192 B tokens: "));
  Prediction images = made_prediction();
  images.step.tokens_per_s = 0.0;
  EXPECT_THROW(run_words(s, images, 1e9), UserError);
}

TEST(Summary, TheShortestIsOneLine) {
  const std::string fits = summary_line(summary_scenario(), made_prediction());
  EXPECT_EQ(fits,
            "a made step on nvidia-made: FITS: needs 12.75 of 40.00 GiB; 200 ms (190 ms to 215 ms), 81,920 "
            "tokens/s\n");
  EXPECT_THAT(summary_line(summary_scenario(), without_memory()), Not(HasSubstr(" ms")));
}

TEST(Summary, TitlesWithoutABlankAreCut) {
  for (const char* letter : {"x", "\u00e9"}) {
    Scenario s = summary_scenario();
    s.title.clear();
    for (int i = 0; i < 300; ++i) s.title += letter;
    const std::string text = summary_text(s, without_memory(), nullptr);
    EXPECT_EQ(text.find(s.title), std::string::npos);
    EXPECT_LE(text.find('\n'), 80u);
  }
}

TEST(Summary, ThePartsOfTheMemoryAddUp) {
  for (const char* batch : {"1", "64"}) {
    ScenarioSource source;
    source.file = RIDGELINE_SOURCE_DIR "/scenarios/bert-large-fp32.yaml";
    source.overrides = {{"training.micro_batch", batch, ""}};
    const MemoryPrediction m = predict_memory(load_scenario(source));
    std::int64_t sum = m.context + (m.runs ? m.cached_unused : m.needed_unused);
    for (const std::int64_t part : m.runs ? m.at_peak : m.needed_at_peak) sum += part;
    EXPECT_EQ(sum, m.needed) << batch;
  }
}

}  // namespace
}  // namespace ridgeline
