#include "sim/program/launched_kernels.h"

#include <algorithm>

#include "sim/units/budget.h"

namespace ridgeline {

std::vector<LaunchedKernel> launched_kernels(const StepProgram& program) {
  static const Op kNone = UnknownOp{};
  const std::span<const Action> step = program.steady_step();
  const RepeatedActions repeat = program.repeat_of_steady_step();
  std::vector<LaunchedKernel> out;
  const auto launches = static_cast<std::size_t>(std::count_if(
      step.begin(), step.end(), [](const Action& action) { return action.kind == Action::Kind::launch; }));
  keep_budget_for(launches * sizeof(LaunchedKernel), "the list of kernels");
  out.reserve(launches);
  for (const Action& action : step) {
    if (action.kind != Action::Kind::launch) continue;
    const auto index = static_cast<std::uint32_t>(&action - program.actions.data());
    const bool repeats = index >= repeat.actions.begin && index < repeat.actions.end;
    const TokenLaunch* token = program.token_launch(action);
    const double times = token != nullptr ? static_cast<double>(token->runs)
                         : repeats        ? static_cast<double>(repeat.times)
                                          : 1.0;
    const KernelLaunch* launch = &program.launches[action.index];
    if (action.call == Action::kNoCall) {
      out.push_back({launch, &kNone, Action::kNoCall, Phase::other, times, 0});
    } else {
      const Call& call = program.trace->calls[action.call];
      out.push_back({launch, &program.trace->ops[call.op], call.op, call.phase, times, call.module, token});
    }
  }
  return out;
}

}  // namespace ridgeline
