// The commands as a person or a script runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_program.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Program, HelpAndVersionSucceed) {
  for (const char* arguments :
       {"--help", "predict --help", "kernels --help", "hardware --help", "models --help", "memory --help",
        "validate --help", "fit --help", "compare --help", "sweep --help", "exercise --help", "--version"}) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << arguments;
    EXPECT_FALSE(run.out.empty()) << arguments;
  }
}

TEST(Predict, JsonHasTheFixedKeys) {
  const ProgramRun run = run_program("predict scenarios/bert-large-fp32.yaml --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json p = json::parse(run.out);
  for (const char* key : {"scenario", "hardware", "engine", "step", "memory", "time_by_class", "limited_by", "advice"})
    EXPECT_TRUE(p.contains(key)) << key;
  for (const char* key : {"time_s", "low_s", "high_s", "host_time_s", "gpu_busy_s", "kernel_count", "samples_per_s",
                          "tokens_per_s", "mfu", "sm_utilization", "kernel_active_fraction"})
    EXPECT_TRUE(p["step"].contains(key)) << key;
  for (const char* key : {"kernel_active", "sm", "tensor", "dram"}) EXPECT_TRUE(p["utilization"].contains(key)) << key;
  const json& parts = p["exposed_latency"];
  EXPECT_NEAR(parts["math_s"].get<double>() + parts["memory_s"].get<double>() - parts["overlapped_s"].get<double>() +
                  parts["in_kernels_s"].get<double>() + parts["gaps_s"].get<double>() +
                  parts["host_exposed_s"].get<double>() + parts["communication_s"].get<double>(),
              p["step"]["time_s"].get<double>(), 1e-9);
  for (const char* key :
       {"peak_allocated_bytes", "peak_reserved_bytes", "context_bytes", "device_used_bytes", "fits", "breakdown"})
    EXPECT_TRUE(p["memory"].contains(key)) << key;
  for (const char* key :
       {"weights", "gradients", "optimizer_state", "activations", "temporaries", "workspaces", "cached_unused"})
    EXPECT_TRUE(p["memory"]["breakdown"].contains(key)) << key;
  for (const char* key :
       {"tensor_contraction", "normalization", "elementwise", "optimizer", "copy", "communication", "idle"})
    EXPECT_TRUE(p["time_by_class"].contains(key)) << key;
  for (const char* key : {"compute", "dram", "l2", "shared_memory", "latency", "launch"})
    EXPECT_TRUE(p["limited_by"].contains(key)) << key;
}

TEST(Kernels, ChangedHardwareIsNeverSlowerAndSaysThatNobodyMeasuredIt) {
  const std::string line =
      R"({"op":"softmax_backward","dtype":"fp16","params":{"rows":6785,"cols":1138},"input_sets":4})";
  const auto predicted = [&](const std::string& sets) {
    const ProgramRun run = run_program("kernels --hardware nvidia-rtx-3090 " + sets, line + "\n");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out)["predicted"];
  };
  const json now = predicted("");
  EXPECT_FALSE(now.contains("hardware_changed"));
  for (const char* sets : {"--set sm.count=164", "--set hardware.l2.capacity=\"60 MiB\"",
                           "--set dram.bandwidth=\"2 TB/s\" --set sm.count=100"}) {
    const json then = predicted(sets);
    EXPECT_LE(then["time_us"].get<double>(), now["time_us"].get<double>()) << sets;
    EXPECT_TRUE(then["hardware_changed"].get<bool>()) << sets;
    EXPECT_FALSE(then["validated"].get<bool>()) << sets;
  }
}

TEST(Kernels, WrongHardwareValuesAreRefusedWithTheNearestName) {
  for (const auto& [sets, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"--set dram.bandwith=\"4 TB/s\"", "did you mean bandwidth?"},
           {"--set dram.bandwidth=\"-4 TB/s\"", "expected at least 1.00 GB/s and at most 1000 TB/s"},
           {"--set dram.bandwidth=\"nan TB/s\"", "expected a number with a unit"},
           {"--set sm.count=0", "expected 1 to 100000"},
           {"--set sm.count", "KEY=VALUE"}}) {
    const ProgramRun run = run_program(std::string("kernels --hardware nvidia-t4 ") + sets);
    EXPECT_EQ(run.exit_code, 2) << sets;
    EXPECT_THAT(run.err, HasSubstr(expected)) << sets;
  }
}

