// An exercise as its file has it, and the numbers in its texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/config_error.h"
#include "sim/config/parse_yaml.h"
#include "sim/study/exercise/exercise.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kWhole = R"(
title: how long
chapter: kernels
minutes: 12
question: how long is {t} of {whole}?
explore: [ridgeline one, ridgeline two]
measures:
  t: {predict: a.yaml, set: {hardware.sm.count: 7, host.scale: 2}, get: step.time_s}
  k: {kernel: '{"op": "mm"}', hardware: nvidia-t4, get: time_us}
  o: {occupancy: {threads: 256, registers: 40, shared: 3 KiB}, hardware: nvidia-l4, get: blocks}
  h: {hardware: nvidia-a40, get: dram.bandwidth}
  m: {model: gpt2, get: layers}
  whole: t + k
answer: whole / 2
unit: ms
tolerance: 0.05
measured: {value: 3 * t, source: somebody}
wrong:
  - {answer: whole, hint: 'that is the whole of {whole:2}'}
  - {answer: t, hint: that is a part}
low: more
high: less
explanation: because
picture: {title: bars, unit: s, bars: {one: t, two: k}}
view: memory
)";

Exercise exercise_of(const std::string& text) {
  return read_exercise(config::parse_yaml(text, "07-name.yaml"), "x/07-name.yaml");
}

