#include "sim/timeline/power.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/timing/clock_law.h"

namespace ridgeline {
namespace {

/// Power over rate of a tensor-core kernel: ln((700 W - 98 W) / 1135 W) / ln(656 / 783), see the header.
constexpr double kRateExponent = 3.65;
/// Rate of the best large product over the peak at the clock it runs at: 783 TFLOP/s of 865 on an H200.
constexpr double kBestUtilization = 0.905;
/// No board goes below this share of its clock for power.
constexpr double kMostSlowdown = 2.5;

double tensor_rate(DType type, const MathRates& rates) {
  switch (type) {
    case DType::fp16: return rates.tensor_fp16;
    case DType::tf32: return rates.tensor_tf32;
    default: return rates.tensor_bf16;
  }
}

// The hardware file states the energy of a load that goes on, at the rate the limit leaves it: (limit - idle) / rate.
// At the rate the chip starts with, before the limit bites, an operation costs more.
JoulesPerFlop energy_at_full_clock(Pipe pipe, DType type, const Gpu& gpu) {
  const JoulesPerFlop sustained = energy_per_flop(gpu, pipe, type);
  if (sustained.value() <= 0) return sustained;
  const FlopsPerSecond settled = (gpu.power.limit - gpu.power.idle) / sustained;
  const double cycles = (gpu.clock.tensor - gpu.clock.tensor_droop).value();
  const FlopsPerSecond full{kBestUtilization * 2.0 * tensor_rate(type, gpu.sm.rates) * gpu.sm.count * cycles};
  return sustained * std::pow(std::max(1.0, ratio(full, settled)), kRateExponent - 1.0);
}

/// Of energies beyond idling. Estimated: published models of GPU energy with measured constants err by 11 to 25 %.
constexpr double kEnergySpread = 0.25;

}  // namespace

StepEnergy energy_of(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu) {
  StepEnergy energy;
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    const KernelTime& time = times[i++];
    if (launch.on_tensor_cores()) {
      energy.tensor += Flops(launch.flops) * energy_at_full_clock(launch.pipe, launch.type, gpu);
      energy.tensor_time += time.time;
    } else if (std::holds_alternative<GemmWork>(launch.work)) {
      energy.other += Flops(launch.flops) * gpu.power.fp32;
    } else {
      energy.other += Bytes(time.dram_read_bytes + time.dram_write_bytes) * gpu.power.dram;
    }
  }
  return energy;
}

Watts power_of(const StepEnergy& energy, Seconds step, double slowdown, const Gpu& gpu) {
  return gpu.power.idle + (energy.tensor * std::pow(slowdown, 1.0 - kRateExponent) + energy.other) / step;
}

double tensor_slowdown(const StepEnergy& energy, Seconds step, const Gpu& gpu) {
  // Slower kernels lengthen the step, unless it waits for the host anyway: then the estimate is a little high.
  const auto exceeds = [&](double slowdown) {
    return power_of(energy, step + energy.tensor_time * (slowdown - 1.0), slowdown, gpu) > gpu.power.limit;
  };
  if (gpu.power.limit.value() <= 0 || !exceeds(1.0)) return 1.0;
  double low = 1.0, high = kMostSlowdown;
  // What exceeds the limit even without the tensor cores is not theirs to make good.
  if (exceeds(high)) return 1.0;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (exceeds(middle) ? low : high) = middle;
  }
  return high;
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
