// The first answer of predict: the verdict, one screen, advice that the program takes, flags that are short for keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// The verdict in the second line, and all of it on one screen; a recorded step is shown beside what was recorded.
void expect_first_answer(const std::string& text) {
  if (text.find("  asked  ") == text.npos) return;
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  EXPECT_LE(lines.size(), 18u) << text;
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << text;
  const bool fits = lines[1].starts_with("FITS") || lines[1].starts_with("MAY NOT FIT");
  EXPECT_TRUE(fits || lines[1].starts_with("DOES NOT FIT")) << text;
  EXPECT_EQ(fits, text.find("  step time  ") != text.npos) << "a time without the memory\n" << text;
}

TEST(Predict, TheFirstAnswerIsOneScreenAndItsAdviceIsTaken) {
  const std::string base = "predict --model llama-3-8b --hardware nvidia-rtx-3090 --batch 1 --seq 1024 ";
  const ProgramRun run = run_program(base);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  expect_first_answer(run.out);
  EXPECT_THAT(run.out, HasSubstr("bf16 because nothing was said"));
  EXPECT_THAT(run.out, HasSubstr("--lora 16\n"));
  EXPECT_THAT(run_program(base + "--lora 16").out, Not(HasSubstr("DOES NOT FIT")));
  EXPECT_THAT(run_program(base + "--qlora 16 --quiet").out, HasSubstr(": FITS: "));
  const std::string explained = run_program(base + "--explain").out;
  EXPECT_THAT(explained, HasSubstr("if it had the memory"));
  EXPECT_THAT(explained, HasSubstr("what would fit"));
  EXPECT_EQ(run_program(base + "--explain --quiet").exit_code, 2);
}

// A refused change is no advice: torch.compile beside weights of four bits, 8-bit states of Megatron-LM.
TEST(Predict, NoAdviceIsRefused) {
  for (const char* asked :
       {"predict scenarios/adapters/llama-7b-four-bits-rtx3090.yaml ",
        "predict --model llama-3-8b --hardware nvidia-a100-sxm4-80gb --batch 2 --seq 512 --lora 8 ",
        "predict --model bert-base --cluster dgx-a100 --parallel strategy=fsdp --batch 8 --seq 128 "}) {
    const json p = json::parse(run_program(std::string(asked) + "--format json").out);
    for (const json& advice : p["advice"]) {
      std::string sets = advice["change"].get<std::string>();
      for (std::size_t at = sets.find(' '); at != sets.npos; at = sets.find(' ', at + 7))
        sets.replace(at, 1, " --set ");
      const ProgramRun run = run_program(asked + ("--quiet --set " + sets));
      EXPECT_EQ(run.exit_code, 0) << asked << sets << run.err;
    }
  }
}

TEST(Predict, FlagsOfAModelInUseAreKeysOfInference) {
  const std::string model = "predict --model gpt2 --hardware nvidia-t4 --format json --no-advice ";
  const json flags = json::parse(run_program(model + "--prompt 64 --generate 4 --batch 2 --precision fp32").out);
  const json sets = json::parse(run_program(model + "--set inference.prompt_length=64 --set inference.new_tokens=4 "
                                                    "--set inference.sequences=2 --set inference.precision=fp32")
                                    .out);
  EXPECT_EQ(flags["step"], sets["step"]);
  EXPECT_EQ(flags["memory"], sets["memory"]);
  EXPECT_THAT(run_program(model + "--generate 4").err, HasSubstr("--prompt"));
  EXPECT_THAT(run_program(model + "--generate 4 --prompt 9 --lora 8").err, HasSubstr("--lora is of training"));
}

// Advice is typed behind what was asked, which names the same keys.
TEST(Predict, TheLastFlagHoldsAndStandsBeforeSet) {
  const std::string asked = "predict --model gpt2 --hardware nvidia-t4 --seq 64 --format json --no-advice --batch 1";
  const json twice = json::parse(run_program(asked + " --set training.micro_batch=8 --batch 2 --batch 4").out);
  const json once = json::parse(run_program(asked + " --batch 4").out);
  EXPECT_EQ(twice["step"], once["step"]);
  EXPECT_EQ(twice["memory"], once["memory"]);
}

TEST(Predict, EveryShippedScenarioRuns) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RIDGELINE_SOURCE_DIR "/scenarios")) {
    const std::string folder = entry.path().parent_path().filename();
    if (entry.path().extension() != ".yaml" || folder == "sweeps" || folder == "exercises") continue;
    const ProgramRun run = run_program("predict " + entry.path().string() + " --no-advice");
    EXPECT_EQ(run.exit_code, 0) << entry.path() << run.err;
    expect_first_answer(run.out);
    ++count;
  }
  EXPECT_GE(count, 31);
}

}  // namespace
}  // namespace ridgeline
