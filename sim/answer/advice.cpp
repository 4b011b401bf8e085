// What would help: each change is tried by predicting it.
#include "sim/answer/advice.h"

#include <algorithm>
#include <future>
#include <thread>

#include "sim/answer/changes.h"
#include "sim/scenario/descriptions.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"
#include "sim/workload/token_loop.h"

namespace ridgeline {
namespace {

/// Empty where the change cannot be had on this GPU, does not fit or is not worth saying.
std::optional<Advice> tried(const Change& change, const StepRun& run, Descriptions& known) {
  constexpr double kWorthSaying = 0.02;  // of the step, or of the memory
  keep_budget("trying changes");
  std::optional<Scenario> changed = with_change(run.scenario(), change, known);
  if (!changed) return std::nullopt;
  try {
    const StepRun other(run.session(), std::move(*changed), run.engine());
    const Seconds step = run.timeline().step, changed_step = other.timeline().step;
    const MemoryPrediction &memory = run.memory(), &then = other.memory();
    const Advice advice{change.set, step - changed_step, memory.needed - then.needed, change.why};
    const bool saves_time = ratio(advice.time_saved, step) >= kWorthSaying;
    const bool saves_memory =
        static_cast<double>(advice.memory_saved_bytes) >= kWorthSaying * static_cast<double>(memory.needed);
    if (then.fits && (saves_time || saves_memory)) return advice;
  } catch (const UserError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::size_t calls_of_run(const OpTrace& trace) {
  std::size_t calls = trace.calls.size();
  if (trace.tokens != nullptr)
    calls +=
        trace.tokens->places.size() * trace.tokens->slots.size() * static_cast<std::size_t>(trace.tokens->tokens());
  return calls;
}

std::vector<Advice> find_advice(const StepRun& run) {
  const Scenario& scenario = run.scenario();
  const Prediction& base = run.prediction();
  if (calls_of_run(run.trace()) > kMostCallsToTry) return {};
  const auto spent = [&](std::initializer_list<TimeClass> classes) {
    Seconds sum{};
    for (const TimeClass c : classes) sum += base.time_by_class[static_cast<std::size_t>(c)];
    return ratio(sum, base.step.time);
  };
  const StepShares shares{ratio(base.idle, base.step.time),
                          spent({TimeClass::elementwise, TimeClass::normalization, TimeClass::copy})};
  std::vector<Change> changes = time_changes(scenario, shares);
  for (Change& change : memory_changes(scenario)) {
    const bool known =
        std::any_of(changes.begin(), changes.end(), [&](const Change& c) { return c.set == change.set; });
    if (!known) changes.push_back(std::move(change));
  }
  std::vector<Advice> out;
  Descriptions known;
  // Each trial holds a step of its own: as many at once as there are cores, and as the memory has slots for.
  const std::size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t begin = 0; begin < changes.size(); begin += at_once) {
    std::vector<std::future<std::optional<Advice>>> trials;
    for (std::size_t i = begin; i < std::min(begin + at_once, changes.size()); ++i)
      trials.push_back(std::async(std::launch::async, with_same_budget([&, i] {
                                    return evaluated([&] { return tried(changes[i], run, known); });
                                  })));
    for (auto& trial : trials)
      if (auto advice = trial.get()) out.push_back(std::move(*advice));
  }
  std::stable_sort(out.begin(), out.end(), [](const Advice& a, const Advice& b) {
    const bool faster = a.time_saved > Seconds{0}, other_faster = b.time_saved > Seconds{0};
    if (faster != other_faster) return faster;
    return faster ? a.time_saved > b.time_saved : a.memory_saved_bytes > b.memory_saved_bytes;
  });
  return out;
}

}  // namespace ridgeline
