#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/hardware/load_gpu.h"
#include "sim/timing/clock_law.h"
#include "sim/units/user_error.h"
#include "tests/invariants/chip_keys.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/timed_step.h"

namespace ridgeline::invariants {
namespace {

constexpr int kSteps = 20;
constexpr double kStep = 1.05;
/// Most change of the time for one of the key, in the logarithm: 10 % for 5 %.
const double kJump = std::log(1.10) / std::log(kStep);

struct Place {
  std::vector<double> values;  ///< of the keys
  Overrides changes;
  Scenario scenario;
  TimedStep time;
};

/// How much keys change what a kernel is given, in the logarithm: counts move by whole numbers, a quarter of 4
/// schedulers at a time, and of keys that move together two multiply (SMs and the rate of each, bandwidth and the share
/// of it that is reached).
double most_moved(const Place& was, const Place& now) {
  double most = 0.0, second = 0.0;
  for (std::size_t i = 0; i < now.values.size(); ++i) {
    const double moved = std::abs(std::log(now.values[i] / was.values[i]));
    second = std::max(second, std::min(most, moved));
    most = std::max(most, moved);
  }
  return most + second;
}

/// What the board's limit leaves for work beyond idling, at the clock that `was` ran at, now over then, in the
/// logarithm: a limit of 40 W with 35 W of idle power leaves 40 % more when it is 5 % higher.
double more_power(const Place& was, const Place& now) {
  const auto left = [&](const Gpu& gpu) { return (gpu.power.limit - idle_power(gpu, was.time.clock)).value(); };
  const double before = left(was.scenario.gpu), after = left(now.scenario.gpu);
  return before > 0.0 && after > before ? std::log(after / before) : 0.0;
}

void compare(const Question& question, const std::string& name, const Place& was, const Place& now,
             CaseResult& result) {
  const double ratio = now.time.step / was.time.step;
  const double allowed = std::max(std::log(1.10), kJump * most_moved(was, now)) + more_power(was, now);
  const bool slower = ratio > kSlower, jumps = ratio < std::exp(-allowed);
  if (!slower && !jumps) return;
  const TimedStep was_of = timed(was.scenario, question.engine, true),
                  now_of = timed(now.scenario, question.engine, true);
  std::string changes;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, now.changes.size()); ++i)
    changes += fmt::format(" {} {} -> {}", now.changes[i].key, was.changes[i].value, now.changes[i].value);
  result.findings.push_back(
      {slower ? "slower: " + most_grown(was_of, now_of) : "jump: " + most_grown(now_of, was_of), name,
       std::abs(ratio - 1.0),
       fmt::format("{:.4f} -> {:.4f} ms at{}\n      {}{}", 1e3 * was.time.step, 1e3 * now.time.step, changes,
                   question.command(was.changes), slower ? what_grew(was_of, now_of) : what_grew(now_of, was_of))});
}

}  // namespace

CaseResult along_an_axis(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "axes", index);
  CaseResult result;
  for (int attempt = 0; attempt < 30; ++attempt) {
    Question question;
    question.engine = random_engine(draw, options.engine, false);
    question.hardware = draw.pick(hardware_names());
    question.settings = common_settings(draw, question.engine);
    std::vector<ChipKey> keys = keys_of(question.hardware);
    std::erase_if(keys,
                  [](const ChipKey& key) { return key.better == Better::neither || key.flag || key.value == 0.0; });
    const ChipKey chosen = draw.pick(keys);
    std::string name = chosen.key;
    if (draw.chance(0.25)) {
      const std::string section(section_of(chosen.key));
      std::erase_if(keys, [&](const ChipKey& key) { return section_of(key.key) != section; });
      name = section + ".*";
    } else {
      keys = {chosen};
    }
    const double first = draw.between(0.25, 1.6);
    std::vector<Place> places;
    for (int i = 0; i < kSteps; ++i) {
      Place place;
      for (const ChipKey& key : keys) {
        place.changes.push_back(on_axis(key, first * std::pow(kStep, i)));
        place.values.push_back(std::stod(place.changes.back().value));
      }
      if (!places.empty() && place.values == places.back().values) continue;
      try {
        place.scenario = question.load_with(place.changes);
        place.time = timed(place.scenario, question.engine);
        places.push_back(std::move(place));
      } catch (const UserError& error) {
        result.refused.emplace_back(error.what());
        if (i == 0) break;
      }
    }
    if (places.size() < 2) continue;
    for (std::size_t i = 1; i < places.size(); ++i) {
      result.compared.push_back(name);
      compare(question, name, places[i - 1], places[i], result);
    }
    return result;
  }
  return result;
}

}  // namespace ridgeline::invariants
