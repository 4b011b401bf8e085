// ridgeline plan as a person runs it: text, JSON, files that keep what was predicted, processes, mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kTiny =
    "plan --hardware nvidia-h200-sxm-141gb --set \"model={family: llama, code: plain, layers: 2, heads: 8, hidden: "
    "512, "
    "feed_forward: 1024, vocabulary: 8000}\" --seq 256 --precision bf16 --batch 4 --gpus 2";

// The option takes one word, or a list with commas, and leaves the file behind it.
TEST(PlanCommand, gpus_leave_the_file_alone) {
  const std::string file = "scenarios/bert-large-fp32.yaml";
  const ProgramRun behind = run_program("plan --gpus 2 " + file + " --hardware nvidia-h200-sxm-141gb --batch 4"),
                   before = run_program("plan " + file + " --gpus 2 --hardware nvidia-h200-sxm-141gb --batch 4");
  EXPECT_EQ(behind.exit_code, 0) << behind.err;
  EXPECT_EQ(behind.out, before.out);
  EXPECT_EQ(run_program("plan --gpus 2,4 " + file + " --hardware nvidia-h200-sxm-141gb --batch 4").exit_code, 0);
}

// Ctrl+C while configurations are listed, read and timed; 645120 has 144 divisors.
TEST(PlanCommand, stops_while_it_lists_configurations) {
  for (const char* after : {"0.2", "1"}) {
    const ProgramRun run =
        run_program("hardware >/dev/null; timeout --foreground -s INT -k 5 " + std::string(after) +
                    " " RIDGELINE_BINARY
                    " plan --gpus 512 --batch 645120 --model llama-3-70b --cluster p5 --seq 4096 --precision bf16");
    EXPECT_EQ(run.exit_code, 124) << "ended in time: " << run.err;  // what timeout says of a command it stopped
    EXPECT_THAT(run.err, HasSubstr("ridgeline: stopped"));
  }
}

TEST(PlanCommand, what_grows_too_large_ends_in_one_sentence) {
  const ProgramRun run = run_program(
      "plan --gpus 8,16,32,64,128,256,512 --batch 698377680 --model llama-3-70b --cluster p5 "
      "--seq 4096 --precision bf16");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, ::testing::AnyOf(HasSubstr("configurations"), HasSubstr(" of memory; RIDGELINE_MEMORY_BUDGET")));
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
}

TEST(PlanCommand, json_and_text_tell_the_same) {
  const ProgramRun run = run_program(std::string(kTiny) + " --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json plan = json::parse(run.out);
  ASSERT_FALSE(plan["best"].empty());
  EXPECT_LE(plan["best"].size(), 10u);
  EXPECT_EQ(plan["sequences"], 4);
  EXPECT_THAT(plan["assumed"].get<std::string>(), HasSubstr("h200-x2 is assumed"));
  double before = 0.0;
  for (const json& row : plan["best"]) {
    const json& way = plan["ways"][row["way"].get<std::size_t>()];
    EXPECT_EQ(way["step_time_s"], row["step_time_s"]);
    EXPECT_EQ(way["fate"], "predicted");
    EXPECT_LE(before, row["step_time_s"].get<double>());
    before = row["step_time_s"];
  }
  const ProgramRun text = run_program(kTiny);
  for (const char* part : {"best, by step time", "what separates them", "nothing is better in time and memory",
                           "how sure the order is", "what would change the choice", "left out"})
    EXPECT_THAT(text.out, HasSubstr(part));
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(PlanCommand, predict_says_the_same_of_the_best) {
  const json plan = json::parse(run_program(std::string(kTiny) + " --format json").out);
  std::string sets;
  const json& best = plan["best"][0];
  for (const json& set : plan["ways"][best["way"].get<std::size_t>()]["set"])
    sets += " --set " + set.get<std::string>();
  const json same = json::parse(
      run_program(
          "predict --cluster h200-x2 --set \"model={family: llama, code: plain, layers: 2, heads: 8, hidden: 512, "
          "feed_forward: 1024, vocabulary: 8000}\" --seq 256 --precision bf16 --no-advice --format json" +
          sets)
          .out);
  EXPECT_EQ(same["step"]["time_s"], best["step_time_s"]);
  EXPECT_EQ(same["memory"]["device_used_bytes"], best["memory_bytes"]);
}

TEST(PlanCommand, keeps_what_was_predicted_and_is_the_same_on_any_number_of_threads) {
  const std::string file = temporary_path("plan.sqlite");
  const std::string whole = run_program(std::string(kTiny) + " --format json --threads 1").out;
  EXPECT_EQ(run_program(std::string(kTiny) + " --format json --threads 3 --keep " + file).out, whole);
  const ProgramRun again = run_program(std::string(kTiny) + " --format json --keep " + file);
  EXPECT_EQ(again.out, whole);
  EXPECT_THAT(again.err, HasSubstr("ways are there already"));
  EXPECT_THAT(run_program("plan --hardware nvidia-t4 --model gpt2 --seq 128 --batch 4 --gpus 2 --keep " + file).err,
              HasSubstr("holds the points of another sweep"));
  std::filesystem::remove(file);
}

TEST(PlanCommand, a_stopped_plan_ends_as_the_signal_does) {
  const int status = std::system(
      "cd " RIDGELINE_SOURCE_DIR " && timeout --preserve-status -s TERM 1 " RIDGELINE_BINARY
      " plan --hardware nvidia-h200-sxm-141gb --model llama-7b --seq 2048 --batch 512 --gpus 64,128,256,512 "
      "--threads 1 >/dev/null 2>&1");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

TEST(PlanCommand, two_processes_say_what_one_says) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun";
  if (!std::filesystem::exists(std::filesystem::path(RIDGELINE_BINARY).parent_path() / "libridgeline_mpi.so"))
    GTEST_SKIP() << "built without Boost.MPI";
  const std::string whole = run_program(std::string(kTiny) + " --format json").out;
  const std::string command = "cd " RIDGELINE_SOURCE_DIR
                              " && mpirun --allow-run-as-root --oversubscribe -n 2 " RIDGELINE_BINARY " " +
                              std::string(kTiny) + " --threads 1 --format json 2>/dev/null";
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_EQ(out, whole);
}

TEST(PlanCommand, mistakes_end_with_2_and_a_sentence) {
  const auto refused = [](const std::string& arguments, const std::string& sentence) {
    const ProgramRun run = run_program("plan " + arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_THAT(run.err, HasSubstr(sentence)) << arguments;
  };
  const std::string bert = "--model bert-large --seq 512 --batch 8 ";
  refused(bert + "--hardware nvidia-t4", "--gpus");
  refused(bert + "--hardware nvidia-t4 --gpus 0", "expected 1 to");
  refused(bert + "--hardware nvidia-t4 --gpus many", "many");
  refused(bert + "--cluster hgx-h20 --gpus 8", "hgx-h200");
  refused(bert + "--cluster hgx-h200 --gpus 12", "no whole number of nodes");
  refused(bert + "--cluster hgx-h200 --gpus 8 --parallel tensors=2", "tensor");
  refused(bert + "--cluster hgx-h200 --gpus 8 --parallel tensor=3", "--parallel tensor=3");
  refused(bert + "--cluster hgx-h200 --gpus 8 --parallel strategy=fsd", "did you mean fsdp");
  refused("--model llama-7b --cluster t4-x4-pcie --gpus 1 --seq 512 --batch 1 --precision bf16",
          "nothing fits on 1 GPU");
}

}  // namespace
}  // namespace ridgeline
