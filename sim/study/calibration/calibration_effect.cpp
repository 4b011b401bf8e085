#include "sim/study/calibration/calibration_effect.h"

#include <array>
#include <nlohmann/json.hpp>

#include "sim/answer/step_run.h"
#include "sim/config/data_folder.h"
#include "sim/hardware/load_host.h"
#include "sim/study/kernel_prediction.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

struct Shown {
  const char *title, *what;
};

constexpr std::array kScenarios{
    Shown{"BERT-Large fp32, batch 4 x 512", "bert-large-fp32.yaml"},
    Shown{"BERT amp fp16", "amp/bert-v100-amp.yaml"},
    Shown{"GPT-2 124M fp32, batch 16 x 1024", "gpt2-ladder-h200/1-fp32.yaml"},
    Shown{"nanoGPT characters", "nanogpt/slow-attention.yaml"},
};

constexpr std::array kKernels{
    Shown{"product 4096^3 fp16", R"({"op":"mm","dtype":"fp16","params":{"m":4096,"n":4096,"k":4096,"layout":"nt"}})"},
    Shown{"product 2048^3 fp32", R"({"op":"mm","dtype":"fp32","params":{"m":2048,"n":2048,"k":2048,"layout":"nt"}})"},
    Shown{"add 8192 x 4096 fp32", R"({"op":"add","dtype":"fp32","params":{"rows":8192,"cols":4096}})"},
    Shown{"copy of 64 Mi fp32", R"({"op":"copy","dtype":"fp32","params":{"elements":67108864}})"},
    Shown{"layer norm 8192 x 1024 fp32", R"({"op":"layer_norm","dtype":"fp32","params":{"rows":8192,"cols":1024}})"},
    Shown{"softmax 16384 x 512 fp16", R"({"op":"softmax","dtype":"fp16","params":{"rows":16384,"cols":512}})"},
    Shown{"AdamW of 64 Mi, fused", R"({"op":"fused_adamw","dtype":"fp32","params":{"elements":67108864}})"},
};

}  // namespace

std::vector<MovedPrediction> calibration_effect(const Gpu& before, const Gpu& after) {
  std::vector<MovedPrediction> moved;
  for (const Shown& shown : kScenarios) {
    ScenarioSource source;
    source.file = (config::data_folder("scenarios") / shown.what).string();
    Scenario scenario = load_scenario(source);
    const auto step_on = [&](const Gpu& gpu) {
      scenario.gpu = gpu;
      return step_time(trace_of(scenario), scenario, "analytic");
    };
    try {
      moved.push_back({shown.title, step_on(before), step_on(after)});
    } catch (const UserError&) {
      // A scenario that this GPU cannot run (an attention backend, a type) says nothing about its numbers.
    }
  }
  const Software software = load_software("pytorch-2.11");
  for (const Shown& shown : kKernels) {
    const KernelCase kernel = kernel_case_from(nlohmann::json::parse(shown.what));
    const auto time_on = [&](const Gpu& gpu) {
      return predict_kernel(kernel, gpu, software, *make_timing_engine("analytic", gpu)).time;
    };
    moved.push_back({shown.title, time_on(before), time_on(after)});
  }
  return moved;
}

}  // namespace ridgeline
