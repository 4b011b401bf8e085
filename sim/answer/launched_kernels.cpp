#include "sim/answer/launched_kernels.h"

namespace ridgeline {

std::vector<LaunchedKernel> launched_kernels(const StepProgram& program) {
  static const Op kNone = UnknownOp{};
  std::vector<LaunchedKernel> out;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const auto times = static_cast<double>(program.times_of(action));
    const KernelLaunch* launch = &program.launches[action.index];
    if (action.call == Action::kNoCall) {
      out.push_back({launch, &kNone, Action::kNoCall, Phase::other, times, 0});
    } else {
      const Call& call = program.trace->calls[action.call];
      out.push_back({launch, &program.trace->ops[call.op], call.op, call.phase, times, call.module});
    }
  }
  return out;
}

}  // namespace ridgeline
