#include "sim/answer/unread_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/hardware/keys.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr Laws kOutsideTheStep = Law::memory | Law::peak | Law::price | Law::description | Law::roofline | Law::boards;

/// What else reads the number, in words; empty when nothing does.
std::string other_readers(const HardwareKey& key, std::string_view engine) {
  Laws laws = key.laws & kOutsideTheStep;
  if (engine == "roofline") laws &= ~static_cast<Laws>(Law::roofline);
  if (holds(key.laws, Law::hierarchy) && engine != "simulate") laws = laws | Law::hierarchy;
  return names_of(laws);
}

/// Whether another value of the number moves the time of the step, or makes it impossible.
bool moves(const HardwareKey& key, const OpTrace& trace, const Scenario& scenario, std::string_view engine,
           Seconds time) {
  for (const double factor : {1.0 / 16.0, 0.5, 2.0, 16.0}) {
    Scenario other = scenario;
    const double value = std::clamp(factor * key.get(scenario.gpu), key.range.low, key.range.high);
    key.set(other.gpu, key.kind == KeyKind::integer ? std::round(value) : value);
    try {
      if (step_time(trace, other, engine) != time) return true;
    } catch (const UserError&) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> unread_changes(const StepRun& run) {
  std::vector<std::string> notes;
  const Scenario& scenario = run.scenario();
  if (!scenario.shipped) return notes;
  const std::string& engine = run.engine();
  const OpTrace& trace = run.trace();
  const Seconds time = run.timeline().step;
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number() || key.get(scenario.gpu) == key.get(*scenario.shipped)) continue;
    keep_budget("trying changes");
    Scenario back = scenario;
    key.set(back.gpu, key.get(*scenario.shipped));
    try {
      if (step_time(trace, back, engine) != time) continue;
    } catch (const UserError&) {
      continue;
    }
    const std::string others = other_readers(key, engine);
    const bool reads = moves(key, trace, scenario, engine, time);
    notes.push_back(reads ? fmt::format("hardware.{} limits nothing in this step: its time is the same", key.key)
                          : fmt::format("no kernel of this step reads hardware.{}{}", key.key,
                                        others.empty() ? "" : fmt::format(" ({} would)", others)));
  }
  return notes;
}

}  // namespace ridgeline
