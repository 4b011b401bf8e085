// The exercises: the shipped ones are asked, explored and answered as a student would.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/report/exercise_measures.h"
#include "sim/report/json/exercise_json.h"
#include "sim/study/exercise/exercise.h"
#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// What a command of the shell prints.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char text[4096];
  for (std::size_t n = 0; (n = std::fread(text, 1, sizeof text, pipe)) > 0;) out.append(text, n);
  ::pclose(pipe);
  return out;
}

/// An exercise and its numbers, measured once for all tests.
struct Solved {
  explicit Solved(const Exercise& which) : e(which), numbers(e, ExerciseMeasures{}), said(json_of("")) {}
  json json_of(const std::string& answer) { return json::parse(exercise_json(e, answer, true, numbers).dump()); }

  Exercise e;
  ExerciseNumbers numbers;
  json said;
};

std::vector<std::unique_ptr<Solved>>& all_solved() {
  static std::vector<std::unique_ptr<Solved>> all = [] {
    std::vector<std::unique_ptr<Solved>> made;
    for (const Exercise& e : shipped_exercises()) made.push_back(std::make_unique<Solved>(e));
    return made;
  }();
  return all;
}

const json& solution(int number) { return all_solved().at(static_cast<std::size_t>(number - 1))->said; }

TEST(Exercise, there_are_at_least_thirty_two_numbered_from_one_in_chapters) {
  const std::vector<Exercise> exercises = shipped_exercises();
  ASSERT_GE(exercises.size(), 32u);
  std::set<std::string> titles;
  for (std::size_t i = 0; i < exercises.size(); ++i) {
    EXPECT_EQ(exercises[i].number, static_cast<int>(i) + 1);
    EXPECT_TRUE(titles.insert(exercises[i].title).second) << exercises[i].title;
  }
  const std::string list = run_program("exercise").out;
  EXPECT_THAT(list, HasSubstr("  32  "));
  // A chapter's exercises have consecutive numbers: its name is listed once, above them.
  std::string chapter;
  std::set<std::string> chapters;
  for (const Exercise& e : exercises)
    if (e.chapter != chapter) {
      EXPECT_TRUE(chapters.insert(chapter = e.chapter).second) << chapter << " comes again at exercise " << e.number;
    }
  for (const std::string& name : chapters) EXPECT_THAT(list, HasSubstr(name + "\n"));
}

TEST(Exercise, each_wrong_answer_of_a_list_gets_its_hint_and_others_that_of_their_side) {
  for (const auto& one : all_solved()) {
    const Exercise& e = one->e;
    const json& s = one->said;
    const auto hint = [&](double answer) {
      const json said = one->json_of(fmt::format("{:.12g}", answer));
      EXPECT_FALSE(said["correct"].get<bool>()) << e.title << ": " << answer << " is right";
      return said.value("hint", "");
    };
    EXPECT_FALSE(e.wrong.empty()) << e.title;
    ASSERT_EQ(s["mistakes"].size(), e.wrong.size());
    for (const json& mistake : s["mistakes"]) {
      EXPECT_EQ(hint(mistake["answer"]), mistake["hint"]) << e.title;
      EXPECT_THAT(mistake["hint"].get<std::string>(), ::testing::Not(HasSubstr("{"))) << e.title;
    }
    const double right = std::abs(s["answer"].get<double>());
    EXPECT_FALSE(hint(right * 1000 + 1000).empty()) << e.title;
    EXPECT_FALSE(hint(-right * 1000 - 1000).empty()) << e.title;
    ASSERT_GE(s["picture"]["bars"].size(), 2u) << e.title;
    for (const json& bar : s["picture"]["bars"]) EXPECT_TRUE(bar["value"].is_number()) << e.title;
    EXPECT_THAT(s["question"].get<std::string>(), ::testing::Not(HasSubstr("{"))) << e.title;
  }
  const ProgramRun told = run_program("exercise 1 --answer 18");
  EXPECT_EQ(told.exit_code, 2);
  EXPECT_THAT(told.out, HasSubstr("fp16"));
}

TEST(Exercise, the_teachers_list_has_all_solutions) {
  const std::string all = run_program("exercise --solution").out;
  for (const auto& one : all_solved()) EXPECT_THAT(all, HasSubstr(fmt::format("Exercise {}: ", one->e.number)));
  EXPECT_THAT(all, HasSubstr("minutes together"));
}

