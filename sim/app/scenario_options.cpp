#include "sim/app/scenario_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/override.h"
#include "sim/hardware/load_gpu.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

/// A flag that is short for a key of the scenario.
struct Shorthand {
  const char* flag;
  const char* key;
  const char* help;
};
constexpr Shorthand kShorthands[] = {
    {"--model", "model", "model: a name of models/, a path, a HuggingFace config.json"},
    {"--hardware", "hardware", "GPU: a name of hw/ or a path"},
    {"--cluster", "cluster", "several GPUs: a name of hw/clusters/ or a path"},
    {"--batch", "training.micro_batch", "sequences in one forward pass"},
    {"--seq", "training.sequence_length", "tokens in a sequence"},
    {"--accumulation", "training.gradient_accumulation", "micro-batches in a step"},
    {"--precision", "training.precision", "fp32, tf32, amp-fp16, amp-bf16, bf16, apex-o2"},
    {"--tf32", "training.tf32", "true: fp32 matmuls may use TF32 (default: as PyTorch, false)"},
    {"--cudnn-tf32", "training.cudnn_tf32", "false: fp32 convolutions may not use TF32 (default: as PyTorch, true)"},
    {"--attention", "training.attention", "eager, sdpa, flash, cudnn, efficient, math"},
    {"--optimizer", "training.optimizer.name",
     "adamw, adam, sgd, sgd-momentum, adafactor, adamw-8bit, adamw-kahan, bert-adam, none"},
    {"--implementation", "training.optimizer.implementation", "of the optimizer: for-loop, foreach, fused"},
    {"--clipping", "training.gradient_clipping", "largest gradient norm, or none"},
    {"--checkpointing", "training.activation_checkpointing", "none, block"},
    {"--host", "host", "host: a name of hw/hosts/ or a path"},
    {"--software", "software", "software stack: a name of hw/software/ or a path"},
    {"--recorded-on", "recorded_on", "GPU of a recording: a name of hw/ or a path (default: as the trace names it)"},
};

static_assert(std::size(kShorthands) == ScenarioOptions::kShorthandCount);

}  // namespace

void ScenarioOptions::add_to(CLI::App& command) {
  command.add_option("scenario", file_, "scenario file (YAML) or a recorded step; flags alone will do");
  add_flags_to(command);
}

void ScenarioOptions::add_recording_to(CLI::App& command) {
  recording_ = true;
  command
      .add_option("trace", file_,
                  "op trace, PyTorch profiler trace or PyTorch execution trace (plain or gzip), or a scenario that "
                  "names one")
      ->required();
  add_flags_to(command);
  add_cuda_graphs_to(command);
}

void ScenarioOptions::add_cuda_graphs_to(CLI::App& command) {
  command.add_flag("--cuda-graphs", cuda_graphs_, "the whole step as one CUDA graph");
}

std::vector<std::string> ScenarioOptions::replace_file(const std::string& recording, std::vector<std::string> more) {
  if (!file_.empty()) more.insert(more.begin(), file_);
  file_ = recording;
  recording_ = true;
  return more;
}

void ScenarioOptions::mind_hardware(bool every_gpu) const {
  const auto given = [&](std::string_view key) {
    const auto place = std::find_if(std::begin(kShorthands), std::end(kShorthands),
                                    [&](const Shorthand& one) { return one.key == key; });
    return shorthands_[static_cast<std::size_t>(place - std::begin(kShorthands))];
  };
  if (const std::string hardware = given("hardware"); !hardware.empty()) hardware_file(hardware);
  else if (given("cluster").empty() && !every_gpu && sets_.empty())
    throw UserError("--hardware: which GPU? `ridgeline hardware` lists them");
}

void ScenarioOptions::add_flags_to(CLI::App& command) {
  for (std::size_t i = 0; i < std::size(kShorthands); ++i)
    if (const std::string_view key = kShorthands[i].key;
        !recording_ || (key != "model" && !key.starts_with("training.")))
      command.add_option(kShorthands[i].flag, shorthands_[i], kShorthands[i].help);
  command.add_option("--set", sets_, "KEY=VALUE: any key of scenario, hardware, model, host, software")
      ->allow_extra_args(false)
      ->take_all();
  if (!recording_)
    command
        .add_option("--parallel", parallel_,
                    "how the step is spread over them: data=4,strategy=fsdp (training.parallel)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->take_all();
  command.add_flag("--datasheet", datasheet_, "ignore the measured section of the hardware file");
}

ScenarioSource ScenarioOptions::source() const {
  ScenarioSource source;
  if (!file_.empty()) source.file = file_;
  const bool scenario = (file_.ends_with(".yaml") || file_.ends_with(".yml")) && !trace::looks_like_recording(file_);
  source.recording = recording_ && !scenario;
  source.numbers = datasheet_ ? Numbers::datasheet : Numbers::measured;
  for (std::size_t i = 0; i < std::size(kShorthands); ++i)
    if (!shorthands_[i].empty())
      source.overrides.push_back(
          {kShorthands[i].key, shorthands_[i], fmt::format("{} {}", kShorthands[i].flag, shorthands_[i])});
  if (cuda_graphs_) source.overrides.push_back({"training.cuda_graphs", "true", "--cuda-graphs"});
  for (const std::string& text : parallel_) {
    config::Override change = config::parse_override(text);
    change.origin = fmt::format("--parallel {}", text);
    change.key = "training.parallel." + change.key;
    source.overrides.push_back(std::move(change));
  }
  for (const std::string& text : sets_) source.overrides.push_back(config::parse_override(text));
  return source;
}

}  // namespace ridgeline::app