TEST(Predict, ChangedHardwareSaysSoAndIsNotSlower) {
  const std::string command = "predict scenarios/gpt2-ladder-h200/4-flash-attention.yaml --no-advice --format json ";
  const json now = json::parse(run_program(command).out);
  for (const char* sets :
       {"--set hardware.sm.count=145", "--set hardware.sm.count=264", "--set hardware.dram.bandwidth=\"6 TB/s\""}) {
    const json then = json::parse(run_program(command + sets).out);
    EXPECT_LE(then["step"]["time_s"].get<double>(), now["step"]["time_s"].get<double>() * (1.0 + 1e-6)) << sets;
    EXPECT_FALSE(then["step"]["validated"].get<bool>()) << sets;
    EXPECT_THAT(then["notes"].dump(), HasSubstr("No GPU with these numbers was measured")) << sets;
  }
}

TEST(Predict, SensitivityIsThereWhenAskedFor) {
  const std::string command = "predict scenarios/gpt2-ladder-h200/4-flash-attention.yaml --no-advice ";
  EXPECT_FALSE(json::parse(run_program(command + "--format json").out).contains("sensitivity"));
  const json p = json::parse(run_program(command + "--format json --sensitivity").out);
  for (const char* key : {"sm_count", "core_clock", "tensor_throughput", "fma_throughput", "shared_memory_bandwidth",
                          "l2_bandwidth", "l2_capacity", "dram_bandwidth", "power_limit", "latency", "host_speed"}) {
    ASSERT_TRUE(p["sensitivity"].contains(key)) << key;
    EXPECT_GE(p["sensitivity"][key]["time_saved_s"].get<double>(), 0.0) << key;
    EXPECT_NEAR(p["sensitivity"][key]["percent"].get<double>(),
                100 * p["sensitivity"][key]["time_saved_s"].get<double>() / p["step"]["time_s"].get<double>(), 1e-6);
  }
  const std::string text = run_program(command + "--sensitivity").out;
  EXPECT_THAT(text, HasSubstr("10 % more of one resource saves"));
  EXPECT_THAT(text, HasSubstr("SMs (132 to 145)"));
}

TEST(Kernels, SensitivityIsThereWhenAskedFor) {
  const char* line = R"({"op":"add","dtype":"bf16","params":{"rows":16384,"cols":4096}})";
  const json p = json::parse(run_program("kernels --hardware nvidia-h200-sxm-141gb --sensitivity -", line).out);
  EXPECT_GT(p["predicted"]["sensitivity"]["dram_bandwidth"]["percent"].get<double>(), 8.0);
  EXPECT_FALSE(json::parse(run_program("kernels --hardware nvidia-h200-sxm-141gb -", line).out)["predicted"].contains(
      "sensitivity"));
}

TEST(Predict, TimesAddUpToTheStepAndMemoryToThePeak) {
  const json p =
      json::parse(run_program("predict scenarios/gpt2-ladder-h200/4-flash-attention.yaml --format json").out);
  double by_class = 0, by_limiter = 0;
  for (const auto& [key, value] : p["time_by_class"].items()) by_class += value.get<double>();
  for (const auto& [key, value] : p["limited_by"].items()) by_limiter += value.get<double>();
  const double step = p["step"]["time_s"];
  EXPECT_NEAR(by_class, step, 1e-9 + 1e-6 * step);
  EXPECT_NEAR(by_limiter, step, 1e-9 + 1e-6 * step);
  EXPECT_LE(p["step"]["low_s"].get<double>(), step);
  EXPECT_GE(p["step"]["high_s"].get<double>(), step);
  double parts = 0;
  for (const auto& [key, value] : p["memory"]["breakdown"].items())
    if (key != "cached_unused") parts += value.get<double>();
  EXPECT_NEAR(parts, p["memory"]["peak_allocated_bytes"].get<double>(), 1.0);
}

