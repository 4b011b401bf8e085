// ridgeline plan: the best ways to train on so many GPUs; alone or under mpirun.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/output_files.h"
#include "sim/app/print_report.h"
#include "sim/app/scenario_options.h"
#include "sim/app/stop_signal.h"
#include "sim/app/waiting.h"
#include "sim/config/value.h"
#include "sim/output/standard_error.h"
#include "sim/output/standard_output.h"
#include "sim/report/memory_plan_report.h"
#include "sim/report/plan_report.h"
#include "sim/study/plan/memory_plan.h"
#include "sim/study/plan/plan_question.h"
#include "sim/study/plan/plan_search.h"
#include "sim/study/sweep/points_file.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct PlanOptions {
  ScenarioOptions scenario;
  std::vector<std::int64_t> gpus;
  std::int64_t batch = 0;
  std::string engine = "analytic", format = "text", keep, memory;
  int threads = 0;
};

/// A line that is written over, where a person watches.
class PlanProgress {
 public:
  PlanProgress() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~PlanProgress() {
    if (said_) print_message_as_it_is(fmt::format("\r{:60}\r", ""));
  }
  PlanProgress(const PlanProgress&) = delete;
  PlanProgress& operator=(const PlanProgress&) = delete;
  void say(std::size_t predicted, std::size_t open) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    said_ = true;
    print_message_as_it_is(fmt::format("\r{} ways predicted, {} may still be answers   ", predicted, open));
  }

 private:
  bool shown_, said_ = false;
  std::chrono::steady_clock::time_point last_{};
};

/// Rank 0, or the only one.
void lead_plan(const PlanOptions& options, const PlanQuestion& question, Session& session, Ranks& ranks,
               std::optional<PointsFile>& file, const std::atomic<bool>& stop_planning) {
  PlanSearch search;
  {
    PlanProgress progress;
    PlanSearchOptions how{.threads = options.threads, .stop = &stop_planning};
    if (file) how.known = file->known();
    if (!how.known.empty()) print_message("{}: {} ways are there already\n", file->path(), how.known.size());
    how.on_points = [&](std::span<const SweepPoint> done) {
      if (file) file->append(done);
    };
    how.on_progress = [&](std::size_t predicted, std::size_t open) { progress.say(predicted, open); };
    search = search_plan(question, session, ranks, how);
    if (file) file->flush();
  }
  if (stop_planning)
    throw Stopped(file ? fmt::format("stopped: {} ways are predicted; the same command goes on from {}",
                                     search.predictions, file->path())
                       : fmt::format("stopped after {} predictions; --keep FILE keeps them", search.predictions));
  check_that_some_fit(question, search);
  const PlanAnswer answer = answer_plan(question, search, session, options.threads);
  if (options.format == "json")
    print("{}\n",
          plan_json(question, search, answer).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(plan_text(question, search, answer));
}

PlanRequest request_of(const PlanOptions& options) {
  PlanRequest request{.source = options.scenario.source(), .gpus = options.gpus};
  std::sort(request.gpus.begin(), request.gpus.end());
  request.gpus.erase(std::unique(request.gpus.begin(), request.gpus.end()), request.gpus.end());
  if (options.batch != 0) request.batch = options.batch;
  request.engine = options.engine;
  return request;
}

/// Parts of blocks under a memory budget, in the place of ways over several GPUs.
void run_memory(const PlanOptions& options) {
  if (!options.gpus.empty() || !options.keep.empty())
    throw UserError("--memory plans what one GPU keeps of each block: leave --gpus and --keep out");
  ScenarioSource source = options.scenario.source();
  if (options.batch != 0)
    source.overrides.push_back({"training.micro_batch", std::to_string(options.batch), "--batch"});
  const Scenario scenario = load_scenario(source);
  config::Node given;
  given.kind = config::Node::Kind::scalar;
  given.scalar = options.memory;
  const auto budget = config::Value(given, "--memory").quantity<Bytes>(config::Range::positive());
  Session session;
  std::optional<Waiting> waiting(std::in_place, "choosing what to keep");
  const MemoryPlan plan = plan_memory(session, scenario, static_cast<std::int64_t>(budget.value()), options.engine);
  waiting.reset();
  if (options.format == "json") print("{}\n", memory_plan_json(plan).dump(1));
  else print_report(memory_plan_text(scenario, plan));
}

void run(const PlanOptions& options) {
  if (!options.memory.empty()) return run_memory(options);
  if (options.gpus.empty())
    throw UserError(
        "plan: --gpus is missing: how many to train on, for example --gpus 8; --memory 24GiB chooses what one keeps");
  int argc = 0;
  char** argv = nullptr;
  const std::unique_ptr<Ranks> joined = join_ranks(argc, argv);
  Ranks& ranks = *joined;
  const std::atomic<bool>& stop_planning = stop_on_signals();
  const Budget budget({.memory = memory_budget()}, {}, &stop_planning);
  const UnderBudget under(&budget);
  Session session;
  std::optional<PlanQuestion> question;
  std::optional<PointsFile> file;
  std::string mistake;
  try {
    question = plan_question(request_of(options), session, options.threads);
    if (!options.keep.empty() && ranks.rank() == 0) file.emplace(options.keep, question->sweep);
  } catch (const UserError& error) {
    mistake = error.what();
  }
  // One message for a mistake that all ranks see.
  if (!ranks.agreed(mistake.empty())) {
    if (ranks.rank() == 0) throw UserError(mistake);
    return;
  }
  if (!mistake.empty()) throw UserError(fmt::format("rank {}: {}", ranks.rank(), mistake));
  try {
    if (ranks.rank() == 0) lead_plan(options, *question, session, ranks, file, stop_planning);
    else help_search(*question, session, ranks, {.threads = options.threads, .stop = &stop_planning});
  } catch (const std::exception& error) {
    if (ranks.count() == 1) throw;
    if (ranks.rank() == 0) print_message("ridgeline: {}\n", error.what());
    file.reset();  // leaving destroys nothing
    ranks.leave(exit_code_of(error));
  }
}

}  // namespace

void add_plan_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<PlanOptions>();
  auto* command = program.add_subcommand("plan", "the best ways to train on so many GPUs");
  options->scenario.add_to(*command);
  for (const char* of_one : {"--batch", "--accumulation"}) command->remove_option(command->get_option(of_one));
  command->add_option("--gpus", options->gpus, "how many; a list (8,16) plans for each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
  command->add_option(
      "--batch", options->batch,
      "sequences of a step of all GPUs together (of --memory, of its GPU); not given: those of the scenario");
  command->add_option("--memory", options->memory,
                      "of one GPU (24GiB): chooses what of each block is kept, run again or sent to the host");
  add_output_option(*command, "--keep", options->keep,
                    "keep what was predicted in this file (an SQLite database) and go on from it");
  command->add_option("--threads", options->threads, "of this process; all cores if not given")
      ->check(CLI::Range(1, 1024));
  command->add_option("--engine", options->engine, "roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
