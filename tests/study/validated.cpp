#include "tests/study/validated.h"

#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/published_training.h"

namespace ridgeline {
namespace {

constexpr const char* kFolder = RIDGELINE_SOURCE_DIR "/measurements";

}  // namespace

const std::vector<ValidatedCase>& validated_kernels_of_every_engine() {
  static const std::vector<ValidatedCase> all = validate_kernels(kFolder, "", true);
  return all;
}

const std::vector<ValidatedCase>& validated_kernels() {
  static const std::vector<ValidatedCase> all = [] {
    std::vector<ValidatedCase> cases = validated_kernels_of_every_engine();
    for (ValidatedCase& one : cases) one.predicted.erase("simulate");
    return cases;
  }();
  return all;
}

const std::vector<ValidatedStep>& validated_steps() {
  static const std::vector<ValidatedStep> all = validate_steps(kFolder, "", "analytic");
  return all;
}

const std::vector<ValidatedStep>& validated_published_training() {
  static const std::vector<ValidatedStep> all = validate_published_training(kFolder, "", "analytic");
  return all;
}

std::vector<ValidatedStep> validated_steps_on(std::string_view name) {
  const std::string gpu = load_gpu(std::string(name)).name;
  std::vector<ValidatedStep> steps;
  for (const ValidatedStep& step : validated_steps())
    if (step.scenario.gpu.name == gpu) steps.push_back(step);
  return steps;
}

}  // namespace ridgeline
