#include "sim/app/scenario_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/config/override.h"
#include "sim/hardware/load_gpu.h"
#include "sim/output/standard_error.h"
#include "sim/scenario/assumed_sizes.h"
#include "sim/scenario/named_kind.h"
#include "sim/scenario/scenario_file.h"
#include "sim/scenario/short_flags.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

/// Says whether the file tells how a model is used.
bool describes_inference(const std::string& file) {
  if (file.empty() || trace::looks_like_recording(file)) return false;
  const config::Node tree = load_scenario_tree(scenario_file(file));
  return tree.kind == config::Node::Kind::mapping && tree.find("inference") != nullptr;
}

}  // namespace

void ScenarioOptions::add_to(CLI::App& command) {
  takes_file_ = true;
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

std::string ScenarioOptions::given(std::string_view flag) const {
  const auto flags = short_flags();
  const auto place = std::find_if(flags.begin(), flags.end(), [&](const ShortFlag& one) { return one.flag == flag; });
  return values_[static_cast<std::size_t>(place - flags.begin())];
}

void ScenarioOptions::mind_hardware(bool every_gpu) const {
  if (const std::string hardware = given("--hardware"); !hardware.empty()) hardware_file(hardware);
  else if (given("--cluster").empty() && given("--from").empty() && !every_gpu && sets_.empty())
    throw UserError("which GPU? --hardware h100 (ridgeline hardware lists them)");
}

void ScenarioOptions::add_flags_to(CLI::App& command) {
  const auto flags = short_flags();
  command_ = &command;
  values_.resize(flags.size());
  flags_.resize(flags.size());
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const ShortFlag& flag = flags[i];
    if (recording_ && (!flag.outside_the_step() || flag.means_inference() || flag.training.starts_with("model=")))
      continue;
    const std::string name(flag.flag), help(flag.help);
    flags_[i] = flag.has_value() ? command.add_option(name, values_[i], help)->take_last()
                                 : command.add_flag(name, values_[i], help);
  }
  set_ = command.add_option("--set", sets_, "KEY=VALUE: any key of scenario, hardware, model, host, software")
             ->allow_extra_args(false)
             ->take_all();
  if (!recording_)
    parallel_option_ = command
                           .add_option("--parallel", parallel_,
                                       "how the step is spread over them: data=4,strategy=fsdp (training.parallel)")
                           ->delimiter(',')
                           ->allow_extra_args(false)
                           ->take_all();
  command.add_flag("--datasheet", datasheet_, "ignore the measured section of the hardware file");
}

bool ScenarioOptions::uses_the_model() const {
  const auto flags = short_flags();
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (!values_[i].empty() && flags[i].means_inference()) return true;
  for (const std::string& set : sets_)
    if (set.starts_with("inference.") || set.starts_with("inference=")) return true;
  const auto differs = [&](std::size_t i) { return !values_[i].empty() && !flags[i].outside_the_step(); };
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (differs(i)) return describes_inference(file_);
  return cuda_graphs_ && describes_inference(file_);
}

void ScenarioOptions::check_prompt(bool inference) const {
  if (!inference || !takes_file_ || !file_.empty()) return;
  const auto flags = short_flags();
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (!values_[i].empty() && flags[i].inference.starts_with("inference.prompt_length=")) return;
  for (const std::string& set : sets_)
    if (set.starts_with("inference.prompt_length=") || set.starts_with("inference=")) return;
  throw UserError("how many tokens does the model read? --prompt 1024");
}

std::vector<config::Override> ScenarioOptions::typed_changes(bool inference) const {
  const auto flags = short_flags();
  const std::vector<CLI::Option*>& order = command_->parse_order();
  const auto last_place = [&](const CLI::Option* option) {
    return std::find(order.rbegin(), order.rend(), option).base() - order.begin();
  };
  // LoRA, QLoRA and all weights are three ways to train: the last one named counts.
  const ShortFlag* adapters = nullptr;
  std::ptrdiff_t adapters_place = 0;
  std::vector<std::pair<std::ptrdiff_t, config::Override>> placed;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].empty() || flags_[i] == nullptr) continue;
    const std::ptrdiff_t place = last_place(flags_[i]);
    const bool chooses = flags[i].training.starts_with("training.lora");
    if (chooses && place < adapters_place) {
      tell_replaced(adapters->flag, flags[i].flag);
      continue;
    }
    if (chooses) {
      if (adapters != nullptr) tell_replaced(flags[i].flag, adapters->flag);
      std::erase_if(placed, [&](const auto& one) { return one.first == adapters_place; });
      adapters = &flags[i];
      adapters_place = place;
    }
    for (config::Override& change : changes_of(flags[i], values_[i], inference))
      placed.emplace_back(place, std::move(change));
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] == set_ && next < sets_.size())
      placed.emplace_back(static_cast<std::ptrdiff_t>(i + 1), config::parse_override(sets_[next++]));
  for (const std::string& text : parallel_) {
    config::Override change = config::parse_override(text);
    change.origin = fmt::format("--parallel {}", text);
    change.key = "training.parallel." + change.key;
    placed.emplace_back(last_place(parallel_option_), std::move(change));
  }
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<config::Override> changes;
  for (auto& [place, change] : placed) {
    for (const config::Override& before : changes)
      if (before.key == change.key && before.value != change.value) tell_replaced(change.origin, before.origin);
    changes.push_back(std::move(change));
  }
  told_ = true;
  return changes;
}

void ScenarioOptions::tell_replaced(std::string_view later, std::string_view earlier) const {
  if (!told_) print_message("{} replaces {}, which was typed before\n", later, earlier);
}

ScenarioSource ScenarioOptions::source() const {
  ScenarioSource source;
  if (!file_.empty()) source.file = scenario_file(file_);
  if (source.file == file_) {
    if (!given("--hardware").empty() && key_of_name(file_) == "hardware")
      throw UserError(fmt::format("{}: one GPU at a time; ridgeline compare takes several", file_));
    if (const std::string mistake = no_file_but(file_); !mistake.empty()) throw UserError(mistake);
  }
  const bool scenario = (file_.ends_with(".yaml") || file_.ends_with(".yml")) && !trace::looks_like_recording(file_);
  source.recording = recording_ && !scenario;
  source.numbers = datasheet_ ? Numbers::datasheet : Numbers::measured;
  const bool inference = uses_the_model();
  check_prompt(inference);
  source.overrides = typed_changes(inference);
  if (cuda_graphs_)
    source.overrides.push_back({inference ? "inference.cuda_graphs" : "training.cuda_graphs", "true", "--cuda-graphs"});
  if (assumes_sizes_) ridgeline::assume_sizes(source);
  return source;
}

}  // namespace ridgeline::app