TEST(Exercise, every_answer_is_computed_accepted_and_not_accepted_when_wrong) {
  for (const auto& one : all_solved()) {
    const Exercise& e = one->e;
    const double right = one->said["answer"].get<double>();
    EXPECT_TRUE(std::isfinite(right) && right != 0) << e.title;
    const auto accepted = [&](double answer) { return one->json_of(std::to_string(answer))["correct"].get<bool>(); };
    EXPECT_TRUE(accepted(right)) << e.title;
    EXPECT_TRUE(accepted(right * (1 + 0.9 * e.tolerance))) << e.title;
    EXPECT_FALSE(accepted(right * (1 + 1.2 * e.tolerance))) << e.title;
    EXPECT_FALSE(accepted(right * (1 - 1.2 * e.tolerance))) << e.title;
    EXPECT_THAT(one->said["explanation"].get<std::string>(), ::testing::Not(HasSubstr("{"))) << e.title;
    EXPECT_THAT(one->said["explanation"].get<std::string>(), ::testing::Not(HasSubstr("nan"))) << e.title;
  }
  // The program says the same as its parts.
  const json printed = json::parse(run_program("exercise 15 --solution --format json").out);
  EXPECT_EQ(printed["answer"], solution(15)["answer"]);
  const auto answered = [&](double share) {
    return run_program(fmt::format("exercise 15 --answer={}", share * printed["answer"].get<double>())).exit_code;
  };
  EXPECT_EQ(answered(1), 0);
  EXPECT_EQ(answered(1.2), 2);
}

TEST(Exercise, commands_to_explore_run_from_any_folder) {
  std::set<std::string> seen;
  for (const Exercise& e : shipped_exercises()) {
    EXPECT_FALSE(e.explore.empty()) << e.title;
    // As they are pasted: from another folder, with the program on no path.
    const std::string asked = fmt::format("cd / && PATH=/usr/bin:/bin " RIDGELINE_BINARY " exercise {}", e.number);
    const std::string shown = output_of(asked);
    EXPECT_THAT(shown, HasSubstr("to explore"));
    EXPECT_EQ(shown.find(RIDGELINE_SOURCE_DIR), shown.npos) << "a place of this machine";
    std::istringstream lines(shown);
    for (std::string line; std::getline(lines, line);) {
      // One word may be longer than a line.
      const std::size_t word = line.find_first_not_of(' ');
      if (line.ends_with(" \\")) line.resize(line.size() - 2);
      EXPECT_TRUE(line.size() <= 80 || line.find(' ', word) == line.npos || line[word] == '\'') << line;
    }
    const json told = json::parse(output_of(asked + " --format json"));
    for (const json& command : told["explore"]) {
      const std::string pasted = command.get<std::string>();
      if (!seen.insert(pasted).second) continue;
      EXPECT_EQ(std::system(("cd / && (PATH=/usr/bin:/bin; " + pasted + ") >/dev/null").c_str()), 0) << pasted;
    }
  }
}

TEST(Exercise, where_somebody_measured_the_simulated_answer_is_not_far_off) {
  std::size_t measured = 0;
  for (const auto& one : all_solved()) {
    const Exercise& e = one->e;
    if (e.measured.empty()) continue;
    ++measured;
    const json& s = one->said;
    const double ratio = s["answer"].get<double>() / s["measured"]["value"].get<double>();
    EXPECT_GT(ratio, 0.75) << e.title;
    EXPECT_LT(ratio, 1.35) << e.title;
  }
  EXPECT_GE(measured, 4u);
}

TEST(Exercise, answers_may_have_units_and_mistakes_are_told) {
  const double right = solution(15)["answer"].get<double>();  // GB
  EXPECT_EQ(run_program("exercise 15 --answer \"" + std::to_string(right * 1000) + " MB\"").exit_code, 0);
  const auto fails = [](const std::string& arguments, const char* message) {
    const ProgramRun run = run_program("exercise " + arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  };
  fails("15 --answer \"3 ms\"", "in GB");
  fails("15 --answer many", "expected a number");
  fails("99", "1 to ");
  fails("--answer 3", "which one");
}

}  // namespace
}  // namespace ridgeline
