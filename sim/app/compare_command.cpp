// ridgeline compare: scenarios, GPUs or changes side by side, with the reasons for the difference.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "sim/app/commands.h"
#include "sim/app/output_files.h"
#include "sim/app/page_output.h"
#include "sim/app/print_report.h"
#include "sim/app/scenario_options.h"
#include "sim/app/waiting.h"
#include "sim/hardware/load_gpu.h"
#include "sim/output/standard_output.h"
#include "sim/report/answer_report.h"
#include "sim/report/comparison_report.h"
#include "sim/scenario/descriptions.h"
#include "sim/scenario/named_kind.h"
#include "sim/scenario/scenario_file.h"
#include "sim/scenario/short_flags.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {
namespace {

struct CompareOptions {
  ScenarioOptions scenario;
  std::vector<std::string> subjects, changes;
  std::string engine = "analytic", format = "text", html;
};

struct Sides {
  std::vector<Scenario> scenarios;
  std::vector<std::string> labels;
  void add(const ScenarioSource& source, const std::string& label, Descriptions& descriptions) {
    scenarios.push_back(load_scenario(source, descriptions));
    labels.push_back(label.empty() ? scenarios.back().title : label);
  }
};

/// "--lora 16 --precision bf16", as reports advise changes.
std::vector<config::Override> overrides_of_flags(const std::string& change) {
  std::vector<config::Override> out;
  std::istringstream words(change);
  for (std::string word; words >> word;) {
    const auto flags = short_flags();
    const auto flag = std::find_if(flags.begin(), flags.end(), [&](const ShortFlag& one) { return one.flag == word; });
    std::string value;
    if (flag == flags.end() && word == "--set" && words >> value) {
      out.push_back(config::parse_override(value));
    } else {
      if (flag == flags.end())
        throw UserError(fmt::format("--with {}: {} is no short flag; KEY=VALUE changes any key", change, word));
      if (flag->has_value() && !(words >> value))
        throw UserError(fmt::format("--with {}: {} needs a value, such as {} {}", change, word, word, flag->example));
      for (config::Override& one : changes_of(*flag, value, false)) out.push_back(std::move(one));
    }
    out.back().origin = "--with " + change;
  }
  return out;
}

/// "KEY=VALUE KEY=VALUE", split where a space is followed by another KEY=.
std::vector<config::Override> overrides_of(const std::string& change) {
  if (change.starts_with("--")) return overrides_of_flags(change);
  std::vector<config::Override> out;
  std::size_t begin = 0;
  while (begin < change.size()) {
    std::size_t end = change.size();
    for (std::size_t space = change.find(' ', begin); space != std::string::npos; space = change.find(' ', space + 1)) {
      const std::size_t equals = change.find('=', space), next = change.find(' ', space + 1);
      const bool starts_a_key =
          equals != std::string::npos && equals > space + 1 && (next == std::string::npos || equals < next);
      if (!starts_a_key) continue;
      end = space;
      break;
    }
    const std::string one = change.substr(begin, end - begin);
    if (one.find('=') == std::string::npos)
      throw UserError(
          fmt::format("--with {}: expected KEY=VALUE or flags, such as \"training.precision=bf16\" or "
                      "\"--precision bf16\"",
                      change));
    out.push_back(config::parse_override(one));
    out.back().origin = "--with " + change;
    begin = end + 1;
  }
  return out;
}

/// A GPU by any spelling; a file of that name is a scenario.
bool is_gpu(const std::string& subject) {
  std::error_code ignored;
  return !std::filesystem::exists(subject, ignored) && key_of_name(subject) == "hardware";
}

bool names_hardware(const ScenarioSource& source) {
  return std::any_of(source.overrides.begin(), source.overrides.end(),
                     [](const config::Override& change) { return change.key == "hardware"; });
}

Sides sides_of(const CompareOptions& options, Session& session) {
  std::vector<std::string> files, gpus;
  for (const std::string& subject : options.subjects) (is_gpu(subject) ? gpus : files).push_back(subject);
  if (files.size() > 1 && !(gpus.empty() && options.changes.empty()))
    throw UserError("compare: name GPUs and --with changes beside one scenario, not several");
  Sides sides;
  Descriptions& descriptions = session.descriptions();
  const auto source = [&](const std::string* file) {
    ScenarioSource result = options.scenario.source();
    if (file) result.file = scenario_file(*file);
    return result;
  };
  const std::string* base = files.empty() ? nullptr : &files.front();
  // A recording names no GPU to run on: alone, it is what the GPUs are compared for.
  const bool without_gpu = base && !gpus.empty() && trace::looks_like_recording(*base) && !names_hardware(source(base));
  const bool has_base = (base && !without_gpu) || gpus.empty();  // flags alone describe a scenario, but for its GPU
  if (has_base) sides.add(source(base), "", descriptions);
  for (std::size_t i = 1; i < files.size(); ++i) sides.add(source(&files[i]), "", descriptions);
  for (const std::string& gpu : gpus) {
    ScenarioSource on = source(base);
    std::erase_if(on.overrides, [](const config::Override& change) { return change.key == "hardware"; });
    on.overrides.insert(on.overrides.begin(), {"hardware", gpu, gpu});
    sides.add(on, gpu, descriptions);
  }
  for (const std::string& change : options.changes) {
    ScenarioSource changed = source(base);
    if (!has_base) changed.overrides.insert(changed.overrides.begin(), {"hardware", gpus.front(), gpus.front()});
    for (config::Override& one : overrides_of(change)) changed.overrides.push_back(std::move(one));
    sides.add(changed, change, descriptions);
  }
  return sides;
}

void write_comparison_page(const std::string& path, const Comparison& comparison) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  std::string title = "Comparison:";
  for (const ComparedScenario& side : comparison.sides) {
    parts.push_back(answer_page_part(*side.run, side.prediction, side.label));
    title += (parts.size() == 1 ? " " : ", ") + side.label;
  }
  write_page(path, title, std::move(parts), {{"comparison", comparison_json(comparison)}});
}

void run(const CompareOptions& options) {
  std::optional<Waiting> waiting(std::in_place, "comparing");
  Session session;
  const Sides sides = sides_of(options, session);
  const Comparison comparison = compare(session, sides.scenarios, sides.labels, options.engine);
  waiting.reset();
  if (!options.html.empty()) write_comparison_page(options.html, comparison);
  if (options.format == "json")
    print("{}\n", comparison_json(comparison).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else print_report(comparison_text(comparison));
}

}  // namespace

void add_compare_command(CLI::App& program, Outcome&) {
  auto options = std::make_shared<CompareOptions>();
  auto* command = program.add_subcommand("compare", "two to six scenarios, GPUs or changes side by side, with reasons");
  command->add_option("subjects", options->subjects,
                      "scenario files or recorded steps; or one file (or flags) and names of GPUs to run it on");
  command
      ->add_option("--with", options->changes,
                   "\"KEY=VALUE KEY=VALUE\" or \"--lora 16\": one more side, the scenario so changed")
      ->allow_extra_args(false)
      ->take_all();
  options->scenario.add_flags_to(*command);
  command->add_option("--engine", options->engine, "roofline, analytic or simulate");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  add_output_option(*command, "--html", options->html, "write one self-contained page with pictures to this file");
  command->callback([options] { run(*options); });
}

}  // namespace ridgeline::app
