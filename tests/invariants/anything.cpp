#include <fmt/format.h>

#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"
#include "sim/units/user_error.h"
#include "tests/invariants/checks.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {

CaseResult anything(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "random", index);
  CaseResult result;
  for (int attempt = 0; attempt < 30; ++attempt) {
    Question question;
    question.engine = random_engine(draw, options.engine, true);
    question.hardware = draw.pick(hardware_names());
    question.settings = any_settings(draw, question.engine, question.hardware);
    if (draw.chance(0.5)) question.chip = random_chip(draw, question.hardware, 8, 10.0);
    if (options.tell) fmt::print(stderr, "{}\n", question.command());
    try {
      Session session;
      const StepRun run(session, question.load(), question.engine);
      static_cast<void>(run.prediction());
      result.compared.push_back(question.engine);
      check_answer(run, question, result);
      return result;
    } catch (const UserError& error) {
      result.refused.emplace_back(error.what());
    } catch (const std::exception& error) {
      no_message(error, question, result);
      return result;
    }
  }
  return result;
}

}  // namespace ridgeline::invariants
