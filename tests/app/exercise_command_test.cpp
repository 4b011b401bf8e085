// The exercises: the shipped ones are asked, explored and answered as a student would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/study/exercise/exercise.h"
#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json solution(int number) {
  return json::parse(run_program("exercise " + std::to_string(number) + " --solution --format json").out);
}

TEST(Exercise, there_are_at_least_sixteen_numbered_from_one) {
  const std::vector<Exercise> exercises = shipped_exercises();
  ASSERT_GE(exercises.size(), 16u);
  for (std::size_t i = 0; i < exercises.size(); ++i) EXPECT_EQ(exercises[i].number, static_cast<int>(i) + 1);
  EXPECT_THAT(run_program("exercise").out, HasSubstr("  16  "));
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
      const std::string whole =
          "cd " RIDGELINE_SOURCE_DIR " && PATH=$(dirname " RIDGELINE_BINARY "):$PATH && " + command;
      EXPECT_EQ(std::system(("(" + whole + ") >/dev/null").c_str()), 0) << command;
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