std::string refusal_of(const std::string& from, const std::string& to) {
  std::string text = kWhole;
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  text.replace(place, from.size(), to);
  try {
    (void)exercise_of(text);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(ExerciseFile, IsReadWhole) {
  const Exercise e = exercise_of(kWhole);
  EXPECT_EQ(e.number, 7);
  EXPECT_EQ(e.file, "x/07-name.yaml");
  EXPECT_EQ(e.title, "how long");
  EXPECT_EQ(e.chapter, "kernels");
  EXPECT_EQ(e.minutes, 12);
  EXPECT_EQ(e.question, "how long is {t} of {whole}?");
  EXPECT_THAT(e.explore, ElementsAre("ridgeline one", "ridgeline two"));
  EXPECT_EQ(e.answer, "whole / 2");
  EXPECT_EQ(e.unit, "ms");
  EXPECT_EQ(e.tolerance, 0.05);
  EXPECT_EQ(e.measured, "3 * t");
  EXPECT_EQ(e.measured_source, "somebody");
  ASSERT_EQ(e.wrong.size(), 2u);
  EXPECT_EQ(e.wrong[1].answer, "t");
  EXPECT_EQ(e.wrong[1].hint, "that is a part");
  EXPECT_EQ(e.low, "more");
  EXPECT_EQ(e.high, "less");
  EXPECT_EQ(e.explanation, "because");
  EXPECT_EQ(e.view, "memory");
  EXPECT_EQ(e.picture.title, "bars");
  EXPECT_EQ(e.picture.unit, "s");
  ASSERT_EQ(e.picture.bars.size(), 2u);
  EXPECT_EQ(e.picture.bars[1].label, "two");
  EXPECT_EQ(e.picture.bars[1].value, "k");
  ASSERT_EQ(e.measures.size(), 6u);
  using Kind = MeasureSource::Kind;
  const MeasureSource &t = e.measures[0], &k = e.measures[1], &o = e.measures[2], &h = e.measures[3],
                      &m = e.measures[4], &whole = e.measures[5];
  EXPECT_EQ(t.kind, Kind::prediction);
  EXPECT_EQ(t.name + " " + t.subject + " " + t.key, "t a.yaml step.time_s");
  ASSERT_EQ(t.changes.size(), 2u);
  EXPECT_EQ(t.changes[0].key + "=" + t.changes[0].value, "hardware.sm.count=7");
  EXPECT_EQ(t.changes[1].key + "=" + t.changes[1].value, "host.scale=2");
  EXPECT_EQ(t.changes[1].origin, "07-name.yaml:8:64 (host.scale=2)");
  EXPECT_EQ(k.kind, Kind::kernel);
  EXPECT_EQ(k.subject + " " + k.hardware + " " + k.key, "{\"op\": \"mm\"} nvidia-t4 time_us");
  EXPECT_EQ(o.kind, Kind::occupancy);
  EXPECT_EQ(o.hardware + " " + o.key, "nvidia-l4 blocks");
  EXPECT_EQ(o.threads, 256);
  EXPECT_EQ(o.registers, 40);
  EXPECT_EQ(o.shared_bytes, 3072);
  EXPECT_EQ(h.kind, Kind::hardware);
  EXPECT_EQ(h.subject + " " + h.key, "nvidia-a40 dram.bandwidth");
  EXPECT_EQ(m.kind, Kind::model);
  EXPECT_EQ(m.subject + " " + m.key, "gpt2 layers");
  EXPECT_EQ(whole.expression, "t + k");
  for (const MeasureSource* one : {&t, &k, &o, &h, &m}) EXPECT_FALSE(one->expression);
}

TEST(ExerciseFile, SaysNothingWhereItNeedNot) {
  std::string text = kWhole;
  for (const std::string line : {"unit: ms\n", "measured: {value: 3 * t, source: somebody}\n", "view: memory\n"})
    text.erase(text.find(line), line.size());
  text.replace(text.find("unit: s, "), 9, "");
  const Exercise e = exercise_of(text);
  EXPECT_EQ(e.unit + e.measured + e.measured_source + e.picture.unit, "");
  EXPECT_EQ(e.view, "overview");
}

TEST(ExerciseFile, MistakesAreToldWithTheirKey) {
  EXPECT_THAT(refusal_of("minutes: 12", "minutes: 0"), HasSubstr("minutes"));
  EXPECT_THAT(refusal_of("minutes: 12", "minutes: 241"), HasSubstr("minutes"));
  EXPECT_EQ(refusal_of("minutes: 12", "minutes: 240"), "none");
  EXPECT_EQ(refusal_of("threads: 256", "threads: 1024"), "none");
  EXPECT_THAT(refusal_of("threads: 256", "threads: 1025"), HasSubstr("threads"));
  EXPECT_EQ(refusal_of("registers: 40", "registers: 255"), "none");
  EXPECT_THAT(refusal_of("registers: 40", "registers: 256"), HasSubstr("registers"));
  EXPECT_EQ(refusal_of("shared: 3 KiB", "shared: 0 B"), "none");
  EXPECT_THAT(refusal_of("tolerance: 0.05", "tolerance: 1.5"), HasSubstr("tolerance"));
  EXPECT_THAT(refusal_of("set: {hardware.sm.count: 7, host.scale: 2}", "set: 7"),
              HasSubstr("expected a mapping of keys to values"));
  EXPECT_THAT(refusal_of("bars: {one: t, two: k}", "bars: [t]"),
              HasSubstr("expected a mapping of labels to expressions"));
  EXPECT_THAT(refusal_of("view: memory", "view: nothing"), HasSubstr("view"));
  EXPECT_THAT(refusal_of("low: more", "lower: more"), HasSubstr("lower"));
}

/// t is 3, k is 0.5, and each is measured once.
struct Numbers3 {
  Exercise exercise = exercise_of(kWhole);
  std::vector<std::string> measured;
  ExerciseNumbers numbers{exercise, [this](const MeasureSource& source) {
                            measured.push_back(source.name);
                            return source.name == "t" ? 3.0 : source.name == "k" ? 0.5 : 1234567.0;
                          }};
};

TEST(ExerciseNumbersTest, AreMeasuredOnce) {
  Numbers3 n;
  EXPECT_EQ(n.numbers.evaluate("t + 2 * whole"), 3 + 2 * 3.5);
  EXPECT_EQ(n.numbers.answer(), 1.75);
  EXPECT_EQ(n.numbers.evaluate("answer * 4 + k"), 7.5);
  EXPECT_THAT(n.measured, ElementsAre("t", "k"));
  try {
    (void)n.numbers.evaluate("t + x");
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no measure is called 'x'"));
  }
}

TEST(ExerciseNumbersTest, MayBeOfEachOtherButNotOfThemselves) {
  std::string text = kWhole, chain;
  text.replace(text.find("  whole: t + k\n"), 15, "  whole: t + part\n  part: whole\n");
  Exercise round = exercise_of(text);
  ExerciseNumbers numbers(round, [](const MeasureSource&) { return 1.0; });
  try {
    (void)numbers.evaluate("whole");
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is defined by itself"));
  }
  for (int i = 1; i <= 49; ++i) chain += "  n" + std::to_string(i) + ": n" + std::to_string(i - 1) + " + 1\n";
  text = kWhole;
  text.replace(text.find("  whole: t + k\n"), 15, "  n0: t\n" + chain + "  whole: n48\n");
  Exercise deep = exercise_of(text);
  ExerciseNumbers of_deep(deep, [](const MeasureSource&) { return 1.0; });
  EXPECT_EQ(of_deep.evaluate("n40"), 41.0);
  EXPECT_EQ(of_deep.evaluate("n49"), 50.0);
}

// {name}, {expression} and {name:digits}; three digits where none are said; braces that do not close stay.
TEST(ExerciseNumbersTest, FillTexts) {
  Numbers3 n;
  EXPECT_EQ(n.numbers.filled("nothing"), "nothing");
  EXPECT_EQ(n.numbers.filled(""), "");
  EXPECT_EQ(n.numbers.filled("{t}"), "3");
  EXPECT_EQ(n.numbers.filled("a {t} b {k} c"), "a 3 b 0.5 c");
  EXPECT_EQ(n.numbers.filled("{t}{k}"), "30.5");
  EXPECT_EQ(n.numbers.filled("{t / 7}"), "0.429");
  EXPECT_EQ(n.numbers.filled("{t / 7:2} {t / 7:5}."), "0.43 0.42857.");
  EXPECT_EQ(n.numbers.filled("{h:2} {h:12}"), "1234567 1234567");
  EXPECT_EQ(n.numbers.filled("{t} of {whole"), "3 of {whole");
  EXPECT_EQ(n.numbers.filled("{answer:4}"), "1.75");
}

TEST(ExerciseNumbersTest, DigitsThatSayNothingAreLeftOut) {
  EXPECT_EQ(significant_digits(0.123456, 3), "0.123");
  EXPECT_EQ(significant_digits(999.4, 3), "999");
  EXPECT_EQ(significant_digits(1000.0, 3), "1000");
  EXPECT_EQ(significant_digits(-12345.6, 3), "-12346") << "no exponent";
  EXPECT_EQ(significant_digits(99.96, 2), "1e+02") << "below a hundred it is two digits";
  EXPECT_EQ(significant_digits(100.0, 2), "100");
  EXPECT_EQ(significant_digits(0.0, 2), "0");
}

TEST(ExerciseAnswers, AreInTheUnitOfTheExercise) {
  Exercise e = exercise_of(kWhole);
  EXPECT_EQ(answer_from("12", e), 12.0);
  EXPECT_EQ(answer_from("1.5e2", e), 150.0);
  EXPECT_EQ(answer_from("-3", e), -3.0);
  EXPECT_NEAR(answer_from("12 ms", e), 12.0, 1e-9);
  EXPECT_NEAR(answer_from("2 s", e), 2000.0, 1e-9);
  EXPECT_NEAR(answer_from("40 us", e), 0.04, 1e-12);
  const auto refused = [&](const std::string& text) {
    try {
      (void)answer_from(text, e);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refused("soon"), "answer 'soon': expected a number, in ms if it has no unit");
  EXPECT_EQ(refused("3 GB"), "answer '3 GB': the answer is in ms");
  e.unit.clear();
  EXPECT_EQ(answer_from("12", e), 12.0);
  EXPECT_EQ(refused("soon"), "answer 'soon': expected a number");
  EXPECT_EQ(refused("3 GB"), "answer '3 GB': the answer is a plain number");
}

TEST(ExerciseAnswers, AreRightWithinTheTolerance) {
  Exercise e = exercise_of(kWhole);
  e.tolerance = 0.25;
  EXPECT_TRUE(is_right(100.0, 80.0, e));
  EXPECT_TRUE(is_right(60.0, 80.0, e));
  EXPECT_FALSE(is_right(100.1, 80.0, e));
  EXPECT_FALSE(is_right(59.9, 80.0, e));
  EXPECT_TRUE(is_right(-100.0, -80.0, e));
  EXPECT_FALSE(is_right(80.0, -80.0, e));
}

// The nearest mistake within the tolerance, the first of two as near; else the side.
TEST(ExerciseAnswers, GetTheHintOfTheNearestMistake) {
  Numbers3 n;
  n.exercise.tolerance = 0.2;
  EXPECT_EQ(hint_for(3.5, n.exercise, n.numbers), "that is the whole of 3.5");
  EXPECT_EQ(hint_for(3.3, n.exercise, n.numbers), "that is the whole of 3.5") << "0.2 from 3.5, 0.3 from 3";
  EXPECT_EQ(hint_for(3.2, n.exercise, n.numbers), "that is a part");
  EXPECT_EQ(hint_for(3.25, n.exercise, n.numbers), "that is the whole of 3.5");
  EXPECT_EQ(hint_for(2.5, n.exercise, n.numbers), "that is a part");
  EXPECT_EQ(hint_for(2.3, n.exercise, n.numbers), "less") << "the answer is 1.75";
  EXPECT_EQ(hint_for(1.0, n.exercise, n.numbers), "more");
  EXPECT_EQ(hint_for(9.0, n.exercise, n.numbers), "less");
}

}  // namespace
}  // namespace ridgeline
