#include "sim/timing/clock_law.h"

#include <algorithm>

namespace ridgeline {

Hertz kernel_clock(const Gpu& gpu, Pipe pipe, double activity) {
  if (pipe == Pipe::tensor_wgmma || pipe == Pipe::tensor_mma)
    return gpu.clock.tensor - gpu.clock.tensor_droop * std::clamp(activity, 0.0, 1.0);
  return gpu.clock.sustained;
}

JoulesPerFlop energy_per_flop(const Gpu& gpu, Pipe pipe, DType type) {
  if (pipe == Pipe::none) return JoulesPerFlop{};
  if (pipe == Pipe::fp32) return gpu.power.fp32;
  switch (type) {
    case DType::bf16: return gpu.power.tensor_bf16;
    case DType::fp16: return gpu.power.tensor_fp16;
    case DType::tf32: return gpu.power.tensor_tf32;
    default: return gpu.power.fp32;
  }
}

Seconds power_floor(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes) {
  constexpr double kFlopsOfAByte = 500.0;
  const Watts budget = gpu.power.limit - gpu.power.idle;
  if (budget.value() <= 0.0) return Seconds{};
  const Joules traffic = Bytes{std::max(0.0, dram_bytes - flops / kFlopsOfAByte)} * gpu.power.dram;
  return (Flops{flops} * energy_per_flop(gpu, pipe, type) + traffic) / budget;
}

PowerLimit power_limit(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes) {
  const Seconds floor = power_floor(gpu, pipe, type, flops, dram_bytes);
  return {floor, floor.value() > 0.0 ? floor.value() / (floor.value() + gpu.power.averaging.value()) : 0.0};
}

Seconds power_limited(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes, Seconds time) {
  const PowerLimit limit = power_limit(gpu, pipe, type, flops, dram_bytes);
  if (limit.floor <= time) return time;
  const Seconds excess = limit.floor - time;
  return time + excess * limit.charged;
}

}  // namespace ridgeline
