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

// What is said beside an answer is not part of it.
TEST(FullDisk, AStandardErrorThatTakesNothingChangesNoAnswer) {
  const std::string timeline = temporary_path("timeline.json");
  const auto contents = [&] {
    std::ifstream file(timeline);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const ProgramRun usual = run_program(kSmall + "--timeline " + timeline);
  const std::string written = contents();
  ASSERT_GT(written.size(), 1000u);
  for (const char* error : {"2>/dev/full", "2>&-"}) {
    std::filesystem::remove(timeline);
    const ProgramRun run = run_program(kSmall + "--timeline " + timeline + " " + error);
    EXPECT_EQ(run.exit_code, 0) << error;
    EXPECT_EQ(run.out, usual.out) << error;
    EXPECT_EQ(contents(), written) << error;
    EXPECT_EQ(run_program(std::string("predict missing.yaml ") + error).exit_code, 2) << error;
  }
  std::filesystem::remove(timeline);
}

TEST(OutputFiles, HaveAName) {
  for (const char* option : {"--timeline", "--html", "--memory-snapshot", "--op-trace"}) {
    const ProgramRun run = run_program(kSmall + option + " ''");
    EXPECT_EQ(run.exit_code, 2) << option;
    EXPECT_THAT(run.err, HasSubstr(std::string(option) + ": a file to write needs a name")) << option;
  }
  for (const char* command : {"sweep scenarios/sweeps/batch.yaml --points ''", "compare a b --html ''",
                              "calibrate probe.json --hardware nvidia-t4 --output ''",
                              "refit --kernels k.jsonl --hardware nvidia-t4 --output ''",
                              "kernels --hardware nvidia-t4 --timeline '' k.jsonl"}) {
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("a file to write needs a name")) << command;
  }
}

TEST(OutputFiles, AreNeverTwoOfOneNameNorAnInput) {
  const std::string file = temporary_path("both.json"), link = temporary_path("link.json"),
                    scenario = temporary_path("scenario.yaml"), recorded = temporary_path("recorded.jsonl");
  std::filesystem::create_symlink(file, link);
  const ProgramRun twice = run_program(kSmall + "--timeline " + file + " --html " + link);
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("--timeline and --html both write"));
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_EQ(run_program(kSmall + "--op-trace " + recorded).exit_code, 0);
  std::ofstream(scenario) << "hardware: nvidia-h200-sxm-141gb\ntrace: " << recorded << "\n";
  const auto size = std::filesystem::file_size(recorded);
  for (const std::string& command : {"predict " + scenario + " --html " + scenario,
                                     "replay " + recorded + " --hardware nvidia-h200-sxm-141gb --timeline " + recorded,
                                     "predict " + scenario + " --timeline " + recorded}) {
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("name another file")) << command;
  }
  EXPECT_EQ(std::filesystem::file_size(recorded), size);
  EXPECT_EQ(run_program(kSmall + "--timeline /dev/null --html /dev/null").exit_code, 0);
  for (const std::string& made : {link, scenario, recorded}) std::filesystem::remove(made);
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
