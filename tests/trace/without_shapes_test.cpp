// Recordings without shapes (torch.profiler without record_shapes) replayed on other GPUs: their kernels' times are
// carried over from the GPU they were recorded on, which must be known for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/answer/replay.h"
#include "sim/input/text_source.h"
#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kOnH200 = std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/";

/// A copy of a recording that names `gpu` as its own and says of no operator what it works on.
std::string stripped(const std::string& recording, const std::string& gpu = "NVIDIA H200") {
  json trace = json::parse(read_text(kOnH200 + recording));
  for (json& event : trace["traceEvents"])
    if (event.contains("args"))
      for (const char* key : {"Input Dims", "Input type", "Input Strides", "Concrete Inputs"}) event["args"].erase(key);
  if (gpu.empty()) trace.erase("deviceProperties");
  else trace["deviceProperties"][0]["name"] = gpu;
  const std::string path = temporary_path("stripped.json");
  std::ofstream(path) << trace;
  return path;
}

ReplayResult replay_without_shapes(const std::string& file, const std::string& hardware,
                                   const std::string& recorded_on = "", const std::string& engine = "analytic") {
  ScenarioSource source;
  source.file = file;
  source.recording = true;
  source.overrides = {{"hardware", hardware, ""}, {"host", "default", ""}, {"software", "pytorch-2.11", ""}};
  if (!recorded_on.empty()) source.overrides.push_back({"recorded_on", recorded_on, ""});
  return predict_replay(load_scenario(source), engine);
}
double busy(const ReplayResult& result) { return result.prediction.step.gpu_busy.value(); }

// A perceptron, a transformer, an image network, a UNet, a compiled step, and one with NVIDIA's fused attention.
const std::vector<std::string> kRecordings{"traces/mlp-b128-fp32.json.gz",
                                           "traces/nanogpt-char-flash-bf16.json.gz",
                                           "traces/resnet50-b32-fp32.json.gz",
                                           "traces/unet-b4-fp16amp.json.gz",
                                           "traces/gpt2-b16-bf16-compile-flash-v50304-fused.json.gz",
                                           "foreign/distilbert-b32-bf16-plain.json.gz"};

TEST(WithoutShapes, NoRecordingTakesTheSameTimeOnThreeGpus) {
  for (const std::string& recording : kRecordings) {
    const std::string file = stripped(recording);
    for (const std::string engine : {"analytic", "roofline"}) {
      const double h200 = busy(replay_without_shapes(file, "nvidia-h200-sxm-141gb", "", engine)),
                   a100 = busy(replay_without_shapes(file, "nvidia-a100-sxm4-80gb", "", engine)),
                   t4 = busy(replay_without_shapes(file, "nvidia-t4", "", engine));
      EXPECT_GT(a100, 1.1 * h200) << recording << " " << engine;
      EXPECT_GT(t4, 1.3 * a100) << recording << " " << engine;
    }
  }
}

TEST(WithoutShapes, OnItsOwnGpuAStepTakesWhatWasRecorded) {
  for (const std::string& recording : kRecordings) {
    const ReplayResult result = replay_without_shapes(stripped(recording), "nvidia-h200-sxm-141gb");
    EXPECT_NEAR(busy(result), result.measured.busy, 0.15 * result.measured.busy) << recording;
    EXPECT_LT(result.coverage.of_gpu_time(), 0.1) << recording;
  }
}

TEST(WithoutShapes, TheGpuOfTheRecordingDecidesByNameOrFile) {
  const std::string file = stripped(kRecordings[2]), there = "nvidia-a100-sxm4-80gb";
  const double from_h200 = busy(replay_without_shapes(file, there)),
               from_a100 = busy(replay_without_shapes(file, there, there)),
               from_t4 = busy(replay_without_shapes(file, there, "nvidia-t4"));
  EXPECT_GT(from_h200, 1.1 * from_a100);
  EXPECT_GT(from_a100, 1.3 * from_t4);
  EXPECT_EQ(busy(replay_without_shapes(file, there, std::string(RIDGELINE_SOURCE_DIR) + "/hw/nvidia-t4.yaml")),
            from_t4);
}

TEST(WithoutShapes, AnUnknownGpuHasToBeNamed) {
  const std::map<std::string, std::string> gpus{{"NVIDIA GeForce GTX 1080", "'NVIDIA GeForce GTX 1080'"},
                                                {"", "a GPU that the trace does not name"}};
  for (const auto& [gpu, said] : gpus) {
    const std::string file = stripped(kRecordings[0], gpu);
    try {
      replay_without_shapes(file, "nvidia-t4");
      FAIL() << "times of an unknown GPU were kept";
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), ::testing::AllOf(HasSubstr("stripped.json"), HasSubstr(said), HasSubstr("--recorded-on")));
    }
    EXPECT_GT(busy(replay_without_shapes(file, "nvidia-t4", "nvidia-h200-sxm-141gb")), 0.0);
  }
}

TEST(WithoutShapes, AnUnknownGpuOfARecordingWithShapesIsANote) {
  json trace = json::parse(read_text(kOnH200 + "traces/mlp-b128-fp32.json.gz"));
  trace.erase("deviceProperties");
  const std::string path = temporary_path("unnamed.json");
  std::ofstream(path) << trace;
  const ReplayResult result = replay_without_shapes(path, "nvidia-t4");
  EXPECT_GT(busy(result), 1.3 * busy(replay_without_shapes(path, "nvidia-h200-sxm-141gb")));
  EXPECT_THAT(result.prediction.notes, ::testing::Contains(HasSubstr("--recorded-on")));
}

TEST(Stack, ARecordingOfAnotherCudaSaysSo) {
  json trace = json::parse(read_text(kOnH200 + "traces/mlp-b128-fp32.json.gz"));
  const auto notes = [&](int version) {
    trace["cuda_runtime_version"] = version;
    const std::string path = temporary_path("other-cuda.json");
    std::ofstream(path) << trace;
    return replay_without_shapes(path, "nvidia-h200-sxm-141gb").prediction.notes;
  };
  EXPECT_THAT(notes(12040), ::testing::Contains(HasSubstr("recorded with CUDA 12.4")));
  EXPECT_THAT(notes(13000), ::testing::Not(::testing::Contains(HasSubstr("recorded with CUDA"))));
  EXPECT_THAT(notes(7), ::testing::Not(::testing::Contains(HasSubstr("recorded with CUDA"))));
}

}  // namespace
}  // namespace ridgeline
