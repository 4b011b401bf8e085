// Recordings from elsewhere: of GPUs that are not NVIDIA's, and op traces whose ranks exchange data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ForeignRecordings : public ::testing::Test {
 protected:
  std::filesystem::path folder_ = temporary_path("foreign-recordings");
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// A product with shapes and an operation without, launched by calls of `runtime` on `gpu`.
  std::string trace(const std::string& gpu, const std::string& runtime, double without_shapes) const {
    json events = json::array();
    const auto add = [&](const std::string& category, const std::string& name, double at, double long_,
                         json arguments) {
      events.push_back({{"ph", "X"},
                        {"cat", category},
                        {"name", name},
                        {"pid", 1},
                        {"tid", 1},
                        {"ts", at},
                        {"dur", long_},
                        {"args", std::move(arguments)}});
    };
    add("cpu_op", "aten::mm", 0, 20,
        {{"External id", 1},
         {"Input Dims", {{1024, 1024}, {1024, 1024}}},
         {"Input type", {"c10::BFloat16", "c10::BFloat16"}},
         {"Input Strides", {{1024, 1}, {1024, 1}}},
         {"Concrete Inputs", {"", ""}}});
    add("cuda_runtime", runtime, 5, 4, {{"correlation", 1}});
    add("kernel", "Cijk_Ailk_Bljk_MT128x128x64", 20, 30, {{"stream", 0}, {"correlation", 1}, {"grid", {64, 1, 1}}});
    add("cpu_op", "mine::twist", 30, 20, {{"External id", 2}});
    add("cuda_runtime", runtime, 35, 4, {{"correlation", 2}});
    add("kernel", "twist", 60, without_shapes, {{"stream", 0}, {"correlation", 2}, {"grid", {64, 1, 1}}});
    json file{{"schemaVersion", 1}, {"traceEvents", events}};
    if (!gpu.empty()) file["deviceProperties"] = {{{"id", 0}, {"name", gpu}}};
    std::ofstream(path("trace.json")) << file;
    return path("trace.json");
  }
};

TEST_F(ForeignRecordings, OfAnotherVendorSaySoFirst) {
  const std::string on = " --hardware nvidia-h200-sxm-141gb --no-advice";
  const std::string amd = trace("AMD Instinct MI300X", "hipLaunchKernel", 10);
  const ProgramRun run = run_program("replay " + amd + on);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              StartsWith("RECORDED ON ANOTHER KIND OF GPU: 'AMD Instinct MI300X', which is no NVIDIA GPU; 75.0 %"));
  EXPECT_THAT(run.out, HasSubstr("its own, of HIP, are not read"));
  EXPECT_THAT(run_program("compare " + amd + " nvidia-l4 nvidia-h200-sxm-141gb").out +
                  run_program("replay " + amd + " --on-every-gpu").out,
              HasSubstr("no NVIDIA GPU"));
  const json answer = json::parse(run_program("replay " + amd + on + " --format json").out);
  EXPECT_THAT(answer["notes"].dump(), HasSubstr("no NVIDIA GPU"));
  // Nothing is known of that GPU, so what has no shapes cannot be carried over.
  const ProgramRun mostly = run_program("replay " + trace("AMD Instinct MI300X", "hipLaunchKernel", 100) + on);
  EXPECT_EQ(mostly.exit_code, 2);
  EXPECT_THAT(mostly.err, HasSubstr("'AMD Instinct MI300X', which is no NVIDIA GPU"));
  const ProgramRun unnamed = run_program("replay " + trace("", "hipLaunchKernel", 10) + on);
  EXPECT_THAT(unnamed.out,
              StartsWith("RECORDED ON ANOTHER KIND OF GPU: a GPU that the trace does not name and that is no"));
  const ProgramRun turing = run_program("replay " + trace("NVIDIA GeForce RTX 2080 Ti", "cudaLaunchKernel", 10) + on);
  EXPECT_THAT(turing.out,
              StartsWith("RECORDED ON ANOTHER KIND OF GPU: 'NVIDIA GeForce RTX 2080 Ti', which hw/ does not"));
  const ProgramRun known = run_program("replay " + trace("NVIDIA H200", "cudaLaunchKernel", 10) + on);
  EXPECT_THAT(known.out, Not(HasSubstr("ANOTHER KIND")));
}

