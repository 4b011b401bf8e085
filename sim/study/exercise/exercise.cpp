#include "sim/study/exercise/exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/study/exercise/expression.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;
using Kind = MeasureSource::Kind;

constexpr std::pair<std::string_view, std::string_view> kViews[] = {
    {"overview", "overview"}, {"timeline", "timeline"}, {"memory", "memory"}, {"kernels", "kernels"}};

std::vector<config::Override> read_changes(const Value& value) {
  std::vector<config::Override> changes;
  if (!value.exists()) return changes;
  if (!value.is_mapping()) value.fail("expected a mapping of keys to values");
  for (const config::Entry& entry : value.node().entries) {
    const std::string text = Value(entry.value, value.path() + "." + entry.key).text();
    changes.push_back({entry.key, text, fmt::format("{} ({}={})", entry.value.origin.to_string(), entry.key, text)});
  }
  return changes;
}

MeasureSource read_measure(const std::string& name, const Value& value) {
  MeasureSource m;
  m.name = name;
  if (!value.is_mapping()) {
    m.expression = value.text();
    return m;
  }
  const Mapping mapping(value, {"predict", "kernel", "occupancy", "hardware", "model", "set", "get"});
  if (mapping.has("predict")) {
    m.subject = mapping["predict"].text();
  } else if (mapping.has("kernel")) {
    m.kind = Kind::kernel;
    m.subject = mapping["kernel"].text();
    m.hardware = mapping["hardware"].text();
  } else if (mapping.has("occupancy")) {
    m.kind = Kind::occupancy;
    m.hardware = mapping["hardware"].text();
    const Mapping block(mapping["occupancy"], {"threads", "registers", "shared"});
    m.threads = static_cast<int>(block["threads"].integer({1, 1024}));
    m.registers = static_cast<int>(block["registers"].integer({1, 255}));
    m.shared_bytes = static_cast<long long>(block["shared"].quantity<Bytes>(config::Range::non_negative()).value());
  } else if (mapping.has("model")) {
    m.kind = Kind::model;
    m.subject = mapping["model"].text();
  } else {
    m.kind = Kind::hardware;
    m.subject = mapping["hardware"].text();
  }
  m.changes = read_changes(mapping["set"]);
  m.key = mapping["get"].text();
  return m;
}

void read_hints(const Mapping& root, Exercise& exercise) {
  if (root.has("wrong"))
    for (const Value& one : root["wrong"].list()) {
      const Mapping mistake(one, {"answer", "hint"});
      exercise.wrong.push_back({mistake["answer"].text(), mistake["hint"].text()});
    }
  exercise.low = root["low"].text();
  exercise.high = root["high"].text();
}

void read_picture(const Mapping& root, Exercise& exercise) {
  exercise.view = root["view"].choice<std::string_view>(kViews, "overview");
  const Mapping picture(root["picture"], {"title", "unit", "bars"});
  exercise.picture.title = picture["title"].text();
  exercise.picture.unit = picture["unit"].text("");
  if (!picture["bars"].is_mapping()) picture["bars"].fail("expected a mapping of labels to expressions");
  for (const config::Entry& bar : picture["bars"].node().entries)
    exercise.picture.bars.push_back({bar.key, Value(bar.value, "picture.bars." + bar.key).text()});
}

/// In units of the exercise; 1 for what is no unit of this program ("FLOP/B").
Measure unit_of(const Exercise& exercise) {
  return parse_measure("1 " + exercise.unit).value_or(Measure{1.0, Dimension::dimensionless});
}

}  // namespace

Exercise load_exercise(const std::string& file) { return read_exercise(config::load_yaml(file), file); }

Exercise read_exercise(const config::Node& tree, const std::string& file) {
  const Mapping root(Value(tree), {"title", "chapter", "minutes", "question", "explore", "measures", "answer", "unit",
                                   "tolerance", "measured", "wrong", "low", "high", "explanation", "picture", "view"});
  Exercise exercise;
  exercise.file = file;
  const std::string stem = std::filesystem::path(file).stem().string();
  std::from_chars(stem.data(), stem.data() + stem.size(), exercise.number);
  exercise.title = root["title"].text();
  exercise.chapter = root["chapter"].text();
  exercise.minutes = static_cast<int>(root["minutes"].integer({1, 240}));
  exercise.question = root["question"].text();
  for (const Value& command : root["explore"].list()) exercise.explore.push_back(command.text());
  if (!root["measures"].is_mapping()) root["measures"].fail("expected a mapping of names to where numbers come from");
  for (const config::Entry& entry : root["measures"].node().entries)
    exercise.measures.push_back(read_measure(entry.key, Value(entry.value, "measures." + entry.key)));
  exercise.answer = root["answer"].text();
  exercise.unit = root["unit"].text("");
  exercise.tolerance = root["tolerance"].number({0.0, 1.0, true});
  if (root.has("measured")) {
    const Mapping measured(root["measured"], {"value", "source"});
    exercise.measured = measured["value"].text();
    exercise.measured_source = measured["source"].text();
  }
  read_hints(root, exercise);
  exercise.explanation = root["explanation"].text();
  read_picture(root, exercise);
  return exercise;
}

