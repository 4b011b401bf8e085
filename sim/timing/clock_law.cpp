#include "sim/timing/clock_law.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "sim/timing/math_rate.h"

namespace ridgeline {
namespace {

/// Of the energy of a byte from the DRAM, what L2 and SMs draw at their own voltage: on an H200 a byte from the L2
/// costs 56 pJ (16 MiB scaled in place: 385 W at 4.75 TB/s), one from the DRAM 117 pJ (copies and sums of 1 GiB: 623 to
/// 626 W).
constexpr double kCoreShareOfByte = 0.48;
/// Of the idle power, what falls with clock and voltage: 117 W of an H200 at 1980 MHz (loads of falling duty,
/// extrapolated), 81 W at 345 MHz.
constexpr double kClockShareOfIdle = 0.34;
/// Share of the limit that is left for work on boards whose idle power takes more: a limit below the idle power cannot
/// be kept.
constexpr double kLeastForWork = 0.05;
/// Bytes that the energy of a product's operations includes.
constexpr double kFlopsOfAByte = 500.0;

bool on_tensor_cores(Pipe pipe) { return pipe == Pipe::tensor_wgmma || pipe == Pipe::tensor_mma; }

Watts draw(const Gpu& gpu, const WorkEnergy& energy, Seconds time, Hertz clock) {
  return idle_power(gpu, clock) + energy.at(voltage(gpu, clock)) / time;
}

double charged(const Gpu& gpu, Seconds settled) {
  return settled.value() > 0.0 ? settled.value() / (settled.value() + gpu.power.averaging.value()) : 0.0;
}

}  // namespace

Hertz kernel_clock(const Gpu& gpu, Pipe pipe, double activity) {
  if (on_tensor_cores(pipe)) return gpu.clock.tensor - gpu.clock.tensor_droop * std::clamp(activity, 0.0, 1.0);
  return gpu.clock.sustained;
}

Hertz top_clock(const Gpu& gpu) { return std::max(gpu.clock.sustained, gpu.clock.tensor); }

Hertz own_clock(const Gpu& gpu, Pipe pipe) { return kernel_clock(gpu, pipe, 0.0); }

Watts idle_power(const Gpu& gpu, Hertz clock) {
  const double v = voltage(gpu, clock), pace = gpu.clock.boost.value() > 0.0 ? ratio(clock, gpu.clock.boost) : 1.0;
  return gpu.power.idle * (1.0 - kClockShareOfIdle * (1.0 - pace * v * v));
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

WorkEnergy work_energy(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes, double l2_bytes) {
  const JoulesPerByte dram = gpu.power.board * gpu.power.dram;
  const Joules traffic = Bytes{std::max(0.0, dram_bytes - flops / kFlopsOfAByte)} * dram;
  return {Flops{flops} * (gpu.power.board * energy_per_flop(gpu, pipe, type)) +
              kCoreShareOfByte * (traffic + Bytes{l2_bytes} * dram),
          (1.0 - kCoreShareOfByte) * traffic};
}

namespace {

/// Where a function that grows from `below` at `low` (0 or less) to `above` at `high` crosses zero, as closely as a
/// double tells: false position, the end that stays put counting half (the Illinois rule), each fourth step a halving.
template <class Function>
double crossing(double low, double below, double high, double above, const Function& function) {
  constexpr double kExact = 1e-15;
  constexpr int kMostSteps = 200;
  int stayed = 0;  // which end did in the last step: 1 the high one, -1 the low one
  for (int i = 1; i < kMostSteps && high - low > kExact * high; ++i) {
    double middle = high - (high - low) * above / (above - below);
    if (i % 4 == 0 || !(middle > low && middle < high)) middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    const double value = function(middle);
    if (value > 0.0) {
      high = middle;
      above = value;
      if (stayed == -1) below *= 0.5;
      stayed = -1;
    } else {
      low = middle;
      below = value;
      if (stayed == 1) above *= 0.5;
      stayed = 1;
    }
  }
  return high;
}

}  // namespace

Settled settle(const Gpu& gpu, const WorkEnergy& energy, Seconds time, Seconds clocked, Hertz own) {
  const Hertz top = top_clock(gpu);
  const auto beyond = [&](double hertz) {
    const Hertz clock{hertz};
    return (draw(gpu, energy, time_at(time, clocked, own, clock), clock) - gpu.power.limit).value();
  };
  if (gpu.power.limit.value() <= 0.0 || time.value() <= 0.0) return {time, top};
  const double above = beyond(top.value());
  if (!(above > 0.0)) return {time, top};
  const double low = std::min(gpu.clock.lowest, top).value();
  const double below = low > 0.0 ? beyond(low) : -gpu.power.limit.value();
  if (!(below > 0.0)) {
    const Hertz settled{crossing(low, below, top.value(), above, beyond)};
    return {time_at(time, clocked, own, settled), settled};
  }
  // The slowest SMs draw too much still: the memory has to wait as well, and SMs stop in between.
  const Hertz lowest{low};
  const Watts left = std::max(gpu.power.limit - idle_power(gpu, Hertz{0.0}), kLeastForWork * gpu.power.limit);
  return {std::max(time_at(time, clocked, own, lowest), energy.at(gpu.clock.knee_voltage) / left), lowest};
}

namespace {

Settled averaged(const Gpu& gpu, const WorkEnergy& energy, Seconds time, Seconds clocked, Hertz own) {
  const Settled settled = settle(gpu, energy, time, clocked, own);
  const Hertz top = top_clock(gpu);
  if (settled.clock >= top) return {time, top};
  const double pays = charged(gpu, settled.time);
  return {time + pays * (settled.time - time), top - pays * (top - settled.clock)};
}

}  // namespace

Settled power_limited(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes, Seconds time,
                      Seconds clocked) {
  return averaged(gpu, work_energy(gpu, pipe, type, flops, dram_bytes), time, clocked, own_clock(gpu, pipe));
}

WorkEnergy kernel_energy(const KernelLaunch& launch, const KernelTime& kernel, const Gpu& gpu) {
  const double dram = kernel.dram_read_bytes + kernel.dram_write_bytes;
  const double l2 = std::holds_alternative<MemoryBoundWork>(launch.work) ? std::max(0.0, kernel.l2_bytes - dram) : 0.0;
  return work_energy(gpu, launch.pipe, launch.type, launch.flops_in_type(), dram, l2);
}

void limit_power(KernelTime& kernel, const KernelLaunch& launch, const Gpu& gpu) {
  const Seconds time = kernel.time;
  const Settled settled =
      averaged(gpu, kernel_energy(launch, kernel, gpu), time, kernel.clocked, own_clock(gpu, launch.pipe));
  kernel.time = settled.time;
  kernel.held = settled.time - time;
  kernel.clock = settled.clock;
}

PowerLimit power_limit(const Gpu& gpu, Pipe pipe, DType type, double flops, double dram_bytes) {
  const WorkEnergy energy = work_energy(gpu, pipe, type, flops, dram_bytes);
  const Pipe fastest = on_tensor_cores(pipe) ? Pipe::tensor_wgmma : pipe;
  const double rate = math_rate(fastest, type, gpu).multiply_adds * std::max(1.0, gpu.sm.rates.sparsity_factor);
  const Hertz own = own_clock(gpu, fastest);
  if (rate <= 0.0 || own.value() <= 0.0 || gpu.power.limit.value() <= 0.0) return {};
  // A kernel that is nothing but multiply-adds at their peak: all others are longer and have more that goes with the
  // clock.
  const Seconds least{0.5 * flops / (rate * gpu.sm.count * own.value())};
  const Seconds floor = settle(gpu, energy, least, least, own).time;
  return {floor, charged(gpu, floor)};
}

}  // namespace ridgeline
