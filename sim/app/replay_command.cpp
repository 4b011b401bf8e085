// ridgeline replay: the question predict answers, of a step that was recorded.
#include "sim/answer/other_ranks.h"
#include "sim/app/answer.h"
#include "sim/app/commands.h"

namespace ridgeline::app {

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
    if (!options->ranks.empty())
      check_other_ranks(load_scenario(options->scenario.source()), options->answer.engine, options->ranks);
    outcome.exit_code = answer_of_recording(options->scenario, options->answer);
  });
}

}  // namespace ridgeline::app
