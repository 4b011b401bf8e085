#include "sim/scenario/unread_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/hardware/keys.h"
#include "sim/scenario/prediction.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr Laws kOutsideTheStep = Law::memory | Law::peak | Law::price | Law::description | Law::roofline;

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

std::vector<std::string> unread_changes(const Scenario& scenario, std::string_view engine) {
  std::vector<std::string> notes;
  if (!scenario.shipped) return notes;
  Scenario plain = scenario;  // what was changed is what is asked about, on the chip as it was changed
  plain.shipped.reset();
  const OpTrace trace = trace_of(plain);
  std::optional<Seconds> time;
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number() || key.get(scenario.gpu) == key.get(*scenario.shipped)) continue;
    if (!time) time = step_time(trace, plain, engine);
    Scenario back = plain;
    key.set(back.gpu, key.get(*scenario.shipped));
    try {
      if (step_time(trace, back, engine) != *time) continue;
    } catch (const UserError&) {
      continue;
    }
    const std::string others = other_readers(key, engine);
    const bool reads = moves(key, trace, plain, engine, *time);
    notes.push_back(reads ? fmt::format("hardware.{} limits nothing in this step: its time is the same", key.key)
                          : fmt::format("no kernel of this step reads hardware.{}{}", key.key,
                                        others.empty() ? "" : fmt::format(" ({} would)", others)));
  }
  return notes;
}

}  // namespace ridgeline
