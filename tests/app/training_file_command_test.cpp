// `predict --from` of another tool's configuration, and the scenario that it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const char* const kTorchtitan =
    "[model]\\nname = \\\"llama3\\\"\\nflavor = \\\"8B\\\"\\n[training]\\nlocal_batch_size = 2\\nseq_len = 1024\\n"
    "[parallelism]\\ndata_parallel_shard_degree = 4\\n[activation_checkpoint]\\nmode = \\\"full\\\"\\n";

TEST(TrainingFileCommand, the_printed_scenario_predicts_the_same) {
  const std::string made =
      "d=$(mktemp -d); printf \"" + std::string(kTorchtitan) + "\" > $d/t.toml; " RIDGELINE_BINARY " ";
  const std::string ask = "predict --from $d/t.toml --hardware h100 ";
  const ProgramRun direct = run_program("hardware >/dev/null; " + made + ask + "--format json --no-advice; rm -r $d");
  ASSERT_EQ(direct.exit_code, 0) << direct.err;
  const ProgramRun printed = run_program("hardware >/dev/null; " + made + ask +
                                         "--print-scenario > $d/s.yaml; " RIDGELINE_BINARY
                                         " predict $d/s.yaml --set model.code=plain --set model.rotary=complex "
                                         "--format json --no-advice; rm -r $d");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const json one = json::parse(direct.out), two = json::parse(printed.out);
  EXPECT_EQ(one["step_time_s"], two["step_time_s"]);
  EXPECT_EQ(one["memory"], two["memory"]);
  EXPECT_THAT(direct.out, HasSubstr("torchtitan has it"));
}

TEST(TrainingFileCommand, what_is_missing_is_asked_for_by_its_flag) {
  const ProgramRun run = run_program(
      "hardware >/dev/null; d=$(mktemp -d); printf '{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": "
      "true}}' > "
      "$d/ds.json; " RIDGELINE_BINARY " predict --from $d/ds.json --hardware h100; e=$?; rm -r $d; exit $e");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("model"));
}

}  // namespace
}  // namespace ridgeline
