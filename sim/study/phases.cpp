#include "sim/study/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/config/value.h"
#include "sim/config/write_yaml.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

using config::Entry;
using config::Mapping;
using config::Node;
using config::Value;

/// Keys of a phase that are not of its scenario.
constexpr std::array<std::string_view, 4> kOfPhase{"name", "times", "offloaded", "network_of"};

void put_key(Node& tree, const Entry& entry) {
  if (Node* known = tree.find(entry.key)) *known = entry.value;
  else tree.entries.push_back(entry);
}

/// Keys of all phases are overlaid with those of this one.
Scenario scenario_of_phase(const Node& root, const Node& phase, const std::string& name) {
  Node tree;
  tree.kind = Node::Kind::mapping;
  for (const Entry& entry : root.entries)
    if (entry.key != "phases" && entry.key != "title") put_key(tree, entry);
  for (const Entry& entry : phase.entries)
    if (std::find(kOfPhase.begin(), kOfPhase.end(), entry.key) == kOfPhase.end()) put_key(tree, entry);
  ScenarioSource source;
  source.text = config::write_yaml(tree);
  source.text_name = "phase " + name;
  return load_scenario(source);
}

std::int64_t bytes_of(const OpTrace& trace, Category category) {
  std::int64_t total = 0;
  for (const Storage& storage : trace.storages)
    if (storage.category == category) total += storage.bytes;
  return total;
}

/// The phase that has the network that phase `i` uses.
std::size_t owner_of(const PhasedTraining& training, std::size_t i) {
  return training.phases[i].network_of.value_or(i);
}

}  // namespace

PhasedTraining read_phases(const Node& tree) {
  const Value root(tree);
  const Value list = root["phases"];
  PhasedTraining result;
  result.title = root["title"].text("training in phases");
  for (const Value& item : list.list()) {
    PhaseDescription phase;
    phase.name = item["name"].text();
    phase.times = item["times"].integer({1, 1 << 20}, 1);
    phase.offloaded = item["offloaded"].boolean(false);
    if (const Value of = item["network_of"]; of.exists()) {
      const auto named = [&](const PhaseDescription& other) { return other.name == of.text(); };
      const auto found = std::find_if(result.phases.begin(), result.phases.end(), named);
      if (found == result.phases.end()) of.fail("names no phase before this one");
      phase.network_of = static_cast<std::size_t>(found - result.phases.begin());
    }
    phase.scenario = scenario_of_phase(tree, item.node(), phase.name);
    if (phase.scenario.recorded) item.fail("a phase is a described network: expected model, and training or inference");
    result.phases.push_back(std::move(phase));
  }
  if (result.phases.empty()) list.fail("has no phase");
  return result;
}

PhasesAnswer answer_phases(Session& session, const PhasedTraining& training, std::string_view engine) {
  PhasesAnswer answer;
  answer.title = training.title;
  answer.hardware = training.phases.front().scenario.gpu.name;
  answer.capacity = static_cast<std::int64_t>(training.phases.front().scenario.gpu.dram.capacity.value());
  for (const PhaseDescription& phase : training.phases) {
    const StepRun run(session, phase.scenario, engine);
    PhaseAnswer one;
    one.name = phase.name;
    one.times = phase.times;
    one.once = run.timeline().step;
    one.own = run.memory().needed;
    const OpTrace& trace = run.trace();
    one.weights = phase.network_of ? 0 : bytes_of(trace, Category::weights);
    one.states = bytes_of(trace, Category::optimizer_state);
    if (phase.offloaded) {
      const std::int64_t moved = one.weights + one.states;
      one.copies = 2.0 * (Bytes{static_cast<double>(moved)} / phase.scenario.gpu.host_link.bandwidth);
      answer.host += moved;
    }
    answer.phases.push_back(one);
  }
  for (std::size_t i = 0; i < answer.phases.size(); ++i) {
    PhaseAnswer& one = answer.phases[i];
    for (std::size_t j = 0; j < answer.phases.size(); ++j) {
      if (j == i || training.phases[j].offloaded) continue;
      one.of_others += answer.phases[j].states;
      if (owner_of(training, i) != j) one.of_others += answer.phases[j].weights;
    }
    one.peak = one.own + one.of_others;
    one.fits = one.peak <= answer.capacity;
    answer.round += one.once * static_cast<double>(one.times) + one.copies;
  }
  return answer;
}

std::string phases_text(const PhasesAnswer& answer) {
  const auto gib = [](std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 30)); };
  const bool fits =
      std::all_of(answer.phases.begin(), answer.phases.end(), [](const PhaseAnswer& p) { return p.fits; });
  std::string out =
      fmt::format("{}\n{}: {} of {} GiB ({})\n\n", answer.title, fits ? "FITS" : "DOES NOT FIT",
                  gib(std::max_element(answer.phases.begin(), answer.phases.end(),
                                       [](const PhaseAnswer& a, const PhaseAnswer& b) { return a.peak < b.peak; })
                          ->peak),
                  gib(answer.capacity), answer.hardware);
  out += fmt::format("  {:<16}{:>6}{:>12}{:>12}{:>10}{:>10}{:>10}\n", "phase", "times", "once", "copies", "own GiB",
                     "others", "peak");
  for (const PhaseAnswer& p : answer.phases)
    out += fmt::format("  {:<16}{:>6}{:>12}{:>12}{:>10}{:>10}{:>10}{}\n", p.name, p.times, to_string(p.once),
                       p.copies > Seconds{} ? to_string(p.copies) : "-", gib(p.own), gib(p.of_others), gib(p.peak),
                       p.fits ? "" : "  does not fit");
  out += fmt::format("\n  a round       {}\n", to_string(answer.round));
  if (answer.host > 0) out += fmt::format("  host memory   {} GiB, pinned\n", gib(answer.host));
  return out;
}

}  // namespace ridgeline
