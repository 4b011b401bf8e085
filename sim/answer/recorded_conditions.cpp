#include "sim/answer/recorded_conditions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace ridgeline {
namespace {

// Set by eye on the recordings of docs/model/recorded-steps.md, none of which is held out, so that one of them alone
// shows another clock; only tests/trace/recorded_conditions_test.cpp tries others.
constexpr double kShared = 0.05;     // of a call's time
constexpr double kShort = 4.0;       // of what an empty kernel takes
constexpr std::size_t kEnough = 10;  // short calls; fewer say little
constexpr Seconds kMostAdded{5e-6};  // longer than any empty kernel that a profiler recorded
constexpr std::size_t kNames = 3;    // of operators with long calls, on either side
constexpr double kInCycles = 0.6,
                 kInBytes = 0.3;     // exponents of the clock: a call that it decides, one that it does not
constexpr double kLeastSeen = 0.10;  // what errors of the laws can look like
constexpr double kMostSpread = 1.3;  // between quartiles: the clock slows all down alike
constexpr double kLowest = 0.3, kLowestUnchecked = 0.7;  // of the clock; without kernels that the DRAM limits

/// How a call's time goes with the clock: over clock to this power.
double exponent_of(const ComparableCall& call) {
  if (call.predicted.value() <= 0.0 || call.slowed.value() <= 0.0) return 0.0;
  return std::clamp(std::log(ratio(call.slowed, call.predicted)) / -std::log(kSlowedClock), 0.0, 1.0);
}

double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Seconds added_under(std::span<const ComparableCall> calls, double clock, Seconds fixed) {
  std::vector<double> added;
  for (const ComparableCall& call : calls)
    if (call.asked && call.alone() && call.kernels == 1 && call.predicted < kShort * fixed)
      added.push_back((call.measured - RecordedConditions{clock, {}}.of(call)).value());
  if (added.size() < kEnough) return {};
  // What is added is in every one; most have errors of the prediction on top of it.
  return std::clamp(Seconds(quantile(added, 0.25)), Seconds{}, kMostAdded);
}

/// How many times as long as predicted calls take, a number for each operator: the laws' errors are those of operators.
struct Slowness {
  std::vector<double> in_cycles, in_bytes;
};
Slowness slowness(std::span<const ComparableCall> calls, Seconds added, Seconds fixed) {
  struct Kind {
    std::size_t name = 0;
    double exponent = 0.0;
    std::vector<double> ratios;
  };
  std::map<std::size_t, Kind> kinds;
  for (const ComparableCall& call : calls) {
    if (!call.asked || !call.alone() || call.predicted < kShort * fixed) continue;
    const Seconds without = call.measured - static_cast<double>(call.kernels) * added;
    if (without.value() <= 0.0) continue;
    Kind& kind = kinds[call.like];
    kind.name = call.name;
    kind.exponent = exponent_of(call);
    kind.ratios.push_back(ratio(without, call.predicted));
  }
  std::map<std::size_t, std::vector<double>> in_cycles, in_bytes;
  for (auto& [like, kind] : kinds) {
    const double times = quantile(kind.ratios, 0.5);
    if (kind.exponent > kInCycles) in_cycles[kind.name].push_back(std::pow(times, 1.0 / kind.exponent));
    else if (kind.exponent < kInBytes) in_bytes[kind.name].push_back(times);
  }
  Slowness found;
  for (auto& [name, times] : in_cycles) found.in_cycles.push_back(quantile(times, 0.5));
  for (auto& [name, times] : in_bytes) found.in_bytes.push_back(quantile(times, 0.5));
  return found;
}

double clock_under(std::span<const ComparableCall> calls, Seconds added, Seconds fixed) {
  Slowness found = slowness(calls, added, fixed);
  if (found.in_cycles.size() < kNames) return 1.0;
  if (quantile(found.in_cycles, 0.75) > kMostSpread * quantile(found.in_cycles, 0.25)) return 1.0;
  const bool checked = found.in_bytes.size() >= kNames;
  // What slows down kernels that the clock does not concern is no clock.
  const double others = checked ? std::max(1.0, quantile(found.in_bytes, 0.5)) : 1.0;
  const double clock = others / quantile(found.in_cycles, 0.5);
  if (clock > 1.0 - kLeastSeen || clock < (checked ? kLowest : kLowestUnchecked)) return 1.0;
  return clock;
}

}  // namespace

bool ComparableCall::alone() const { return measured.value() > 0.0 && beside <= kShared * measured; }

Seconds RecordedConditions::of(const ComparableCall& call) const {
  const double slower = clock < 1.0 ? std::pow(clock, -exponent_of(call)) : 1.0;
  return slower * call.predicted + static_cast<double>(call.kernels) * added;
}

RecordedConditions recorded_conditions(std::span<const ComparableCall> calls, Seconds fixed) {
  RecordedConditions found;
  found.added = added_under(calls, 1.0, fixed);
  constexpr int kRounds = 3;  // short kernels are slowed down too: each of both is seen without the other
  for (int round = 0; round < kRounds; ++round) {
    found.clock = clock_under(calls, found.added, fixed);
    found.added = added_under(calls, found.clock, fixed);
  }
  return found;
}

}  // namespace ridgeline
