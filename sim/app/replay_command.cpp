// ridgeline replay: the question predict answers, of a step that was recorded; or what a profiler's table of sums says.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/answer/kernel_table.h"
#include "sim/answer/other_ranks.h"
#include "sim/app/answer.h"
#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/hardware/load_gpu.h"
#include "sim/output/standard_output.h"
#include "sim/report/kernel_table_report.h"
#include "sim/trace/nsight/ncu_counters.h"
#include "sim/trace/nsight/profile_tables.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

/// The GPU that an option names; nothing where it is not given.
std::optional<Gpu> gpu_of(const ScenarioSource& source, std::string_view key) {
  for (auto change = source.overrides.rbegin(); change != source.overrides.rend(); ++change)
    if (change->key == key) return load_gpu(change->value);
  return std::nullopt;
}

bool is_table(const ScenarioSource& source) {
  return source.recording && !trace::looks_like_recording(*source.file) &&
         trace::looks_like_profile_tables(*source.file);
}

void refuse_counters(const ScenarioSource& source) {
  if (source.recording && !trace::looks_like_recording(*source.file) && trace::looks_like_ncu(*source.file))
    throw UserError(fmt::format("{}: counters of Nsight Compute, no recorded step: ridgeline kernels {} shows them",
                                *source.file, *source.file));
}

/// A table has no step: of the GPUs named, `recorded_on` or the only one is that of the table.
void answer_table(const ScenarioSource& source, std::string_view format) {
  std::optional<Gpu> recorded = gpu_of(source, "recorded_on"), target = gpu_of(source, "hardware");
  if (!recorded) recorded = std::exchange(target, std::nullopt);
  const KernelTable table = kernel_table(trace::read_profile_tables(*source.file), recorded ? &*recorded : nullptr,
                                         target ? &*target : nullptr);
  if (format == "json")
    print("{}\n",
          kernel_table_json(*source.file, table).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(kernel_table_text(*source.file, table));
}

}  // namespace

void add_replay_command(CLI::App& program, Outcome& outcome) {
  struct Options {
    ScenarioOptions scenario;
    AnswerOptions answer;
    std::vector<std::string> ranks;
  };
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("replay", "a step that was recorded, predicted on a GPU");
  options->scenario.add_recording_to(*command);
  options->answer.add_to(*command);
  command
      ->add_option("--rank", options->ranks,
                   "recording of another rank of the same step: what both exchange must be the same; any number")
      ->allow_extra_args(false)
      ->take_all();
  command->callback([options, &outcome] {
    if (const ScenarioSource source = options->scenario.source(); is_table(source))
      return answer_table(source, options->answer.format);
    else refuse_counters(source);
    if (!options->ranks.empty())
      check_other_ranks(load_scenario(options->scenario.source()), options->answer.engine, options->ranks);
    outcome.exit_code = answer_of_recording(options->scenario, options->answer);
  });
}

}  // namespace ridgeline::app
