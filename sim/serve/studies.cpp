// The part of the API that answers with studies: comparisons, the largest batch, sweeps.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/input/json_depth.h"
#include "sim/report/comparison_report.h"
#include "sim/report/fit_report.h"
#include "sim/report/plan_report.h"
#include "sim/report/sweep_report.h"
#include "sim/serve/asked.h"
#include "sim/study/plan/plan_question.h"
#include "sim/study/plan/plan_search.h"
#include "sim/study/sweep/run_sweep.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/budget.h"
#include "sim/units/meant_name.h"
#include "sim/units/user_error.h"

namespace ridgeline::serve {
namespace {

using nlohmann::ordered_json;

/// {"scenario": {…} or its YAML, "set": ["KEY=VALUE"], "label": "A"}
struct Side {
  std::string label;
  ScenarioSource source;
};

Side side_of(const ordered_json& json, bool datasheet) {
  if (!json.is_object()) throw UserError("sides: expected objects {\"scenario\": …, \"set\": […], \"label\": …}");
  Side side;
  std::string text;
  std::vector<std::string> sets;
  for (const auto& [key, value] : json.items()) {
    if (key == "label" && value.is_string()) side.label = value;
    else if (key == "scenario" && value.is_string()) text = value;
    else if (key == "scenario" && value.is_object()) text = value.dump();
    else if (key == "set" && value.is_array())
      for (const ordered_json& one : value) {
        if (!one.is_string()) throw UserError("sides: set holds texts, \"KEY=VALUE\"");
        sets.push_back(one);
      }
    else
      throw UserError(
          fmt::format("sides: {}: expected scenario (an object or a text), set (a list) or label (a text)", key));
  }
  side.source = source_of(text, sets, datasheet);
  return side;
}

ordered_json parsed(const std::string& body) {
  check_json_depth(body);
  ordered_json json = ordered_json::parse(body, nullptr, false);
  if (json.is_discarded()) throw UserError("the body is no JSON");
  return json;
}

/// "8,16"; empty for nothing.
std::vector<std::int64_t> numbers_of(const std::string& text, std::string_view name) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (rest != end && *rest != ',') || number < 1)
      throw UserError(fmt::format("{}: expected numbers of at least 1, as in 8,16", name));
    numbers.push_back(number);
    at = rest == end ? end : rest + 1;
  }
  return numbers;
}

/// One of few places, given back at the end.
class Place {
 public:
  Place(std::atomic<int>& taken, int most) : taken_(taken), got_(++taken <= most) {}
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] bool got() const { return got_; }

 private:
  std::atomic<int>& taken_;
  bool got_;
};

}  // namespace

Reply Api::compare(const Asked& asked) {
  asked.takes({"engine", "datasheet"});
  const ordered_json body = parsed(asked.request.body);
  const auto sides = body.is_object() ? body.find("sides") : body.end();
  if (!body.is_object() || body.size() != 1 || sides == body.end() || !sides->is_array())
    throw UserError("expected {\"sides\": [{\"scenario\": …, \"set\": […], \"label\": …}, …]}");
  if (sides->size() < 2 || sides->size() > kMostSides)
    throw UserError(fmt::format("sides: expected 2 to {}, got {}", kMostSides, sides->size()));
  const std::shared_ptr<Descriptions> known = descriptions();
  std::vector<Scenario> scenarios;
  std::vector<std::string> labels;
  for (const ordered_json& one : *sides) {
    const Side side = side_of(one, asked.target.flag("datasheet"));
    scenarios.push_back(load_scenario(side.source, *known));
    labels.push_back(side.label.empty() ? scenarios.back().title : side.label);
  }
  return json_reply(comparison_json(ridgeline::compare(session_, scenarios, labels, asked.engine())));
}

Reply Api::fit(const Asked& asked) {
  asked.takes({"set", "engine", "datasheet"});
  const std::shared_ptr<Descriptions> known = descriptions();
  const Scenario scenario =
      load_scenario(source_of(asked.request.body, asked.target.all("set"), asked.target.flag("datasheet")), *known);
  const auto begin = std::chrono::steady_clock::now();
  const FitResult result = fit_batch(session_, scenario, asked.engine());
  const Seconds time{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  return json_reply(fit_json(result, time));
}

namespace {

/// A sweep of scenarios/sweeps, by its name alone.
Sweep load_shipped_sweep(const std::string& name) {
  const std::filesystem::path folder = config::data_folder("scenarios") / "sweeps";
  const std::vector<std::string> names = config::yaml_names(folder);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(fmt::format("name: no sweep '{}' is shipped; {}", name, expected_names(name, names)));
  return load_sweep((folder / (name + ".yaml")).string());
}

}  // namespace

Reply Api::sweep(const Asked& asked) {
  asked.takes({"name"});
  const std::string name = asked.target.get("name");
  const Sweep sweep =
      name.empty() ? read_sweep(config::parse_yaml(asked.request.body, "sweep"), "sweep") : load_shipped_sweep(name);
  check_axes(sweep);
  const std::uint64_t most = options_.most_sweep_points;
  const std::uint64_t asked_for =
      sweep.sample_points ? std::min(*sweep.sample_points, sweep.grid_size()) : sweep.grid_size();
  if (asked_for > most)
    throw UserError(
        fmt::format("the sweep has {} points, a server takes {}; sample: {{points: {}}}, or ridgeline sweep", asked_for,
                    most, most));
  const Place place(sweeps_, options_.most_sweeps);
  if (!place.got()) return error_reply(503, "as many sweeps as this server takes at once are running");
  const std::vector<std::uint64_t> indices = sweep.points();
  std::uint64_t done = 0;
  SweepRunOptions options;
  options.on_points = [&](std::span<const SweepPoint> points) {
    done += points.size();
    if (asked.progress) asked.progress(done, indices.size());
  };
  const std::vector<SweepPoint> points = run_sweep(sweep, indices, options);
  keep_budget("the sweep");
  return json_reply(sweep_json(sweep, points));
}

Reply Api::plan(const Asked& asked) {
  asked.takes({"set", "engine", "gpus", "sequences", "datasheet"});
  PlanRequest request{.source = source_of(asked.request.body, asked.target.all("set"), asked.target.flag("datasheet")),
                      .gpus = numbers_of(asked.target.get("gpus"), "gpus")};
  std::sort(request.gpus.begin(), request.gpus.end());
  if (const auto batch = numbers_of(asked.target.get("sequences"), "sequences"); !batch.empty())
    request.batch = batch.front();
  request.engine = asked.engine();
  const Place place(sweeps_, options_.most_sweeps);
  if (!place.got()) return error_reply(503, "as many sweeps as this server takes at once are running");
  const PlanQuestion question = plan_question(request, session_, 0);
  if (question.candidates.size() > options_.most_sweep_points)
    throw UserError(fmt::format("the plan has {} ways, a server takes {}; keep some keys with set, or ridgeline plan",
                                question.candidates.size(), options_.most_sweep_points));
  PlanSearchOptions options;
  options.on_progress = [&](std::size_t predicted, std::size_t open) {
    if (asked.progress) asked.progress(predicted, predicted + open);
  };
  Ranks alone;
  const PlanSearch search = search_plan(question, session_, alone, options);
  keep_budget("the plan");
  check_that_some_fit(question, search);
  return json_reply(plan_json(question, search, answer_plan(question, search, session_, 0)));
}

}  // namespace ridgeline::serve
