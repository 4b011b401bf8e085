// ridgeline compare, as a person or a script runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Compare, json_holds_every_side_and_differences_that_add_up) {
  const ProgramRun run = run_program(
      "compare scenarios/gpt2-ladder-h200/3-bf16.yaml scenarios/gpt2-ladder-h200/4-flash-attention.yaml --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json c = json::parse(run.out);
  ASSERT_EQ(c["scenarios"].size(), 2u);
  ASSERT_EQ(c["differences"].size(), 1u);
  const json& d = c["differences"][0];
  double time = 0;
  for (const json& part : d["classes"]) time += part["difference_s"].get<double>();
  const double whole =
      c["scenarios"][1]["step"]["time_s"].get<double>() - c["scenarios"][0]["step"]["time_s"].get<double>();
  EXPECT_NEAR(time, whole, 1e-9);
  EXPECT_NEAR(d["time_s"].get<double>(), whole, 1e-12);
  EXPECT_EQ(d["classes"][0]["class"], "attention");
  EXPECT_THAT(d["classes"][0]["reason"].get<std::string>(), HasSubstr("score matrix"));
  // What predict says of the second file is what compare says of it.
  const json alone = json::parse(
      run_program("predict scenarios/gpt2-ladder-h200/4-flash-attention.yaml --no-advice --format json").out);
  EXPECT_EQ(c["scenarios"][1]["step"], alone["step"]);
  EXPECT_EQ(c["scenarios"][1]["memory"], alone["memory"]);
}

TEST(Compare, gpus_and_changes_stand_beside_one_scenario) {
  const ProgramRun run = run_program(
      "compare scenarios/bert-large-fp32.yaml nvidia-a100-sxm4-80gb --with \"training.precision=tf32\" --with "
      "\"training.attention=sdpa hardware.dram.bandwidth=1.8 TB/s\"");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"B against A", "C against A", "D against A", "on tensor cores", "GPU waits"})
    EXPECT_THAT(run.out, HasSubstr(text));
  EXPECT_EQ(
      run_program("compare --model gpt2 --batch 2 --seq 256 --precision fp32 nvidia-t4 nvidia-rtx-3090").exit_code, 0);
}

TEST(Compare, mistakes_are_told) {
  const auto fails = [](const std::string& arguments, const char* message) {
    const ProgramRun run = run_program("compare " + arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  };
  fails("scenarios/bert-large-fp32.yaml", "two to 6 sides");
  fails("scenarios/bert-large-fp32.yaml scenarios/nanogpt/flash-attention.yaml nvidia-t4", "beside one scenario");
  fails("scenarios/bert-large-fp32.yaml --with training.micro_bach=2", "did you mean");
  fails("scenarios/bert-large-fp32.yaml --with nonsense", "KEY=VALUE");
  fails("scenarios/bert-large-fp32.yaml nvidia-a101", "nvidia-a101");
}

}  // namespace
}  // namespace ridgeline
