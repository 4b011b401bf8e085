// The exercises: the shipped ones are asked, explored and answered as a student would.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/study/exercise/exercise.h"
#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What a command of the shell prints.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char text[4096];
  for (std::size_t n = 0; (n = std::fread(text, 1, sizeof text, pipe)) > 0;) out.append(text, n);
  ::pclose(pipe);
  return out;
}

json solution(int number) {
  return json::parse(run_program("exercise " + std::to_string(number) + " --solution --format json").out);
}

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
  // A chapter's name stands once, above its exercises.
  std::string chapter;
  std::set<std::string> chapters;
  for (const Exercise* e : in_chapters(exercises))
    if (e->chapter != chapter) EXPECT_TRUE(chapters.insert(chapter = e->chapter).second) << chapter;
  for (const std::string& name : chapters) EXPECT_THAT(list, HasSubstr(name + "\n"));
}

TEST(Exercise, each_wrong_answer_of_a_list_gets_its_hint_and_others_that_of_their_side) {
  for (const Exercise& e : shipped_exercises()) {
    const json s = solution(e.number);
    const double right = s["answer"].get<double>();
    const auto hint = [&](double answer) {
      const json said =
          json::parse(run_program(fmt::format("exercise {} --answer={:.12g} --format json", e.number, answer)).out);
      EXPECT_FALSE(said["correct"].get<bool>()) << e.title << ": " << answer << " is right";
      return said.value("hint", "");
    };
    EXPECT_FALSE(e.wrong.empty()) << e.title;
    ASSERT_EQ(s["mistakes"].size(), e.wrong.size());
    for (const json& mistake : s["mistakes"]) {
      EXPECT_EQ(hint(mistake["answer"]), mistake["hint"]) << e.title;
      EXPECT_THAT(mistake["hint"].get<std::string>(), testing::Not(HasSubstr("{"))) << e.title;
    }
    EXPECT_FALSE(hint(std::abs(right) * 1000 + 1000).empty()) << e.title;
    EXPECT_FALSE(hint(-std::abs(right) * 1000 - 1000).empty()) << e.title;
    ASSERT_GE(s["picture"]["bars"].size(), 2u) << e.title;
    for (const json& bar : s["picture"]["bars"]) EXPECT_TRUE(bar["value"].is_number()) << e.title;
    EXPECT_GE(s["minutes"].get<int>(), 1);
    EXPECT_THAT(s["question"].get<std::string>(), testing::Not(HasSubstr("{"))) << e.title;
  }
}

TEST(Exercise, the_teachers_list_has_all_solutions) {
  const std::string all = run_program("exercise --solution").out;
  const json listed = json::parse(run_program("exercise --solution --format json").out);
  ASSERT_EQ(listed.size(), shipped_exercises().size());
  for (const json& one : listed) {
    EXPECT_TRUE(one["answer"].is_number());
    EXPECT_THAT(all, HasSubstr(fmt::format("Exercise {}: ", one["number"].get<int>())));
  }
  EXPECT_THAT(all, HasSubstr("minutes together"));
}

TEST(Exercise, every_answer_is_computed_accepted_and_not_accepted_when_wrong) {
  for (const Exercise& e : shipped_exercises()) {
    const json s = solution(e.number);
    const double right = s["answer"].get<double>();
    EXPECT_TRUE(std::isfinite(right) && right != 0) << e.title;
    const auto answered = [&](double answer) {
      return run_program("exercise " + std::to_string(e.number) + " --answer=" + std::to_string(answer)).exit_code;
    };
    EXPECT_EQ(answered(right), 0) << e.title;
    EXPECT_EQ(answered(right * (1 + 0.9 * e.tolerance)), 0) << e.title;
    EXPECT_EQ(answered(right * (1 + 1.2 * e.tolerance)), 2) << e.title;
    EXPECT_EQ(answered(right * (1 - 1.2 * e.tolerance)), 2) << e.title;
    EXPECT_THAT(s["explanation"].get<std::string>(), testing::Not(HasSubstr("{"))) << e.title;
    EXPECT_THAT(s["explanation"].get<std::string>(), testing::Not(HasSubstr("nan"))) << e.title;
    EXPECT_THAT(run_program("exercise " + std::to_string(e.number)).out, HasSubstr("to explore"));
  }
}

TEST(Exercise, commands_to_explore_run) {
  std::set<std::string> seen;
  for (const Exercise& e : shipped_exercises()) {
    EXPECT_FALSE(e.explore.empty()) << e.title;
    for (const std::string& command : e.explore) {
      if (!seen.insert(command).second) continue;
      // As it is pasted: from another folder, with the program on no path.
      EXPECT_THAT(command, testing::Not(HasSubstr("\n")));
    }
    const std::string asked = "cd / && PATH=/usr/bin:/bin " RIDGELINE_BINARY " exercise " + std::to_string(e.number);
    const json told = json::parse(output_of(asked + " --format json"));
    ASSERT_EQ(told["explore"].size(), e.explore.size());
    for (const json& command : told["explore"]) {
      const std::string pasted = command.get<std::string>();
      EXPECT_EQ(std::system(("cd / && (PATH=/usr/bin:/bin; " + pasted + ") >/dev/null").c_str()), 0) << pasted;
      EXPECT_THAT(output_of(asked), HasSubstr(pasted));
    }
  }
}

TEST(Exercise, where_somebody_measured_the_simulated_answer_is_not_far_off) {
  std::size_t measured = 0;
  for (const Exercise& e : shipped_exercises()) {
    if (e.measured.empty()) continue;
    ++measured;
    const json s = solution(e.number);
    const double ratio = s["answer"].get<double>() / s["measured"]["value"].get<double>();
    EXPECT_GT(ratio, 0.75) << e.title;
    EXPECT_LT(ratio, 1.35) << e.title;
  }
  EXPECT_GE(measured, 4u);
}

TEST(Exercise, answers_may_have_units_and_mistakes_are_told) {
  const double right = solution(4)["answer"].get<double>();  // GB
  EXPECT_EQ(run_program("exercise 4 --answer \"" + std::to_string(right * 1000) + " MB\"").exit_code, 0);
  const auto fails = [](const std::string& arguments, const char* message) {
    const ProgramRun run = run_program("exercise " + arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  };
  fails("4 --answer \"3 ms\"", "in GB");
  fails("4 --answer many", "expected a number");
  fails("99", "1 to ");
  fails("--answer 3", "which one");
}

}  // namespace
}  // namespace ridgeline
