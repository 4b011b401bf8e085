// ridgeline phases: training in phases that share a GPU, each a scenario.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/app/waiting.h"
#include "sim/config/parse_yaml.h"
#include "sim/output/standard_output.h"
#include "sim/study/phases.h"

namespace ridgeline::app {
namespace {

struct PhasesOptions {
  std::string file, engine = "analytic", format = "text";
};

nlohmann::ordered_json json_of(const PhasesAnswer& answer) {
  nlohmann::ordered_json phases = nlohmann::ordered_json::array();
  for (const PhaseAnswer& p : answer.phases)
    phases.push_back({{"name", p.name},
                      {"times", p.times},
                      {"once_s", p.once.value()},
                      {"copies_s", p.copies.value()},
                      {"own_bytes", p.own},
                      {"weights_bytes", p.weights},
                      {"states_bytes", p.states},
                      {"others_bytes", p.of_others},
                      {"peak_bytes", p.peak},
                      {"fits", p.fits}});
  return {{"title", answer.title},     {"hardware", answer.hardware},     {"capacity_bytes", answer.capacity},
          {"host_bytes", answer.host}, {"round_s", answer.round.value()}, {"phases", phases}};
}

void run(const PhasesOptions& options) {
  const PhasedTraining training = read_phases(config::load_yaml(options.file));
  Session session;
  std::optional<Waiting> waiting(std::in_place, "predicting phases");
  const PhasesAnswer answer = answer_phases(session, training, options.engine);
  waiting.reset();
  if (options.format == "json")
    print("{}\n", json_of(answer).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(phases_text(answer));
}

}  // namespace

void add_phases_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<PhasesOptions>();
  auto* command = program.add_subcommand("phases", "training in phases that share a GPU: time and peak of each");
  command->add_option("file", options->file, "phases, each a scenario (YAML)")->required();
  command->add_option("--engine", options->engine, "roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
