// ridgeline predict: a scenario file, flags, or both, or a training script, to step time, memory and reasons.
#include <fmt/format.h>

#include "sim/app/answer.h"
#include "sim/app/commands.h"
#include "sim/app/script_recording.h"
#include "sim/config/write_yaml.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {

void add_predict_command(CLI::App& program, Outcome& outcome) {
  struct Options {
    ScenarioOptions scenario;
    AnswerOptions answer;
    std::string script;
    std::vector<std::string> arguments;
    bool print_scenario = false;
  };
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("predict", "step time and peak memory of one training step, with reasons");
  options->scenario.add_to(*command);
  options->scenario.add_cuda_graphs_to(*command);
  options->scenario.assume_sizes();
  options->answer.add_to(*command);
  options->answer.add_detail_to(*command);
  command->add_option("--record", options->script,
                      "a PyTorch training script, run without a GPU until its steady step was recorded; needs PyTorch "
                      "(python3, or RIDGELINE_PYTHON)");
  command->add_flag("--print-scenario", options->print_scenario,
                    "print the question as a scenario file, with the place each value comes from, and predict nothing");
  command->add_option("arguments", options->arguments, "of the script of --record, after --");
  command->callback([options, &outcome] {
    if (options->script.empty()) {
      if (!options->arguments.empty())
        throw UserError(fmt::format("{}: one scenario or GPU is predicted at a time; ridgeline compare takes several",
                                    options->arguments.front()));
      if (options->print_scenario) {
        fmt::print("{}", config::write_yaml(load_scenario(options->scenario.source()).asked->tree));
        return;
      }
      outcome.exit_code = answer(options->scenario, options->answer);
      return;
    }
    options->scenario.mind_hardware(options->answer.every_gpu);
    const ScriptRecording recording(options->script, options->scenario.replace_file("", options->arguments));
    options->scenario.replace_file(recording.trace(), {});
    outcome.exit_code = answer_of_recording(options->scenario, options->answer);
  });
}

}  // namespace ridgeline::app