TEST(Predict, TheMemoryReportAddsUpToThePeak) {
  const ProgramRun run =
      run_program("predict scenarios/gpt2-ladder-h200/3-bf16.yaml --memory-report --no-advice --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json p = json::parse(run.out);
  const json& report = p["memory_report"];
  const auto peak = p["memory"]["peak_allocated_bytes"].get<std::int64_t>();
  EXPECT_EQ(report["peak"]["allocated_bytes"].get<std::int64_t>(), peak);
  EXPECT_EQ(report["peak"]["op"], p["memory"]["peak"]["op"]);
  std::int64_t by_layer = 0, by_op = 0, highest = 0, layers = 0;
  for (const json& layer : report["by_layer"]) {
    for (const auto& [key, value] : layer.items())
      if (key != "layer") by_layer += value.get<std::int64_t>();
    layers += layer["layer"].get<int>() >= 0 ? 1 : 0;
  }
  for (const json& op : report["by_op"]) by_op += op["bytes"].get<std::int64_t>();
  for (const json& moment : report["timeline"]) {
    highest = std::max(highest, moment["allocated_bytes"].get<std::int64_t>());
    EXPECT_GE(moment["reserved_bytes"], moment["allocated_bytes"]);
  }
  EXPECT_EQ(by_layer, peak);
  EXPECT_EQ(by_op, peak);
  EXPECT_EQ(highest, peak);
  EXPECT_EQ(layers, 12);
  const json& unused = report["fragmentation"];
  EXPECT_EQ(unused["free_bytes"].get<std::int64_t>(), report["peak"]["reserved_bytes"].get<std::int64_t>() - peak);
  EXPECT_LE(unused["largest_free_block_bytes"], unused["free_bytes"]);
}

TEST(Fit, JsonTellsTheBatchItsStepAndWhatLimitsIt) {
  const ProgramRun run = run_program("fit scenarios/bert-large-fp32.yaml --set training.micro_batch=2 --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json f = json::parse(run.out);
  EXPECT_TRUE(f["fits"]);
  EXPECT_GT(f["micro_batch"].get<int>(), 2);
  EXPECT_EQ(f["gradient_accumulation"], 1);
  EXPECT_GT(f["sure_micro_batch"].get<int>(), 2);
  EXPECT_LE(f["sure_micro_batch"].get<int>(), f["micro_batch"].get<int>());
  EXPECT_FALSE(f["keeps_batch"]);
  EXPECT_GT(f["step"]["time_s"].get<double>(), 0);
  EXPECT_NE(f["memory"]["verdict"], "does not fit");
  EXPECT_EQ(f["limit"]["micro_batch"].get<int>(), f["micro_batch"].get<int>() + 1);
  for (const char* key : {"op", "phase", "category", "largest_category"})
    EXPECT_FALSE(f["limit"][key].get<std::string>().empty()) << key;
  EXPECT_GT(f["limit"]["missing_bytes"].get<double>(), 0);
  EXPECT_GT(f["limit"]["short_bytes"].get<double>(), 0);
}

TEST(Fit, WhatDoesNotFitIsToldWithWhatWouldHelp) {
  const ProgramRun run =
      run_program("predict scenarios/bert-large-fp32.yaml --set training.micro_batch=64 --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json memory = json::parse(run.out)["memory"];
  EXPECT_FALSE(memory["fits"]);
  EXPECT_GT(memory["out_of_memory"]["missing_bytes"].get<double>(), 0);
  EXPECT_GT(memory["out_of_memory"]["needed_bytes"].get<double>(), memory["capacity_bytes"].get<double>());
  EXPECT_FALSE(memory["out_of_memory"]["would_fit"].empty());
  const ProgramRun plain =
      run_program("predict scenarios/bert-large-fp32.yaml --set training.micro_batch=64 --format json --no-advice");
  EXPECT_TRUE(json::parse(plain.out)["memory"]["out_of_memory"]["would_fit"].empty());
}

TEST(Predict, FlagsAloneGiveWhatTheFileGives) {
  const json file = json::parse(run_program("predict scenarios/bert-large-fp32.yaml --format json --no-advice").out);
  const json flags =
      json::parse(run_program("predict --model bert-large --hardware nvidia-rtx-3090 --batch 4 --seq 512 --precision "
                              "fp32 --attention eager "
                              "--optimizer adamw --implementation foreach --clipping 1.0 --set software=pytorch-2.0 "
                              "--set training.reads_loss=micro-batch "
                              "--format json --no-advice")
                      .out);
  EXPECT_EQ(file["step"], flags["step"]);
  EXPECT_EQ(file["memory"], flags["memory"]);
}

TEST(Predict, TextFitsAHundredColumns) {
  for (const char* arguments :
       {"predict scenarios/bert-large-fp32.yaml",
        "predict scenarios/bert-large-fp32.yaml --explain",
        "predict scenarios/bert-large-fp32.yaml --set training.micro_batch=64 --explain",
        "predict scenarios/inference/gpt2-xl-beams.yaml --explain",
        "predict scenarios/gpt2-ladder-h200/1-fp32.yaml",
        "predict scenarios/bert-large-fp32.yaml --on-every-gpu",
        "predict scenarios/bert-large-fp32.yaml --set training.micro_batch=64",
        "fit scenarios/bert-large-fp32.yaml",
        "predict scenarios/bert-large-fp32.yaml --memory-report",
        "predict scenarios/huggingface-v100/5-accumulation-checkpointing-fp16.yaml --memory-report --no-advice",
        "predict scenarios/bert-large-fp32.yaml --set training.micro_batch=64 --memory-report --no-advice",
        "fit scenarios/huggingface-v100/5-accumulation-checkpointing-fp16.yaml",
        "fit --model llama-7b --hardware nvidia-rtx-3090 --batch 3 --seq 512",
        "hardware",
        "hardware nvidia-h200-sxm-141gb",
        "hardware dgx-1-v100",
        "models",
        "models bert-large",
        "predict scenarios/huggingface-v100/4-fp16.yaml --memory-report --no-advice",
        "predict scenarios/inference/gpt2-xl-beams.yaml --no-advice",
        "predict scenarios/inference/llama-7b-generate.yaml --no-advice",
        "compare scenarios/inference/gpt2-xl-beams.yaml scenarios/inference/llama-7b-generate.yaml",
        "sweep scenarios/sweeps/cheapest-for-a-rate.yaml",
        "sweep scenarios/sweeps/sampled-chips.yaml",
        "sweep scenarios/sweeps/time-memory-energy.yaml",
        "sweep scenarios/sweeps/twice-the-bandwidth.yaml"}) {
    const ProgramRun run = run_program(arguments);
    ASSERT_EQ(run.exit_code, 0) << arguments << run.err;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::count_if(line.begin(), line.end(),
                                         [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
      EXPECT_LE(columns, 100) << arguments << "\n" << line;
    }
  }
}

TEST(Kernels, AMistakeStaysOnItsLineAndTheOthersGoOn) {
  const ProgramRun run =
      run_program("kernels --hardware nvidia-h200-sxm-141gb",
                  R"({"op":"mm","dtype":"bf16","params":{"m":4096,"n":4096,"k":4096,"layout":"nt"},"id":"first"}
{"op":"conv3d","dtype":"bf16","params":{}}
not json
{"op":"mm","dtype":"bf16","params":{"m":-1,"n":4096,"k":4096,"layout":"nt"}}
{"op":"softmax","dtype":"fp32","params":{"rows":128,"cols":1000},"input_sets":3}
)");
  EXPECT_EQ(run.exit_code, 2);
  std::istringstream lines(run.out);
  std::vector<json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[0]["id"], "first");
  for (const char* key : {"time_us", "low_us", "high_us", "limiter", "flops", "dram_read_bytes", "dram_write_bytes",
                          "l2_hit_rate", "occupancy", "waves", "kernels"})
    EXPECT_TRUE(answers[0]["predicted"].contains(key)) << key;
  EXPECT_DOUBLE_EQ(answers[0]["predicted"]["flops"], 2.0 * 4096 * 4096 * 4096);
  for (const int i : {1, 2, 3}) EXPECT_TRUE(answers[i].contains("error")) << answers[i];
  EXPECT_TRUE(answers[4].contains("predicted"));
}

TEST(Collectives, AMistakeStaysOnItsLineAndTheOthersGoOn) {
  const std::string cases = R"({"op":"all_reduce","bytes":26214400,"gpus":4,"nodes":1,"dtype":"bf16","id":"first"}
{"op":"allreduce","bytes":1}

not json
{"op":"all_gather","bytes":1073741824,"gpus":8,"nodes":4}
)";
  const ProgramRun run = run_program("collectives --cluster hgx-h200 --format json -", cases);
  EXPECT_EQ(run.exit_code, 2);
  std::istringstream lines(run.out);
  std::vector<json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[0]["id"], "first");
  for (const char* key : {"time_us", "low_us", "high_us", "algorithm", "protocol", "channels", "bus_gb_per_s"})
    EXPECT_TRUE(answers[0]["predicted"].contains(key)) << key;
  for (const int i : {1, 2}) EXPECT_TRUE(answers[i].contains("error")) << answers[i];
  EXPECT_TRUE(answers[3].contains("predicted"));
  EXPECT_EQ(run_program("collectives --cluster hgx-h200", cases).out, run.out);  // no terminal: JSON
}

TEST(Collectives, TheTableFitsAHundredColumnsAndMistakesNameFileAndLine) {
  const std::string cases = R"({"op":"reduce_scatter","bytes":1073741824,"gpus":8,"nodes":16}
{"op":"all_reduce","bytes":1000000,"gpus":9}
)";
  const ProgramRun run = run_program("collectives --cluster dgx-a100 --format text", cases);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out, HasSubstr("estimated: no collective over 16 nodes"));
  EXPECT_THAT(run.err, HasSubstr("standard input:2: gpus: 9"));
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_EQ(run_program("collectives --cluster dgx-a10", cases).exit_code, 2);
  EXPECT_EQ(run_program("collectives --cluster dgx-a100", "\n").exit_code, 2);
}

