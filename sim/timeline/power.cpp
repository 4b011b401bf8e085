#include "sim/timeline/power.h"

#include <algorithm>
#include <cmath>

#include "sim/timeline/issue_plan.h"
#include "sim/timing/clock_law.h"

namespace ridgeline {
namespace {

/// Of energies beyond idling. Estimated: published models of GPU energy with measured constants err by 11 to 25 %.
constexpr double kEnergySpread = 0.25;

constexpr double kClockTolerance = 1e-5;  // relative
constexpr int kMostTrials = 40;

}  // namespace

StepLoad::StepLoad(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu) : gpu_(gpu) {
  kernels_.reserve(times.size());
  const Hertz top = top_clock(gpu);
  Hertz limit{-1.0};  // of the kernel before
  double voltage_at_limit = 0.0;
  const RepeatedLaunches repeat = repeated_launches(program);
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch || kernels_.size() == times.size()) continue;
    const KernelLaunch& launch = program.launches[action.index];
    const KernelTime& time = times[kernels_.size()];
    const WorkEnergy energy = kernel_energy(launch, time, gpu);
    const auto times_run = static_cast<double>(repeat.times_of(kernels_.size()));
    board_ += energy.board * times_run;
    const Hertz own_limit = time.clock.value() > 0.0 ? std::min(time.clock, top) : top;
    if (own_limit != limit) voltage_at_limit = voltage(gpu, limit = own_limit);
    kernels_.push_back({time.time, time.held, time.time - time.held, time.clocked, own_clock(gpu, launch.pipe),
                        own_limit, energy.core * times_run, energy.board * times_run, voltage_at_limit});
  }
}

StepLoad StepLoad::stretched(std::span<const double> factors) const {
  StepLoad other = *this;
  for (std::size_t i = 0; i < other.kernels_.size(); ++i) {
    Kernel& k = other.kernels_[i];
    for (Seconds* part : {&k.time, &k.held, &k.clocked}) *part = *part * factors[i];
    k.alone = k.time - k.held;
  }
  return other;
}

Seconds StepLoad::held(std::size_t kernel, Hertz clock) const {
  return duration(kernel, clock) - kernels_[kernel].alone;
}

Hertz StepLoad::clock_of(std::size_t kernel, Hertz clock) const { return std::min(clock, kernels_[kernel].limit); }

Joules StepLoad::energy(Hertz clock) const {
  const double all = voltage(gpu_, clock);
  Joules sum = board_;
  for (const Kernel& k : kernels_) {
    const double v = k.limit < clock ? k.voltage_at_limit : all;
    sum += k.core * (v * v);
  }
  return sum;
}

Joules StepLoad::energy_of(std::size_t kernel, Hertz clock) const {
  const Kernel& k = kernels_[kernel];
  const double v = voltage(gpu_, std::min(clock, k.limit));
  return k.core * (v * v) + k.board;
}

Watts StepLoad::power(Hertz clock, Seconds step) const {
  return step.value() > 0.0 ? idle_power(gpu_, clock) + energy(clock) / step : idle_power(gpu_, clock);
}

Hertz StepLoad::settle(const std::function<Seconds(Hertz)>& step_at) const {
  const Hertz top = top_clock(gpu_);
  const auto excess = [&](double clock) {
    return (power(Hertz{clock}, step_at(Hertz{clock})) - gpu_.power.limit).value();
  };
  double high = top.value(), above = excess(high);
  if (gpu_.power.limit.value() <= 0.0 || above <= 0.0) return top;
  double low = std::min(gpu_.clock.lowest, top).value();
  if (low <= 0.0) low = kClockTolerance * high;
  double below = excess(low);
  if (below >= 0.0) return Hertz{low};
  // The point where the line between the two ends crosses the limit, the end that stays counting half (Illinois).
  int stayed = 0;
  for (int i = 0; i < kMostTrials && high - low > kClockTolerance * high; ++i) {
    const double trial = std::clamp(low + (high - low) * below / (below - above), low, high), at = excess(trial);
    if (at > 0.0) {
      high = trial;
      above = at;
      if (stayed == 1) below *= 0.5;
      stayed = 1;
    } else {
      low = trial;
      below = at;
      if (stayed == -1) above *= 0.5;
      stayed = -1;
      if (at == 0.0) break;
    }
  }
  return Hertz{low};
}

EnergyRange step_energy(Watts power, Seconds step, Seconds low, Seconds high, const Gpu& gpu) {
  const bool limited = gpu.power.limit.value() > 0;
  const Watts average = limited ? std::min(power, gpu.power.limit) : power;
  const Joules work = std::max(Watts{0.0}, average - gpu.power.idle) * step;
  const Joules most = gpu.power.idle * high + work * (1.0 + kEnergySpread);
  return {average * step, std::min(average * step, gpu.power.idle * low + work * (1.0 - kEnergySpread)),
          std::max(average * step, limited ? std::min(most, gpu.power.limit * high) : most)};
}

}  // namespace ridgeline
