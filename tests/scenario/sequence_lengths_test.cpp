// Sequences of several lengths: their distribution, the batches made of them, and what is refused, with its place.
#include "sim/scenario/sequence_lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <string>

#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/report/text/workload_words.h"
#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::sequence_lengths_test {
namespace {

using ::testing::HasSubstr;

/// Three lines; what is given stands on the fourth.
ScenarioSource text_with(const std::string& training, const std::string& model = "gpt2",
                         const std::string& hardware = "nvidia-h100-sxm5-80gb") {
  return {.file = {},
          .text = "hardware: " + hardware + "\nmodel: " + model + "\ntraining:\n  " + training + "\n",
          .text_name = "lengths.yaml",
          .overrides = {}};
}

std::string refusal_of(const std::string& training, const std::string& model = "gpt2") {
  try {
    static_cast<void>(load_scenario(text_with(training, model)));
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

double mean_of(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

TrainingDescription batch_of(std::int64_t micro_batch, std::int64_t ranks = 1) {
  TrainingDescription training;
  training.micro_batch = micro_batch;
  training.parallel.data = ranks;
  return training;
}

TEST(SequenceLengths, OfAMeanAndALongestHaveBoth) {
  for (const auto& [mean, longest] : {std::pair{212.0, 768}, {85.0, 1304}, {1000.0, 1000}, {3.0, 512}}) {
    const std::vector<std::int64_t> lengths = log_normal_lengths(mean, longest);
    EXPECT_EQ(lengths.size(), static_cast<std::size_t>(kQuantiles));
    EXPECT_TRUE(std::is_sorted(lengths.begin(), lengths.end()));
    EXPECT_EQ(lengths.back(), longest);
    EXPECT_NEAR(mean_of(lengths), mean, 0.05 * mean + 0.5);
  }
}

// Four numbers from 1 to 100: the mean of the greatest is 80.2 (k^4 - (k-1)^4 of 100^4 have the greatest k or less).
TEST(SequenceLengths, ArePaddedToTheLongestOfAMicroBatch) {
  SequenceLengths lengths;
  for (std::int64_t i = 1; i <= 100; ++i) lengths.drawn.push_back(i);
  EXPECT_NEAR(padded_mean(lengths, batch_of(1)), 50.5, 0.1);
  EXPECT_NEAR(padded_mean(lengths, batch_of(4)), 80.5, 0.5);
  double before = 0;
  for (const std::int64_t rows : {1, 2, 4, 16, 256}) {
    const double mean = mean_of(padded_lengths(lengths, batch_of(rows)));
    EXPECT_GT(mean, before);
    EXPECT_LE(mean, 100.0);
    before = mean;
  }
  lengths.grouped = true;
  EXPECT_EQ(padded_lengths(lengths, batch_of(16)), padded_lengths(lengths, batch_of(1)));
  EXPECT_NEAR(padded_mean(lengths, batch_of(16)), lengths.mean(), 0.1);
}

TEST(SequenceLengths, OfSeveralRanksAreThoseOfTheSlowest) {
  const SequenceLengths lengths{log_normal_lengths(212, 768)};
  EXPECT_GT(mean_of(padded_lengths(lengths, batch_of(4, 8))), 1.15 * mean_of(padded_lengths(lengths, batch_of(4))));
  // Many micro-batches a step level the ranks.
  TrainingDescription many = batch_of(4, 8);
  many.gradient_accumulation = 16;
  EXPECT_LT(mean_of(padded_lengths(lengths, many)), mean_of(padded_lengths(lengths, batch_of(4, 8))));
  EXPECT_EQ(padded_lengths(lengths, many), padded_lengths(lengths, many));
}

TEST(SequenceLengths, FillARowOneAfterTheOther) {
  const std::vector<std::int64_t> row = packed_row({log_normal_lengths(212, 768)}, 4096);
  EXPECT_EQ(std::accumulate(row.begin(), row.end(), std::int64_t{0}), 4096);
  EXPECT_GT(row.size(), 12U);
  EXPECT_LT(row.size(), 28U);
  const Scenario s = load_scenario(text_with(
      "{micro_batch: 1, sequence_length: 1024, precision: amp-bf16, lengths: {mean: 200, longest: 700, batches: "
      "packed}}"));
  EXPECT_FALSE(s.lengths);
  EXPECT_GT(s.training.packed_lengths.size(), 2U);
}

TEST(SequenceLengths, OfOneLengthAreAScenarioOfThatLength) {
  Session session;
  const Scenario with = load_scenario(text_with("{micro_batch: 2, lengths: [128], precision: amp-bf16}")),
                 without = load_scenario(text_with("{micro_batch: 2, sequence_length: 128, precision: amp-bf16, "
                                                   "attention: flash}"));
  EXPECT_EQ(with.training.sequence_length, 128);
  Scenario plain = with;
  plain.lengths.reset();
  const Seconds time = StepRun(session, plain, "analytic").step().time;
  EXPECT_NEAR(ratio(StepRun(session, with, "analytic").step().time, time), 1.0, 1e-12);
  EXPECT_EQ(without.training.sequence_length, 128);
}

// One row a micro-batch is never padded: time lies between those of the ends, memory is that of the longest.
TEST(SequenceLengths, TakeTheTimeOfTheMeanAndTheMemoryOfTheLongest) {
  Session session;
  const auto run = [&](const std::string& keys) {  // on a GPU that does not wait for its host
    return StepRun(session,
                   load_scenario(text_with("{micro_batch: 1, precision: fp32, " + keys + "}", "gpt2", "nvidia-t4")),
                   "analytic");
  };
  const StepRun some = run("lengths: [256, 512, 1024]"), shortest = run("sequence_length: 256"),
                longest = run("sequence_length: 1024");
  EXPECT_GT(some.step().time, shortest.step().time);
  EXPECT_LT(some.step().time, longest.step().time);
  EXPECT_LE(some.step().low, some.step().time);
  EXPECT_EQ(some.memory().needed, longest.memory().needed);
  EXPECT_NEAR(some.step().tokens_per_s * some.step().time.value(), (256 + 512 + 1024) / 3.0, 1e-6);
  EXPECT_THAT(workload_line(some.scenario()), HasSubstr("1024 at most; 0 % of the tokens are padding"));
}

TEST(SequenceLengths, AreCutAtTheLengthOfASequence) {
  const Scenario s = load_scenario(text_with("{micro_batch: 1, sequence_length: 300, lengths: [100, 200, 900]}"));
  EXPECT_EQ(s.lengths->longest(), 300);
}

TEST(SequenceLengths, AreReadFromAFile) {
  const std::string name = temporary_path("lengths.txt");
  std::ofstream(name) << "[12, 40,\n7]";
  const Scenario s = load_scenario(text_with("{micro_batch: 1, lengths: " + name + "}"));
  EXPECT_EQ(s.lengths->drawn, (std::vector<std::int64_t>{7, 12, 40}));
  std::ofstream(name) << "12 -4";
  EXPECT_THAT(refusal_of("{micro_batch: 1, lengths: " + name + "}"), HasSubstr("\"-4\""));
}

TEST(SequenceLengths, AreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal_of("{micro_batch: 1, lengths: {mean: 900, longest: 100}}"),
              HasSubstr("lengths.yaml:4:36: training.lengths.mean: exceeds the longest"));
  EXPECT_THAT(refusal_of("{micro_batch: 1, lengths: {mean: 2, longest: 1000}}"), HasSubstr("200 times the mean"));
  EXPECT_THAT(refusal_of("{micro_batch: 1, lengths: nowhere.txt}"),
              HasSubstr("training.lengths: there is no such file"));
  EXPECT_THAT(refusal_of("{micro_batch: 1, sequence_length: 256, packed_lengths: 64, precision: bf16, lengths: [3]}"),
              HasSubstr("training.lengths: goes without packed_lengths"));
  EXPECT_THAT(refusal_of("{micro_batch: 1, lengths: [20]}", "vit-base"), HasSubstr("training.lengths: "));
}

}  // namespace
}  // namespace ridgeline::sequence_lengths_test
