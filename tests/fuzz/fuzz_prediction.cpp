// Whole answers: time, timeline and memory of steps that somebody recorded or described.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/answer/full_prediction.h"
#include "sim/answer/step_run.h"
#include "sim/report/answer_report.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/changed_tree.h"
#include "tests/fuzz/file_of_bytes.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {
namespace {

/// What a session keeps is bounded, what descriptions share is kept for ever; a fuzzer makes millions.
Session& session() {
  static std::unique_ptr<Session> current;
  static int uses = 0;
  if (uses++ % 500 == 0) current = std::make_unique<Session>();
  return *current;
}

std::string wrong_answer(const StepRun& run) {
  const StepPrediction& step = run.step();
  const double low = step.low.value(), time = step.time.value(), high = step.high.value();
  if (!std::isfinite(high) || low < 0 || low > time || time > high)
    return fmt::format("a step of {} s between {} and {} s", time, low, high);
  const double busy = step.gpu_busy.value();
  if (!std::isfinite(busy) || busy < 0 || busy > time * (1 + 1e-9))
    return fmt::format("a GPU busy for {} s of {} s", busy, time);
  if (!std::isfinite(step.power.value()) || step.power.value() < 0) return "a power that cannot be";
  const Prediction prediction = full_prediction(run, {.advice = false});
  if (answer_json(run, prediction, {}, "fuzz").dump().empty()) return "an answer without a word";
  std::size_t bytes = 0;
  TextBuffer timeline([&](std::string_view piece) { bytes += piece.size(); });
  write_timeline(run, Unrolled::yes, timeline);
  timeline.flush();
  return bytes == 0 ? "a timeline without a word" : "";
}

/// The answer to a scenario, as far as it is one of a size that is answered at once.
std::string answered(const Scenario& scenario, const char* engine) {
  try {
    return wrong_answer(StepRun(session(), scenario, engine));
  } catch (const UserError&) {  // a scenario that cannot run says so
    return {};
  }
}

bool is_small(const Scenario& scenario) {
  const TrainingDescription& training = scenario.training;
  return training.micro_batch <= 64 && training.sequence_length <= 1024 && training.gradient_accumulation <= 4 &&
         !scenario.cluster;
}

}  // namespace

std::string fuzz_replayed_step(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return {};
  static const char* const kGpus[] = {"nvidia-h200-sxm-141gb", "nvidia-rtx-3090", "nvidia-v100-sxm2-16gb"};
  const ScenarioSource source{
      .file = file_of_bytes(data, size), .recording = true, .overrides = {{"hardware", kGpus[size % 3], ""}}};
  try {
    return answered(load_scenario(source), size % 5 == 0 ? "roofline" : "analytic");
  } catch (const UserError&) {
    return {};
  }
}

std::string fuzz_described_step(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = [] {
    std::vector<ShippedTree> trees = shipped_trees("scenarios", "exercises/");
    std::erase_if(trees, [](const ShippedTree& one) { return one.tree.find("training") == nullptr; });
    return trees;
  }();
  try {
    const config::Node tree = changed_tree({reinterpret_cast<const char*>(data), size}, shipped);
    const Scenario scenario = load_shared_scenario(tree, {}, session().descriptions()).scenario;
    return is_small(scenario) ? answered(scenario, "analytic") : "";
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace ridgeline
