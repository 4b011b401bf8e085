// ridgeline predict: a scenario file, flags, or both, to step time, memory and reasons.
#include "sim/app/answer.h"
#include "sim/app/commands.h"

namespace ridgeline::app {

void add_predict_command(CLI::App& program, Outcome& outcome) {
  struct Options {
    ScenarioOptions scenario;
    AnswerOptions answer;
  };
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("predict", "step time and peak memory of one training step, with reasons");
  options->scenario.add_to(*command);
  options->answer.add_to(*command);
  command->callback([options, &outcome] { outcome.exit_code = answer(options->scenario, options->answer); });
}

}  // namespace ridgeline::app
