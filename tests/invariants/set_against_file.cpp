#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"
#include "tests/invariants/chip_keys.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {
namespace {

struct Number {
  std::string name;
  double value;
};
std::vector<Number> numbers_of(const Prediction& p) {
  return {{"step.time", p.step.time.value()},
          {"step.low", p.step.low.value()},
          {"step.high", p.step.high.value()},
          {"step.gpu_busy", p.step.gpu_busy.value()},
          {"step.host_time", p.step.host_time.value()},
          {"step.mfu", p.step.mfu},
          {"step.sm_utilization", p.step.sm_utilization},
          {"step.power", p.step.power.value()},
          {"step.validated", p.step.validated ? 1.0 : 0.0},
          {"memory.device_used", static_cast<double>(p.memory.device_used)},
          {"kernels", static_cast<double>(p.kernels.size())},
          {"idle", p.idle.value()}};
}

}  // namespace

CaseResult set_against_file(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "file", index);
  CaseResult result;
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("ridgeline-search-{}-{}.yaml", getpid(), index);
  for (int attempt = 0; attempt < 30 && result.compared.empty(); ++attempt) {
    Question question;
    question.engine = random_engine(draw, options.engine, false);
    question.hardware = draw.pick(hardware_names());
    question.settings = common_settings(draw, question.engine);
    question.chip = random_chip(draw, question.hardware, 6, 4.0);
    Overrides inner = question.chip;
    for (config::Override& change : inner) change.key = change.key.substr(std::string_view("hardware.").size());
    try {
      const Prediction by_set = predict(question.load(), question.engine);
      std::ofstream(file) << written_file(question.hardware, inner);
      const Prediction by_file = predict(question.load_on(file.string()), question.engine);
      result.compared.push_back(question.hardware);
      const std::vector<Number> set = numbers_of(by_set), written = numbers_of(by_file);
      for (std::size_t i = 0; i < set.size(); ++i) {
        if (set[i].value == written[i].value) continue;
        result.findings.push_back({"differs: " + set[i].name, question.hardware,
                                   std::abs(written[i].value / set[i].value - 1.0),
                                   fmt::format("{:.9g} by --set, {:.9g} as a file\n      {}", set[i].value,
                                               written[i].value, question.command())});
      }
    } catch (const UserError& error) {
      result.refused.emplace_back(error.what());
    }
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return result;
}

}  // namespace ridgeline::invariants
