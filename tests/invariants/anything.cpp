#include "sim/answer/step_run.h"
#include "sim/hardware/load_gpu.h"
#include "tests/invariants/checks.h"
#include "tests/invariants/finding.h"
#include "tests/invariants/random_scenario.h"

namespace ridgeline::invariants {

CaseResult anything(const CaseOptions& options, std::uint64_t index) {
  Draw draw(options.seed, "random", index);
  const auto drawn = [&] {
    Question question;
    question.engine = random_engine(draw, options.engine, true);
    question.hardware = draw.pick(hardware_names());
    question.settings = any_settings(draw, question.engine, question.hardware);
    if (draw.chance(0.5)) question.chip = random_chip(draw, question.hardware, 8, 10.0);
    return question;
  };
  return first_answered(options, 30, drawn, [](const Question& question, CaseResult& result) {
    Session session;
    const StepRun run(session, question.load(), question.engine);
    static_cast<void>(run.prediction());
    result.compared.push_back(question.engine);
    check_answer(run, question, result);
  });
}

}  // namespace ridgeline::invariants