TEST(Hardware, ListsClustersAndShowsOne) {
  EXPECT_THAT(run_program("hardware").out, HasSubstr("dgx-1-v100"));
  const json sheet = json::parse(run_program("hardware p5 --format json").out);
  for (const auto& [key, entry] : sheet["values"].items()) EXPECT_NE(entry["source"], "") << key;
  EXPECT_THAT(run_program("hardware h200-x2 --set nodes=3").err, HasSubstr("nics.count"));
}

TEST(Hardware, EveryNumberHasASource) {
  const json sheet = json::parse(run_program("hardware nvidia-a100-sxm4-80gb --format json").out);
  ASSERT_GT(sheet["values"].size(), 40u);
  for (const auto& [key, entry] : sheet["values"].items()) EXPECT_NE(entry["source"], "") << key;
}

TEST(Replay, PredictsARecordedStepForAnyReader) {
  const std::string command = "replay measurements/h200/traces/mlp-b128-fp32.json.gz --hardware nvidia-t4 --format ";
  const ProgramRun text = run_program(command + "text"), as_json = run_program(command + "json");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(as_json.exit_code, 0) << as_json.err;
  EXPECT_THAT(text.out, HasSubstr("addmm"));
  EXPECT_GT(json::parse(as_json.out)["step"]["time_s"].get<double>(), 0.0);
}

