// Every command says so, with exit code 1, when what it prints or writes is not taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

const std::string kSmall =
    "predict scenarios/gpt2-ladder-h200/4-flash-attention.yaml --no-advice --set "
    "model.layers=1 --set training.micro_batch=1 ";

TEST(FullDisk, EveryCommandThatPrintsEndsWithExitCodeOneAndAMessage) {
  const std::string cases = temporary_path("case.jsonl"), sweep = temporary_path("sweep.yaml");
  std::ofstream(cases) << R"({"op":"mm","dtype":"bf16","params":{"m":512,"n":512,"k":512,"layout":"nt"}})";
  std::ofstream(sweep) << "scenario: {hardware: nvidia-t4, model: {family: gpt2, layers: 1, heads: 4, hidden: 256, "
                          "vocabulary: 400, max_positions: 128}, training: {micro_batch: 2, sequence_length: 128, "
                          "precision: fp32}}\naxes: {training.micro_batch: [1, 2]}\n";
  for (const std::string& command :
       std::vector<std::string>{kSmall, kSmall + "--format json", "--help", "--version", "predict --help",
                                "kernels --hardware nvidia-t4 " + cases, "sweep " + sweep,
                                "sweep --format csv " + sweep, "hardware", "hardware nvidia-t4 --format json", "models",
                                "exercise", "memory measurements/h200/allocations/nanogpt-char-slow-bf16-hist.csv.gz",
                                "memory --format json measurements/h200/allocations/nanogpt-char-slow-bf16-hist.csv.gz",
                                "replay measurements/h200/traces/mlp-b128-fp32.json.gz --hardware nvidia-t4",
                                "compare scenarios/bert-large-fp32.yaml nvidia-t4 nvidia-rtx-3090 --format json"}) {
    const ProgramRun full = run_program(command, "", ">/dev/full"), closed = run_program(command, "", ">&-");
    EXPECT_EQ(full.exit_code, 1) << command;
    EXPECT_THAT(full.err, HasSubstr("standard output: cannot be written: No space left on device")) << command;
    EXPECT_EQ(closed.exit_code, 1) << command;
    EXPECT_THAT(closed.err, HasSubstr("standard output: cannot be written: Bad file descriptor")) << command;
  }
}

TEST(FullDisk, EveryFileThatPredictWritesEndsWithExitCodeOneAndAMessage) {
  for (const char* option : {"--timeline", "--html", "--memory-snapshot", "--op-trace"}) {
    const ProgramRun run = run_program(kSmall + option + " /dev/full");
    EXPECT_EQ(run.exit_code, 1) << option;
    EXPECT_THAT(run.err, HasSubstr("/dev/full: cannot be written: No space left on device")) << option;
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  }
}

TEST(StandardOutputAsAFile, ComesWholeAndBeforeTheAnswer) {
  const ProgramRun run = run_program(kSmall + "--format json --timeline /dev/stdout");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::StartsWith("{"));
  EXPECT_LT(run.out.find("traceEvents"), run.out.find("\"step\": {"));
  EXPECT_THAT(run.out, testing::EndsWith("}\n"));
}

}  // namespace
}  // namespace ridgeline
