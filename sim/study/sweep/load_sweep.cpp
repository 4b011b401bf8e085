// A sweep file to a Sweep: axes are written out into their values here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/scenario/scenario.h"
#include "sim/study/sweep/sweep.h"
#include "sim/units/meant_name.h"

#ifndef RIDGELINE_VERSION
#define RIDGELINE_VERSION "development"
#endif

namespace ridgeline {
namespace {

using config::Mapping;
using config::Node;
using config::Value;

constexpr std::size_t kMostValues = 100'000;  // of one axis

/// A node as YAML on one line.
std::string flow(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::scalar:
      if (node.scalar.find_first_of("{}[],:#'\"&*!|>%@`\n") == std::string::npos && !node.scalar.empty())
        return node.scalar;
      out = "'";
      for (const char c : node.scalar) out += c == '\'' ? "''" : std::string(1, c);
      return out + "'";
    case Node::Kind::list:
      for (const Node& item : node.items) out += (out.empty() ? "" : ", ") + flow(item);
      return "[" + out + "]";
    case Node::Kind::mapping:
      for (const config::Entry& entry : node.entries)
        out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", entry.key, flow(entry.value));
      return "{" + out + "}";
  }
  return out;
}

config::Override change(const std::string& key, const std::string& value, const Value& where) {
  return {key, value, fmt::format("{} ({}={})", where.origin().to_string(), key, value)};
}
AxisValue plain(const std::string& key, const std::string& text, const std::string& label, const Value& where) {
  return {label, {change(key, text, where)}, 0};
}

/// Bounds of a range: numbers of one dimension, the unit of the first.
struct Bounds {
  double low = 0, high = 0, unit = 1;
  std::string unit_name;
  bool whole = false;
};

Measure measured(const Value& value) {
  const auto measure = parse_measure(value.text());
  if (!measure) value.fail(fmt::format("'{}' is no number with a unit this program knows", value.text()));
  return *measure;
}
bool is_whole(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos;
}

Bounds read_bounds(const Value& value) {
  const std::vector<Value> ends = value.list();
  if (ends.size() != 2) value.fail(fmt::format("expected [first, last], got {} values", ends.size()));
  const Measure low = measured(ends[0]), high = measured(ends[1]);
  if (low.dimension != high.dimension) ends[1].fail("has another unit than the first bound");
  Bounds b{low.value, high.value, 1, "", is_whole(ends[0].text()) && is_whole(ends[1].text())};
  if (!(b.high > b.low)) ends[1].fail("the last value must be larger than the first");
  const std::string first = ends[0].text();
  if (const auto unit = first.find_first_not_of("0123456789.+-eE_ "); unit != std::string::npos) {
    b.unit_name = first.substr(unit);
    if (const auto one = parse_measure("1 " + b.unit_name)) b.unit = one->value;
  }
  return b;
}

std::vector<AxisValue> spaced(const std::string& key, const Bounds& b, std::size_t count, bool log,
                              const Value& where) {
  std::vector<AxisValue> values;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    double value = log ? b.low * std::pow(b.high / b.low, at) : b.low + (b.high - b.low) * at;
    if (i + 1 == count) value = b.high;
    value /= b.unit;
    std::string text = b.whole ? fmt::format("{}", std::llround(value)) : fmt::format("{:.6g}", value);
    if (!b.unit_name.empty()) text += " " + b.unit_name;
    if (seen.insert(text).second) values.push_back(plain(key, text, text, where));
  }
  return values;
}

std::size_t read_points(const Mapping& mapping) {
  return static_cast<std::size_t>(mapping["points"].integer({2, static_cast<std::int64_t>(kMostValues)}));
}

std::vector<AxisValue> read_range(const std::string& key, const Value& value) {
  const Mapping mapping(value, {"range", "step", "points"});
  const Bounds b = read_bounds(mapping["range"]);
  if (mapping.has("points") == mapping.has("step")) value.fail("a range has either step or points");
  if (mapping.has("points")) return spaced(key, b, read_points(mapping), false, value);
  const Measure step = measured(mapping["step"]);
  if (step.value <= 0) mapping["step"].fail("must be positive");
  Bounds all = b;
  all.whole = b.whole && is_whole(mapping["step"].text());
  const double steps = std::floor((b.high - b.low) / step.value * (1 + 1e-12));
  if (steps > static_cast<double>(kMostValues))
    mapping["step"].fail(fmt::format("gives more than {} values", kMostValues));
  all.high = b.low + steps * step.value;
  return spaced(key, all, static_cast<std::size_t>(steps) + 1, false, value);
}

