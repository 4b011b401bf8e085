#include "tests/invariants/timed_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/answer/step_run.h"
#include "sim/workload/op.h"

namespace ridgeline::invariants {
namespace {

struct Growth {
  std::string op;
  double seconds;
};
std::vector<Growth> growths(const TimedStep& before, const TimedStep& after) {
  std::vector<Growth> result;
  for (const auto& [op, time] : after.ops) {
    const auto was = before.ops.find(op);
    result.push_back({op, time.seconds - (was == before.ops.end() ? 0.0 : was->second.seconds)});
  }
  std::sort(result.begin(), result.end(), [](const Growth& a, const Growth& b) { return a.seconds > b.seconds; });
  return result;
}

}  // namespace

TimedStep timed(const Scenario& scenario, const std::string& engine, bool with_ops) {
  Session session;
  const StepRun run(session, scenario, engine);
  TimedStep result{run.timeline().step.value(), run.timeline().gpu_busy.value(), run.timeline().clock, {}};
  if (!with_ops) return result;
  const StepProgram& program = run.program();
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    std::string op = launch.name;
    if (action.call != Action::kNoCall) {
      const Op& of = program.trace->ops[program.trace->calls[action.call].op];
      op = name_of(of) + " " + shape_of(of);
    }
    TimedOp& sum = result.ops[op];
    sum.seconds += (run.timeline().kernels[i].end - run.timeline().kernels[i].start).value();
    ++sum.launches;
    if (sum.kernels.find(launch.name) == std::string::npos)
      sum.kernels += (sum.kernels.empty() ? "" : " + ") + launch.name;
    ++i;
  }
  return result;
}

std::string what_grew(const TimedStep& before, const TimedStep& after) {
  std::string text;
  int lines = 0;
  for (const Growth& growth : growths(before, after)) {
    if (growth.seconds <= 0 || ++lines > 3) break;
    const TimedOp& now = after.ops.at(growth.op);
    const auto was = before.ops.find(growth.op);
    text +=
        fmt::format("\n      {}: {:.3f} -> {:.3f} us x {}  [{}{}]", growth.op,
                    was == before.ops.end() ? 0.0 : 1e6 * was->second.seconds / was->second.launches,
                    1e6 * now.seconds / now.launches, now.launches,
                    was == before.ops.end() || was->second.kernels == now.kernels ? "" : was->second.kernels + "  ->  ",
                    now.kernels);
  }
  return text.empty() ? "\n      no kernel grew: the time lies between them" : text;
}

std::string most_grown(const TimedStep& before, const TimedStep& after) {
  const std::vector<Growth> all = growths(before, after);
  if (all.empty() || all.front().seconds < 0.2 * (after.step - before.step)) return "many kernels";
  return all.front().op.substr(0, all.front().op.find(' '));
}

}  // namespace ridgeline::invariants
