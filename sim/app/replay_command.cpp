// ridgeline replay: the question predict answers, of a step that was recorded.
#include "sim/app/answer.h"
#include "sim/app/commands.h"

namespace ridgeline::app {

void add_replay_command(CLI::App& program, Outcome& outcome) {
  struct Options {
    ScenarioOptions scenario;
    AnswerOptions answer;
  };
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("replay", "a step that was recorded, predicted on a GPU");
  options->scenario.add_recording_to(*command);
  options->answer.add_to(*command);
  command->callback(
      [options, &outcome] { outcome.exit_code = answer_of_recording(options->scenario, options->answer); });
}

}  // namespace ridgeline::app