std::vector<Exercise> shipped_exercises() {
  const auto folder = config::data_folder("scenarios") / "exercises";
  std::vector<Exercise> exercises;
  for (const std::string& name : config::yaml_names(folder))
    exercises.push_back(load_exercise((folder / (name + ".yaml")).string()));
  std::sort(exercises.begin(), exercises.end(),
            [](const Exercise& a, const Exercise& b) { return a.number < b.number; });
  return exercises;
}

ExerciseNumbers::ExerciseNumbers(const Exercise& exercise, std::function<double(const MeasureSource&)> measure)
    : exercise_(exercise), measure_(std::move(measure)), known_(exercise.measures.size()) {}

double ExerciseNumbers::evaluate(const std::string& expression) {
  return ridgeline::evaluate(expression, [this](const std::string& name) { return value_of(name); });
}

double ExerciseNumbers::value_of(const std::string& name) {
  for (std::size_t i = 0; i < exercise_.measures.size(); ++i) {
    const MeasureSource& source = exercise_.measures[i];
    if (source.name != name) continue;
    if (known_[i]) return *known_[i];
    if (++depth_ > 50) throw UserError(fmt::format("{}: {} is defined by itself", exercise_.file, name));
    known_[i] = source.expression ? evaluate(*source.expression) : measure_(source);
    --depth_;
    return *known_[i];
  }
  if (name == "answer") return answer();
  throw UserError(fmt::format("{}: no measure is called '{}'", exercise_.file, name));
}

std::string significant_digits(double value, int digits) {
  return std::abs(value) >= std::pow(10.0, digits) ? fmt::format("{:.0f}", value)
                                                   : fmt::format("{:.{}g}", value, digits);
}

std::string ExerciseNumbers::filled(const std::string& text) {
  std::string out;
  std::size_t begin = 0;
  while (true) {
    const std::size_t open = text.find('{', begin), close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return out + text.substr(begin);
    out += text.substr(begin, open - begin);
    const std::string inside = text.substr(open + 1, close - open - 1);
    const std::size_t colon = inside.rfind(':');
    const std::string digits = colon == std::string::npos ? "3" : inside.substr(colon + 1);
    int significant = 3;
    std::from_chars(digits.data(), digits.data() + digits.size(), significant);
    const double value = evaluate(inside.substr(0, colon));
    out += significant_digits(value, significant);
    begin = close + 1;
  }
}

double answer_from(const std::string& text, const Exercise& exercise) {
  const auto given = parse_measure(text);
  const Measure unit = unit_of(exercise);
  if (!given)
    throw UserError(fmt::format("answer '{}': expected a number{}", text,
                                exercise.unit.empty() ? "" : fmt::format(", in {} if it has no unit", exercise.unit)));
  if (text.find_first_not_of("0123456789.+-eE ") == std::string::npos) return given->value;
  if (given->dimension != unit.dimension)
    throw UserError(fmt::format("answer '{}': the answer is {}", text,
                                exercise.unit.empty() ? "a plain number" : "in " + exercise.unit));
  return given->value / unit.value;
}

bool is_right(double given, double right, const Exercise& exercise) {
  return std::abs(given - right) <= exercise.tolerance * std::abs(right) * (1 + 1e-9);
}

std::string hint_for(double given, const Exercise& exercise, ExerciseNumbers& numbers) {
  const WrongAnswer* nearest = nullptr;
  double least = 0;
  for (const WrongAnswer& one : exercise.wrong) {
    const double there = numbers.evaluate(one.answer), off = std::abs(given - there);
    if (!is_right(given, there, exercise) || (nearest && off >= least)) continue;
    nearest = &one;
    least = off;
  }
  return numbers.filled(nearest ? nearest->hint : given < numbers.answer() ? exercise.low : exercise.high);
}

}  // namespace ridgeline
