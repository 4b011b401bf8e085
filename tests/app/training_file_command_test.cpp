// `predict --from` of another tool's configuration, and the scenario that it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class TrainingFileCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("training_file_command_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(TrainingFileCommand, the_printed_scenario_predicts_the_same) {
  const std::string ask =
      "predict --hardware h100 --no-advice --from " +
      file("t.toml",
           "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = 1024\n"
           "[parallelism]\ndata_parallel_shard_degree = 4\n[activation_checkpoint]\nmode = \"full\"\n");
  const ProgramRun direct = run_program(ask + " --format json");
  ASSERT_EQ(direct.exit_code, 0) << direct.err;
  const ProgramRun printed = run_program(ask + " --print-scenario");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("t.toml:5"));
  EXPECT_THAT(printed.out, HasSubstr("default of torchtitan"));
  const ProgramRun again = run_program("predict " + file("s.yaml", printed.out) +
                                       " --set model.code=plain --set model.rotary=complex --format json --no-advice");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const json one = json::parse(direct.out), two = json::parse(again.out);
  EXPECT_EQ(one.at("step"), two.at("step"));
  EXPECT_EQ(one.at("memory"), two.at("memory"));
  EXPECT_THAT(direct.out, HasSubstr("as torchtitan has it: "));
}

TEST_F(TrainingFileCommand, what_the_file_leaves_open_is_asked_for) {
  const std::string path = file("ds.json", R"({"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})");
  const ProgramRun run = run_program("predict --hardware h100 --from " + path);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              HasSubstr("ds.json: as DeepSpeed has it, the file leaves open the network, the batch, the length "
                        "of sequences: add --model NETWORK --batch SEQUENCES --seq TOKENS"));
  EXPECT_THAT(run_program("predict --from " + path).err, HasSubstr("--model NETWORK --hardware GPU"));
}

}  // namespace
}  // namespace ridgeline
