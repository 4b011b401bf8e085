// ridgeline calibrate as a person runs it, and the commands of docs/calibrate.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProbe = "hw/probe/results/nvidia-h200-sxm-141gb.json";
constexpr const char* kCalibrate = "calibrate hw/probe/results/nvidia-h200-sxm-141gb.json --hardware ";

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string temporary(const std::string& name) { return temporary_path(name); }

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

TEST(Calibrate, ShowsNumbersKeptOnesAndPredictionsAndWritesNothingWhenAskedNotTo) {
  const std::string before = contents(RIDGELINE_SOURCE_DIR "/hw/nvidia-h200-sxm-141gb.yaml");
  const ProgramRun run = run_program(std::string(kCalibrate) + "nvidia-h200-sxm-141gb --dry-run");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* part : {"dram.read_efficiency", "kept, the microkernels do not tell", "launch.gap",
                           "BERT-Large fp32, batch 4 x 512", "nothing written"})
    EXPECT_THAT(run.out, HasSubstr(part));
  EXPECT_EQ(contents(RIDGELINE_SOURCE_DIR "/hw/nvidia-h200-sxm-141gb.yaml"), before);
}

TEST(Calibrate, WritesAFileThatPredictsAndASecondTimeTheSameOne) {
  const std::string once = temporary("once.yaml"), twice = temporary("twice.yaml");
  ASSERT_EQ(run_program(std::string(kCalibrate) + "nvidia-h200-sxm-141gb --output " + once).exit_code, 0);
  ASSERT_EQ(run_program(std::string(kCalibrate) + once + " --output " + twice).exit_code, 0);
  EXPECT_EQ(contents(once), contents(twice));
  EXPECT_EQ(contents(once), contents(RIDGELINE_SOURCE_DIR "/hw/nvidia-h200-sxm-141gb.yaml"));
  EXPECT_EQ(run_program("hardware " + once).exit_code, 0);
  std::filesystem::remove(once);
  std::filesystem::remove(twice);
}

TEST(Calibrate, AWrongResultEndsWithTwoAndLeavesNoFile) {
  const std::string output = temporary("refused.yaml");
  const ProgramRun other = run_program(std::string(kCalibrate) + "nvidia-rtx-3090 --output " + output);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("sm.count"));
  EXPECT_FALSE(std::filesystem::exists(output));
  EXPECT_EQ(run_program("calibrate missing.json --hardware nvidia-rtx-3090").exit_code, 2);
  EXPECT_EQ(run_program("calibrate README.md --hardware nvidia-rtx-3090").exit_code, 2);
  EXPECT_EQ(run_program(std::string(kCalibrate) + "nvidia-h20").exit_code, 2);
}

TEST(Calibrate, TheCommandsOfItsPageWork) {
  // With the H200 and its committed result in place of the reader's board, and nothing written into the tree.
  std::ifstream page(RIDGELINE_SOURCE_DIR "/docs/calibrate.md");
  const std::string mine = temporary("mine.yaml");
  int commands = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("build/ridgeline ")) continue;
    std::string arguments = line.substr(16);
    replace_all(arguments, "./nvidia-rtx-3090-calibrated.yaml", mine);
    replace_all(arguments, "my-3090.yaml", mine);
    replace_all(arguments, " probe.json", std::string(" ") + kProbe);
    replace_all(arguments, "nvidia-rtx-3090", "nvidia-h200-sxm-141gb");
    if (arguments.starts_with("calibrate") && arguments.find("--output") == std::string::npos &&
        arguments.find("--dry-run") == std::string::npos)
      arguments += " --output " + mine;  // in the place of a file in the current folder
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << line << "\n" << run.err;
    ++commands;
  }
  EXPECT_EQ(commands, 6);
  std::filesystem::remove(mine);
}

}  // namespace
}  // namespace ridgeline
