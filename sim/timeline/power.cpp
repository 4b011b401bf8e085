#include "sim/timeline/power.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/timeline/issue_plan.h"
#include "sim/timing/clock_law.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

/// Of energies beyond idling. Estimated: published models of GPU energy with measured constants err by 11 to 25 %.
constexpr double kEnergySpread = 0.25;

constexpr double kClockTolerance = 1e-5;  // relative
constexpr int kMostTrials = 40;

StepTimes listed_times(std::span<const KernelTime> times) {
  StepTimes all{{times.begin(), times.end()}, std::vector<std::uint32_t>(times.size())};
  std::iota(all.of_launch.begin(), all.of_launch.end(), 0U);
  return all;
}

}  // namespace

StepLoad::StepLoad(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu)
    : StepLoad(program, listed_times(times), gpu) {}

StepLoad::StepLoad(const StepProgram& program, const StepTimes& times, const Gpu& gpu)
    : gpu_(gpu), top_(top_clock(gpu)) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  // Of each time on each device, the kernel that has it once and the one that repeats.
  std::vector<std::vector<std::array<std::uint32_t, 2>>> known;
  of_launch_.reserve(times.size());
  Hertz limit{-1.0};  // of the kernel before
  double voltage_at_limit = 0.0;
  const RepeatedLaunches repeat = repeated_launches(program);
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch || of_launch_.size() == times.size()) continue;
    keep_budget_often("the power of kernels");
    const TokenLaunch* token = program.token_launch(action);
    const auto runs = static_cast<double>(token != nullptr ? token->runs : repeat.times_of(of_launch_.size()));
    const std::uint8_t device = program.device ? action.stream : 0;
    if (device >= known.size()) {
      known.resize(device + 1U, std::vector(times.different.size(), std::array{kNone, kNone}));
      board_.resize(device + 1U);
    }
    std::uint32_t alone = kNone;  // launches of tokens run as often as they say
    std::uint32_t& place =
        token != nullptr ? alone : known[device][times.of_launch[of_launch_.size()]][runs == 1.0 ? 0 : 1];
    if (place == kNone) {
      place = static_cast<std::uint32_t>(different_.size());
      const KernelLaunch& launch = program.launches[action.index];
      const KernelTime& time = times[of_launch_.size()];
      const WorkEnergy energy = kernel_energy(launch, time, gpu);
      const Hertz own_limit = time.clock.value() > 0.0 ? std::min(time.clock, top_) : top_;
      if (own_limit != limit) voltage_at_limit = voltage(gpu, limit = own_limit);
      keep_budget_to_grow(different_, "the power of kernels");
      different_.push_back({time.time, time.held, time.time - time.held, time.clocked, own_clock(gpu, launch.pipe),
                            own_limit, energy.core * runs, energy.board * runs, voltage_at_limit, device});
    }
    board_[device] += different_[place].board;
    of_launch_.push_back(place);
  }
  at_top_ = sum_energy(top_);
}

void StepLoad::stretch(Kernel& k, double factor) {
  for (Seconds* part : {&k.time, &k.held, &k.clocked}) *part = *part * factor;
  k.alone = k.time - k.held;
}

StepLoad StepLoad::stretched(double factor) const {
  StepLoad other = *this;
  for (Kernel& kernel : other.different_) stretch(kernel, factor);
  return other;
}

StepLoad StepLoad::stretched(std::span<const double> factors) const {
  StepLoad other = *this;
  other.different_.clear();
  for (std::size_t i = 0; i < size(); ++i) {
    stretch(other.different_.emplace_back(different_[of_launch_[i]]), factors[i]);
    other.of_launch_[i] = static_cast<std::uint32_t>(i);
  }
  return other;
}

void StepLoad::durations(Hertz clock, std::span<double> out) const {
  std::vector<double> of_kind;
  of_kind.reserve(different_.size());
  for (const Kernel& kernel : different_) of_kind.push_back(duration_of(kernel, clock).value());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = of_kind[of_launch_[i]];
}

Seconds StepLoad::held(std::size_t kernel, Hertz clock) const {
  return duration(kernel, clock) - different_[of_launch_[kernel]].alone;
}

Hertz StepLoad::clock_of(std::size_t kernel, Hertz clock) const {
  return std::min(clock, different_[of_launch_[kernel]].limit);
}

Joules StepLoad::sum_energy(Hertz clock) const {
  const double all = voltage(gpu_, clock);
  std::vector<Joules> of_kind;
  of_kind.reserve(different_.size());
  for (const Kernel& k : different_) {
    const double v = k.limit < clock ? k.voltage_at_limit : all;
    of_kind.push_back(k.core * (v * v));
  }
  if (board_.size() == 1) {  // the sum stays in a register
    Joules sum = board_.front();
    for (const std::uint32_t kind : of_launch_) sum += of_kind[kind];
    return sum;
  }
  std::vector<Joules> sums = board_;
  for (const std::uint32_t kind : of_launch_) sums[different_[kind].device] += of_kind[kind];
  return sums.empty() ? Joules{} : *std::max_element(sums.begin(), sums.end());
}

Joules StepLoad::energy_of(std::size_t kernel, Hertz clock) const {
  const Kernel& k = different_[of_launch_[kernel]];
  const double v = voltage(gpu_, std::min(clock, k.limit));
  return k.core * (v * v) + k.board;
}

Watts StepLoad::power(Hertz clock, Seconds step) const {
  return step.value() > 0.0 ? idle_power(gpu_, clock) + energy(clock) / step : idle_power(gpu_, clock);
}

Hertz StepLoad::settle(const std::function<Seconds(Hertz)>& step_at) const {
  const Hertz top = top_;
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
