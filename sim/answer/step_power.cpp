#include "sim/answer/step_power.h"

#include "sim/timeline/power.h"
#include "sim/timing/clock_law.h"

namespace ridgeline {

StepPower step_power(const StepRun& run) {
  const Gpu& gpu = run.scenario().gpu;
  const Timeline& line = run.timeline();
  const StepProgram& program = run.program();
  const StepLoad load(program, run.times(), gpu);
  const Hertz clock = line.settled;
  StepPower result;
  result.limit = gpu.power.limit;
  result.idle = idle_power(gpu, clock);
  result.average = line.power;
  result.idling = result.idle * line.step;
  result.kernels.reserve(line.kernels.size());
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch || result.kernels.size() == line.kernels.size()) continue;
    const std::size_t i = result.kernels.size();
    const Joules energy = load.energy_of(i, clock);
    const Seconds duration = line.kernels[i].taken;
    const TokenLaunch* token = program.token_launch(action);
    const auto runs = static_cast<double>(token != nullptr ? token->runs : line.repeat.launches.times_of(i));
    const Watts beyond = duration.value() > 0.0 ? energy * (1.0 / runs) / duration : Watts{};
    result.kernels.push_back({result.idle + beyond, load.clock_of(i, clock)});
    Joules& of_class = result.by_class[static_cast<std::size_t>(program.launches[action.index].time_class)];
    of_class += energy;
  }
  return result;
}

}  // namespace ridgeline
