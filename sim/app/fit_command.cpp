// ridgeline fit: the largest micro-batch of a scenario that its device holds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/print_report.h"
#include "sim/app/scenario_options.h"
#include "sim/app/waiting.h"
#include "sim/output/standard_output.h"
#include "sim/report/fit_report.h"
#include "sim/study/longest.h"

namespace ridgeline::app {
namespace {

struct FitOptions {
  ScenarioOptions scenario;
  std::string engine = "analytic", format = "text";
  bool length = false, server = false;
  ServerMemory memory;
};

/// The search finds the batch: one that nobody names is 1.
ScenarioSource with_a_batch(ScenarioSource source) {
  const auto says = [](const config::Override& o) {
    return o.key == "training.micro_batch" || o.key.starts_with("inference");
  };
  if (std::any_of(source.overrides.begin(), source.overrides.end(), says)) return source;
  if (source.file) {
    const config::Node tree = load_scenario_tree(*source.file);
    if (tree.kind != config::Node::Kind::mapping) return source;
    const config::Node* training = tree.find("training");
    if (tree.find("inference") || tree.find("trace") || (training && training->find("micro_batch"))) return source;
  }
  source.overrides.insert(source.overrides.begin(), {"training.micro_batch", "1", "fit"});
  return source;
}

std::string gib_words(std::int64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

/// The longest sequences, in the place of the largest batch.
void run_length(const Scenario& scenario) {
  Session session;
  const LongestFit fit = fit_length(session, scenario);
  const char* what = fit.of_prompt ? "tokens of prompt" : "tokens";
  std::string out = fmt::format("{}\n{}, {}\n\n", scenario.title, scenario.gpu.name, gib_words(fit.capacity));
  if (fit.tokens == 0) out += fmt::format("  fits          not even {} {} a sequence\n", kLengthStep, what);
  else out += fmt::format("  fits          {} {} a sequence: needs {}\n", fit.tokens, what, gib_words(fit.needed));
  if (fit.failing > 0)
    out += fmt::format("  limited by    {} {} need {}\n", fit.failing, what, gib_words(fit.needed_failing));
  else out += "  limited by    positions of the network, not memory\n";
  out += fmt::format("  search        {} lengths, multiples of {}\n", fit.predictions, kLengthStep);
  print_report(out);
}

/// Tokens that a server's cache holds, in the place of the largest batch.
void run_server(const Scenario& scenario, const ServerMemory& memory) {
  Session session;
  const ServerCache cache = server_cache(session, scenario, memory);
  std::string out = fmt::format("{}\n{}, {}, of which {} for the server\n\n", scenario.title, scenario.gpu.name,
                                gib_words(cache.capacity), gib_words(cache.given));
  out += fmt::format("  memory        weights {}, CUDA context {}, a pass of {} tokens {}, keys and values {}\n",
                     gib_words(cache.weights), gib_words(cache.context), memory.batched_tokens,
                     gib_words(cache.rest_of_peak), gib_words(cache.cache));
  if (cache.tokens == 0) out += "  cache         no room for keys and values\n";
  else
    out += fmt::format(
        "  cache         {} tokens in {} blocks of {}, {:.1f} KiB a token\n"
        "  sequences     {:.2f} of {} tokens at the same time\n",
        cache.tokens, cache.blocks, memory.block, static_cast<double>(cache.bytes_of_token) / 1024.0, cache.sequences,
        memory.context);
  out += "  note          memory alone; the pass is Transformers' code, a server's own kernels take less\n";
  print_report(out);
}

void run(const FitOptions& options) {
  if (options.length) return run_length(load_scenario(with_a_batch(options.scenario.source())));
  if (options.server) return run_server(load_scenario(options.scenario.source()), options.memory);
  const Scenario scenario = load_scenario(with_a_batch(options.scenario.source()));
  Session session;
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Waiting> waiting(std::in_place, "searching the largest batch");
  const FitResult result = fit_batch(session, scenario, options.engine);
  waiting.reset();
  const Seconds time{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  if (options.format == "json")
    print("{}\n", fit_json(result, time).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(fit_text(result, time));
}

}  // namespace

void add_fit_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<FitOptions>();
  auto* command = program.add_subcommand("fit", "the largest micro-batch that fits, and what limits it");
  options->scenario.add_to(*command);
  command->add_flag("--length", options->length, "the longest sequences, or prompts, with the scenario's batch");
  command->add_flag("--server", options->server, "tokens that the paged cache of a server holds (inference)");
  command->add_option("--utilization", options->memory.utilization, "of --server: share of the device's memory (0.9)")
      ->check(CLI::Range(0.01, 1.0));
  command->add_option("--batched-tokens", options->memory.batched_tokens, "of --server: tokens of one pass (8192)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--max-model-len", options->memory.context, "of --server: tokens of a sequence (8192)")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--page", options->memory.block, "of --server: tokens of a block (16)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--engine", options->engine, "of the step time: roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
