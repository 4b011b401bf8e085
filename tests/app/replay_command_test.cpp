// A recorded step answers what a described one does: ridgeline replay, predict, compare and sweep with traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kUnet = std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/traces/unet-b4-fp16amp.json.gz";
const std::string kPlain = std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/traces/gpt2-b16-bf16-flash.json.gz";
const std::string kWithMemory =
    std::string(RIDGELINE_SOURCE_DIR) + "/measurements/recordings/nanogpt-char-flash-bf16.jsonl.gz";

double step_of(const std::string& arguments) {
  const ProgramRun run = run_program(arguments + " --format json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out)["step"]["time_s"];
}

class ReplayCommand : public testing::Test {
 protected:
  std::filesystem::path folder_ = temporary_path("replay-command");
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(ReplayCommand, HardwareKeysAndEnginesChangeARecordedStep) {
  const std::string on = "replay " + kUnet + " --hardware nvidia-a100-sxm4-80gb";
  const double plain = step_of(on);
  EXPECT_LT(step_of(on + " --set hardware.dram.bandwidth=4TB/s"), 0.97 * plain);
  EXPECT_GT(step_of(on + " --set hardware.dram.bandwidth=1TB/s"), 1.03 * plain);
  EXPECT_LT(step_of(on + " --engine roofline"), plain);
  EXPECT_THAT(run_program(on + " --set hardware.dram.bandwith=4TB/s").err, HasSubstr("bandwidth"));
  EXPECT_EQ(run_program(on + " --engine roof").exit_code, 2);
}

TEST_F(ReplayCommand, PredictAndAScenarioThatNamesTheTraceAnswerTheSame) {
  const double replayed = step_of("replay " + kUnet + " --hardware nvidia-t4");
  EXPECT_EQ(step_of("predict " + kUnet + " --hardware nvidia-t4"), replayed);
  const std::string scenario = file("step.yaml", "trace: " + kUnet + "\nhardware: nvidia-t4\n");
  EXPECT_EQ(step_of("predict " + scenario), replayed);
  EXPECT_EQ(step_of("replay " + scenario), replayed);
  std::filesystem::copy_file(kUnet, folder_ / "beside.json.gz");  // seen from the scenario
  EXPECT_EQ(step_of("predict " + file("near.yaml", "trace: beside.json.gz\nhardware: nvidia-t4\n")), replayed);
}

TEST_F(ReplayCommand, WithoutHardwareTheGpuOfTheRecordingIsMeant) {
  const ProgramRun own = run_program("replay " + kUnet + " --format json --no-advice");
  ASSERT_EQ(own.exit_code, 0) << own.err;
  const json answer = json::parse(own.out);
  EXPECT_EQ(answer["hardware"], "nvidia-h200-sxm-141gb");
  EXPECT_THAT(std::string(answer["trace"]["recorded_on"]), HasSubstr("H200"));
}

TEST_F(ReplayCommand, WhatARecordingCannotSayIsRefusedWithTheReason) {
  const std::string on = " --hardware nvidia-l4";
  EXPECT_THAT(run_program("replay " + kUnet + on + " --memory-report").err, HasSubstr("born and freed"));
  EXPECT_THAT(run_program("replay " + kUnet + on + " --set training.micro_batch=8").err, HasSubstr("recorded"));
  EXPECT_THAT(run_program("predict " + kUnet + on + " --model gpt2").err, HasSubstr("leave out trace or model"));
  EXPECT_THAT(run_program("fit " + kUnet + on).err, HasSubstr("fit needs a model"));
  EXPECT_THAT(run_program("replay scenarios/bert-large-fp32.yaml").err, HasSubstr("names no recording"));
  const ProgramRun report = run_program("replay " + kWithMemory + on + " --memory-report --format json");
  ASSERT_EQ(report.exit_code, 0) << report.err;
  EXPECT_TRUE(json::parse(report.out).contains("memory_report"));
}

TEST_F(ReplayCommand, EveryGpuHasItsLineAndSensitivityItsTable) {
  const ProgramRun table = run_program("replay " + kPlain + " --on-every-gpu");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  for (const char* gpu : {"t4", "l4", "a100-sxm4-80gb", "h200-sxm-141gb"}) EXPECT_THAT(table.out, HasSubstr(gpu));
  const ProgramRun one = run_program("replay " + kPlain + " --hardware nvidia-l4 --sensitivity --format json");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const json answer = json::parse(one.out);
  EXPECT_TRUE(answer.contains("sensitivity"));
  EXPECT_TRUE(answer["memory"].is_null());
}

TEST_F(ReplayCommand, WritesATimelineThatReplaysAndAPage) {
  const std::string timeline = (folder_ / "timeline.json.gz").string(), page = (folder_ / "page.html").string();
  const std::string on = " --hardware nvidia-h200-sxm-141gb";
  const ProgramRun run = run_program("replay " + kUnet + on + " --timeline " + timeline + " --html " + page);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(std::filesystem::file_size(page), 100'000u);
  const ProgramRun again = run_program("replay " + timeline + on + " --format json");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_GE(json::parse(again.out)["understood"].get<double>(), 0.99);
}

TEST_F(ReplayCommand, ComparesTracesWithScenariosAndOnGpus) {
  const ProgramRun run =
      run_program("compare " + kUnet + " scenarios/bert-large-fp32.yaml --hardware nvidia-a100-sxm4-80gb");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("B against A"));
  const ProgramRun gpus = run_program("compare " + kPlain + " nvidia-l4 nvidia-h200-sxm-141gb --format json");
  ASSERT_EQ(gpus.exit_code, 0) << gpus.err;
  const json sides = json::parse(gpus.out)["scenarios"];
  ASSERT_EQ(sides.size(), 2u);
  EXPECT_GT(sides[0]["step"]["time_s"], sides[1]["step"]["time_s"]);
  EXPECT_THAT(run_program("compare " + kPlain + " nvidia-l4 nvidia-h200-sxm-141gb").out, HasSubstr("unknown"));
}

TEST_F(ReplayCommand, SweepsATraceOverHardwareKeys) {
  const std::string axes = "axes: {hardware.dram.bandwidth: {times: [1, 2]}, hardware: [nvidia-a10g, nvidia-l4]}\n";
  const ProgramRun run =
      run_program("sweep " + file("sweep.yaml", "scenario: {trace: " + kUnet + ", hardware: nvidia-t4}\n" + axes) +
                  " --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json points = json::parse(run.out)["points"];
  ASSERT_EQ(points.size(), 4u);
  EXPECT_LT(points[2]["step_time_s"], points[0]["step_time_s"]);
  const ProgramRun asks = run_program(
      "sweep " + file("asks.yaml", "scenario: " + kPlain + "\n" + axes + "constraints: {memory: {below: 9 GiB}}\n"));
  EXPECT_EQ(asks.exit_code, 2);
  EXPECT_THAT(asks.err, HasSubstr("says nothing of memory"));
}

TEST_F(ReplayCommand, NotesAreALineAKindUnlessAllAreAskedFor) {
  const auto notes = [](const std::string& out) {
    std::size_t count = 0;
    for (std::size_t at = out.find("  note: "); at != out.npos; at = out.find("  note: ", at + 1)) ++count;
    return count;
  };
  const std::string on = "replay " + kUnet + " --hardware nvidia-a100-sxm4-80gb";
  const ProgramRun folded = run_program(on), all = run_program(on + " --notes");
  EXPECT_LE(notes(folded.out), 8u);
  EXPECT_GE(notes(all.out), notes(folded.out));
  EXPECT_THAT(folded.out, HasSubstr("of the GPU time"));
}

TEST_F(ReplayCommand, NoErrorIsAPercentageOfTheNegligible) {
  const ProgramRun run = run_program("replay " + kUnet + " --hardware nvidia-t4");
  for (std::size_t at = run.out.find(" %"); at != run.out.npos; at = run.out.find(" %", at + 1)) {
    const std::size_t begin = run.out.rfind(' ', at - 1);
    EXPECT_LE(at - begin, 8u) << run.out.substr(begin, 20);
  }
}

}  // namespace
}  // namespace ridgeline
