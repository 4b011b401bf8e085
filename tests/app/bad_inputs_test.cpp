// Every broken scenario gives one clear message with its place, exit code 2 and no output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

std::vector<std::string> broken_scenarios() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/tests/bad_inputs/scenario"))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// The fragment after "# expect:" on the first line; the file's own name where there is none.
std::string expected_fragment(const std::string& name) {
  std::ifstream file(RIDGELINE_SOURCE_DIR "/tests/bad_inputs/scenario/" + name);
  std::string line;
  std::getline(file, line);
  const std::string mark = "# expect: ";
  return line.starts_with(mark) ? line.substr(mark.size()) : name;
}

class BrokenScenario : public testing::TestWithParam<std::string> {};

TEST_P(BrokenScenario, IsRefusedInOneLineThatNamesTheMistake) {
  const ProgramRun run = run_program("predict tests/bad_inputs/scenario/" + GetParam());
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(expected_fragment(GetParam())));
  EXPECT_THAT(run.err, testing::StartsWith("ridgeline: "));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return out;
}
INSTANTIATE_TEST_SUITE_P(EveryFile, BrokenScenario, testing::ValuesIn(broken_scenarios()), test_name);

TEST(BrokenArguments, AreRefusedInOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"predict no-such-file.yaml", "no-such-file.yaml"},
      {"predict scenarios/bert-large-fp32.yml", "bert-large-fp32"},
      {"predict", "hardware"},
      {"predict --model gpt2 --hardware nvidia-t4 --batch 4", "--seq describe one): training.sequence_length: missing"},
      {"predict scenarios/bert-large-fp32.yaml --engine magic", "analytic"},
      {"predict scenarios/bert-large-fp32.yaml --format xml", "format"},
      {"predict scenarios/bert-large-fp32.yaml --set training.micro_batch", "="},
      {"predict scenarios/bert-large-fp32.yaml --set training.micro_batch=many", "--set training.micro_batch=many"},
      {"predict scenarios/bert-large-fp32.yaml --set hardware.dram.bandwith='4 TB/s'", "bandwidth"},
      {"predict scenarios/bert-large-fp32.yaml --set hardware.dram.bandwidth=4", "TB/s"},
      {"predict scenarios/bert-large-fp32.yaml --set hardware.sm.count=0", "sm.count"},
      {"predict scenarios/bert-large-fp32.yaml --set model.vocabulary=-1", "vocabulary"},
      {"predict scenarios/bert-large-fp32.yaml --batch 0", "--batch 0"},
      {"predict scenarios/bert-large-fp32.yaml --nonsense", "nonsense"},
      {"predikt x", "did you mean 'predict'"},
      {"hardware nvidia-h300", "did you mean"},
      {"models gtp2", "did you mean 'gpt2'"},
      {"kernels", "hardware"},
      {"kernels --hardware nvidia-h200-sxm-141gb no-such.jsonl", "no-such.jsonl"},
      {"memory no-such.csv", "no-such.csv"},
      {"memory README.md", "README.md"},
      {"", "subcommand"},
  };
  for (const auto& [arguments, fragment] : cases) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr(fragment)) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

}  // namespace
}  // namespace ridgeline