TEST_F(ForeignRecordings, OpTracesOfSeveralGpusReplayOverTheLinksOfACluster) {
  for (const std::string scenario : {"llama-1b-fsdp-8-h100", "llama-1b-tensor-8-h100", "gpt2-ddp-4-h200",
                                     "llama-7b-context-8-h200", "qwen3-moe-experts-8-h100"}) {
    const std::string file = path(scenario + ".jsonl.gz");
    const ProgramRun predicted = run_program("predict scenarios/several-gpus/" + scenario +
                                             ".yaml --no-advice --format json --op-trace " + file);
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    const json asked = json::parse(predicted.out);
    const std::string cluster = scenario.find("4-h200") != scenario.npos ? "h200-x4"
                                : scenario.find("h100") != scenario.npos ? "hgx-h100"
                                                                         : "hgx-h200";
    const ProgramRun run = run_program("replay " + file + " --no-advice --format json --cluster " + cluster);
    ASSERT_EQ(run.exit_code, 0) << scenario << run.err;
    const json replayed = json::parse(run.out);
    const double step = asked["step"]["time_s"];
    EXPECT_NEAR(replayed["step"]["time_s"].get<double>(), step, 1e-6 * step) << scenario;
    EXPECT_EQ(replayed["parallel"]["gpus"], asked["parallel"]["gpus"]) << scenario;
    EXPECT_GT(asked["parallel"]["exposed_communication_s"], 0.0) << scenario;
    for (const char* key : {"exposed_communication_s", "hidden_communication_s"})
      EXPECT_NEAR(replayed["parallel"][key].get<double>(), asked["parallel"][key].get<double>(), 1e-6 * step)
          << scenario << " " << key;
    for (const char* key : {"peak_allocated_bytes", "device_used_bytes"})
      EXPECT_EQ(replayed["memory"][key], asked["memory"][key]) << scenario << " " << key;
    const ProgramRun alone = run_program("replay " + file + " --hardware nvidia-h100-sxm5-80gb");
    EXPECT_EQ(alone.exit_code, 2);
    EXPECT_THAT(alone.err, HasSubstr("--cluster"));
    const ProgramRun few = run_program("replay " + file + " --cluster rtx3090-x2-pcie");
    EXPECT_EQ(few.exit_code, 2);
    EXPECT_THAT(few.err, HasSubstr("rtx3090-x2-pcie has 2"));
    const ProgramRun again =
        run_program("replay " + file + " --cluster " + cluster + " --no-advice --op-trace " + path("again.jsonl"));
    ASSERT_EQ(again.exit_code, 0) << again.err;
    const json twice = json::parse(
        run_program("replay " + path("again.jsonl") + " --no-advice --format json --cluster " + cluster).out);
    EXPECT_EQ(twice["step"]["time_s"], replayed["step"]["time_s"]) << scenario;
  }
}

// Buckets of another size on one rank: neither gets what it waits for.
TEST_F(ForeignRecordings, OfRanksThatExchangeDifferentThingsAreRefusedWithBothSequences) {
  const std::string predict = "predict scenarios/several-gpus/gpt2-ddp-4-h200.yaml --no-advice --op-trace ";
  ASSERT_EQ(run_program(predict + path("rank0.jsonl")).exit_code, 0);
  ASSERT_EQ(run_program(predict + path("rank1.jsonl") + " --set \"training.parallel.bucket_cap=60 MiB\"").exit_code, 0);
  const std::string replay = "replay " + path("rank0.jsonl") + " --no-advice --cluster h200-x4 --rank ";
  EXPECT_EQ(run_program(replay + path("rank0.jsonl")).exit_code, 0);
  const ProgramRun run = run_program(replay + path("rank0.jsonl") + " --rank " + path("rank1.jsonl"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("wait for each other for good"));
  EXPECT_THAT(run.err, HasSubstr("rank0.jsonl: > all_reduce of 9443328 bytes fp32 over 4 ranks"));
  EXPECT_THAT(run.err, HasSubstr("rank1.jsonl: > all_reduce of 66146304 bytes fp32 over 4 ranks"));
}

TEST_F(ForeignRecordings, OfAStageOfAPipelineAreThatStageAlone) {
  const std::string file = path("stage.jsonl.gz");
  ASSERT_EQ(run_program("predict scenarios/several-gpus/gpt2-xl-pipeline-4-h200.yaml --no-advice --op-trace " + file)
                .exit_code,
            0);
  const ProgramRun run = run_program("replay " + file + " --no-advice --cluster h200-x4");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("one of 4 stages of a pipeline, alone"));
}

}  // namespace
}  // namespace ridgeline
