#include "sim/timeline/power.h"

#include <algorithm>

namespace ridgeline {
namespace {

constexpr double kThreshold = 0.77, kSlope = 0.385;

bool on_tensor_cores(const KernelLaunch& launch) {
  return launch.pipe == Pipe::tensor_wgmma || launch.pipe == Pipe::tensor_mma;
}

JoulesPerFlop tensor_energy(DType type, const PowerSpec& power) {
  switch (type) {
    case DType::fp16: return power.tensor_fp16;
    case DType::tf32: return power.tensor_tf32;
    default: return power.tensor_bf16;
  }
}

}  // namespace

StepEnergy energy_of(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu) {
  StepEnergy energy;
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelLaunch& launch = program.launches[action.index];
    const KernelTime& time = times[i++];
    if (on_tensor_cores(launch)) energy.tensor += Flops(launch.flops) * tensor_energy(launch.type, gpu.power);
    else if (launch.pipe == Pipe::fp32 && std::holds_alternative<GemmWork>(launch.work))
      energy.other += Flops(launch.flops) * gpu.power.fp32;
    else energy.other += Bytes(time.dram_read_bytes + time.dram_write_bytes) * gpu.power.dram;
  }
  return energy;
}

Watts power_of(const StepEnergy& energy, Seconds duration, const Gpu& gpu) {
  return gpu.power.idle + (energy.tensor + energy.other) / duration;
}

double tensor_slowdown(Watts demand, const Gpu& gpu) {
  if (gpu.power.limit.value() <= 0) return 1.0;
  return 1.0 + kSlope * std::max(0.0, ratio(demand, gpu.power.limit) - kThreshold);
}

}  // namespace ridgeline