std::vector<AxisValue> read_log(const std::string& key, const Value& value) {
  const Mapping mapping(value, {"log", "points"});
  const Bounds b = read_bounds(mapping["log"]);
  if (b.low <= 0) mapping["log"].fail("the bounds of a logarithmic range must be positive");
  return spaced(key, b, read_points(mapping), true, value);
}

std::vector<AxisValue> read_times(const std::string& key, const Value& value) {
  const Mapping mapping(value, {"times"});
  if (!key.starts_with("hardware."))
    value.fail("times multiplies a number of the hardware file: a key that begins with 'hardware.'; give a list here");
  std::vector<AxisValue> values;
  for (const Value& factor : mapping["times"].list()) {
    const double times = factor.number(config::Range::positive());
    values.push_back(plain(key, "", fmt::format("{:g}x", times), factor));
    values.back().factor = times;
  }
  return values;
}

std::vector<AxisValue> read_cases(const Value& value) {
  const Mapping mapping(value, {"cases"});
  const Value cases = mapping["cases"];
  if (!cases.is_mapping()) cases.fail("expected a mapping of names to the keys each changes");
  std::vector<AxisValue> values;
  for (const config::Entry& entry : cases.node().entries) {
    const Value one(entry.value, fmt::format("{}.{}", cases.path(), entry.key));
    AxisValue axis_value{entry.key, {}, 0};
    if (entry.value.kind != Node::Kind::null && !one.is_mapping()) one.fail("expected a mapping of keys to values");
    for (const config::Entry& key : entry.value.entries)
      axis_value.overrides.push_back(change(key.key, flow(key.value), Value(key.value, one.path() + "." + key.key)));
    values.push_back(std::move(axis_value));
  }
  return values;
}

SweepAxis read_axis(const std::string& key, const Value& value) {
  SweepAxis axis{key, {}};
  if (value.is_list()) {
    for (const Value& item : value.list()) {
      const std::string text = flow(item.node());
      axis.values.push_back(plain(key, text, item.node().kind == Node::Kind::scalar ? item.node().scalar : text, item));
    }
  } else if (value.is_mapping()) {
    const Node& node = value.node();
    if (node.find("range")) axis.values = read_range(key, value);
    else if (node.find("log")) axis.values = read_log(key, value);
    else if (node.find("times")) axis.values = read_times(key, value);
    else if (node.find("cases")) axis.values = read_cases(value);
    else value.fail("expected a list, or one of range, log, times, cases");
  } else {
    value.fail(fmt::format("expected a list or a range, got {}", value.node().describe()));
  }
  if (axis.values.empty()) value.fail("has no values");
  return axis;
}

Metric read_metric(const Value& value, const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMetrics; ++i) {
    if (info_of(i).name == name) return static_cast<Metric>(i);
    names.emplace_back(info_of(i).name);
  }
  value.fail(fmt::format("unknown quantity '{}'; {}", name, expected_names(name, names)));
}

Constraint read_constraint(const std::string& name, const Value& value) {
  Constraint c{read_metric(value, name), {}, {}};
  const Mapping mapping(value, {"below", "above"});
  if (!mapping.has("below") && !mapping.has("above")) value.fail("expected below, above or both");
  for (const auto& [key, bound] : {std::pair{"below", &c.below}, std::pair{"above", &c.above}})
    if (mapping.has(key)) *bound = measured(mapping[key]).value;
  return c;
}

Goal read_goal(const Value& value) {
  Goal goal;
  if (!value.exists()) return goal;
  static constexpr std::array<std::pair<std::string_view, GoalKind>, 4> kKinds{{{"none", GoalKind::none},
                                                                                {"fastest", GoalKind::fastest},
                                                                                {"cheapest", GoalKind::cheapest},
                                                                                {"pareto", GoalKind::pareto}}};
  if (!value.is_mapping()) {
    goal.kind = value.choice<GoalKind>(kKinds);
  } else {
    const Mapping mapping(value, {"search", "samples_per_s", "of"});
    goal.kind = mapping["search"].choice<GoalKind>(kKinds);
    if (mapping.has("samples_per_s")) goal.samples_per_s = mapping["samples_per_s"].number(config::Range::positive());
    if (mapping.has("of"))
      for (const Value& item : mapping["of"].list()) goal.of.push_back(read_metric(item, item.text()));
  }
  if (goal.kind == GoalKind::cheapest && goal.samples_per_s <= 0)
    value.fail("the cheapest needs a rate to reach: {search: cheapest, samples_per_s: 50}");
  if (goal.kind == GoalKind::pareto && goal.of.empty()) goal.of = {Metric::step_time, Metric::memory, Metric::price};
  return goal;
}