TEST(Memory, AReplayedHistoryAsksForTheSegmentsItRecorded) {
  const ProgramRun run =
      run_program("memory measurements/h200/allocations/nanogpt-char-slow-bf16-hist.csv.gz --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json r = json::parse(run.out);
  EXPECT_EQ(r["segment_allocations_bytes"], r["recorded_segments_bytes"]);
}

TEST(MemoryCommand, ReplaysThePredictedSnapshotToThePredictedPeaks) {
  const auto file = std::filesystem::path(temporary_path("snapshot.pickle"));
  const ProgramRun predicted = run_program(
      "predict scenarios/gpt2-ladder-h200/3-bf16.yaml --no-advice --format json --memory-snapshot " + file.string());
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const json memory = json::parse(predicted.out)["memory"];
  const ProgramRun replayed = run_program("memory " + file.string() + " --format json");
  std::filesystem::remove(file);
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  const json replay = json::parse(replayed.out);
  EXPECT_EQ(replay["source"], "replay");
  for (const char* key : {"peak_allocated_bytes", "peak_reserved_bytes"}) EXPECT_EQ(replay[key], memory[key]) << key;
  EXPECT_EQ(replay["segment_allocations_bytes"], replay["recorded_segments_bytes"]);
}

TEST(Help, OfEveryCommandListsTheExitCodes) {
  for (const char* command : {"", "predict ", "sweep ", "schema ", "hardware "}) {
    const ProgramRun run = run_program(std::string(command) + "--help");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    for (const char* code : {"0 done", "1 a fault", "2 a mistake", "3 with --check"})
      EXPECT_NE(run.out.find(code), run.out.npos) << command << code;
  }
}

TEST(MemoryCommand, WithoutAHistoryTheSegmentsAreSummedAsTheyAre) {
  const auto file = std::filesystem::path(temporary_path("snapshot.pickle"));
  // {"segments": []}
  std::ofstream(file, std::ios::binary) << "\x80\x04}\x8c\x08segments]s.";
  const ProgramRun run = run_program("memory " + file.string() + " --format json");
  std::filesystem::remove(file);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["source"], "segments");
  EXPECT_EQ(json::parse(run.out)["reserved_bytes"], 0);
}

}  // namespace
}  // namespace ridgeline