Node read_scenario(const Value& value, const std::filesystem::path& folder) {
  if (value.is_mapping()) return value.node();
  const std::filesystem::path named = value.text();
  if (named.is_absolute()) return load_scenario_tree(named);
  // As seen from the sweep; else from where one stands.
  const std::filesystem::path beside = (folder / named).lexically_normal();
  std::error_code ignored;
  return load_scenario_tree(
      std::filesystem::exists(beside, ignored) || !std::filesystem::exists(named, ignored) ? beside : named);
}

std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

/// splitmix64: the same numbers everywhere.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

}  // namespace

Sweep load_sweep(const std::string& file) { return read_sweep(config::load_yaml(file), file); }

Sweep read_sweep(const Node& tree, const std::string& file) {
  const Mapping root(Value(tree), {"title", "scenario", "axes", "sample", "constraints", "goal", "engine"});
  Sweep sweep;
  sweep.file = file;
  sweep.title = root["title"].text(std::filesystem::path(file).stem().string());
  sweep.scenario = read_scenario(root["scenario"], std::filesystem::path(file).parent_path());
  sweep.engine = root["engine"].text("analytic");
  const Value axes = root["axes"];
  if (!axes.is_mapping() || axes.node().entries.empty()) axes.fail("expected a mapping of keys to lists or ranges");
  double size = 1;
  for (const config::Entry& entry : axes.node().entries) {
    sweep.axes.push_back(read_axis(entry.key, Value(entry.value, "axes." + entry.key)));
    size *= static_cast<double>(sweep.axes.back().values.size());
  }
  if (root.has("sample")) {
    const Mapping sample(root["sample"], {"points", "seed"});
    sweep.sample_points =
        static_cast<std::uint64_t>(sample["points"].integer({1, static_cast<std::int64_t>(kMostSweepPoints)}));
    sweep.seed = static_cast<std::uint64_t>(sample["seed"].integer({}, 1));
  }
  if (size > 1e15 || (size > static_cast<double>(kMostSweepPoints) && !sweep.sample_points))
    axes.fail(
        fmt::format("the grid has {:.3g} points, more than {}; add sample: {{points: ...}}", size, kMostSweepPoints));
  if (root.has("constraints")) {
    if (!root["constraints"].is_mapping()) root["constraints"].fail("expected a mapping");
    for (const config::Entry& entry : root["constraints"].node().entries)
      sweep.constraints.push_back(read_constraint(entry.key, Value(entry.value, "constraints." + entry.key)));
  }
  sweep.goal = read_goal(root["goal"]);
  sweep.fingerprint = fingerprint_of(sweep);
  return sweep;
}

std::uint64_t fingerprint_of(const Sweep& sweep) {
  std::string text = fmt::format("{}\n{}\n{}\n", RIDGELINE_VERSION, sweep.engine, flow(sweep.scenario));
  for (const SweepAxis& axis : sweep.axes) {
    text += axis.name + "\n";
    for (const AxisValue& value : axis.values) {
      text += fmt::format(" {} {}\n", value.label, value.factor);
      for (const config::Override& change : value.overrides) text += fmt::format("  {}={}\n", change.key, change.value);
    }
  }
  if (sweep.sample_points) text += fmt::format("{} of seed {}\n", *sweep.sample_points, sweep.seed);
  if (sweep.brief) text += "brief\n";
  return hash(text);
}

std::uint64_t Sweep::grid_size() const {
  std::uint64_t size = 1;
  for (const SweepAxis& axis : axes) size *= axis.values.size();
  return size;
}

std::vector<std::uint64_t> Sweep::points() const {
  const std::uint64_t size = grid_size();
  std::vector<std::uint64_t> result;
  if (!sample_points || *sample_points >= size) {
    for (std::uint64_t i = 0; i < size; ++i) result.push_back(i);
    return result;
  }
  // Floyd's sample without replacement.
  std::set<std::uint64_t> chosen;
  std::uint64_t state = seed;
  for (std::uint64_t top = size - *sample_points; top < size; ++top) {
    const std::uint64_t one = next_random(state) % (top + 1);
    if (!chosen.insert(one).second) chosen.insert(top);
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<std::size_t> Sweep::values_of(std::uint64_t point) const {
  std::vector<std::size_t> values(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    values[i] = point % axes[i].values.size();
    point /= axes[i].values.size();
  }
  return values;
}

}  // namespace ridgeline
