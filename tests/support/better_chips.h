// Numbers of a chip that kernels feel, each with the direction in which it is better, for properties over random chips.
#pragma once

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sim/hardware/gpu.h"

namespace ridgeline::testing {

struct ChipKey {
  const char* name;
  void (*improve)(Gpu&, double factor);
};

/// Every number of a hardware file by itself. Latencies and launch times are divided.
inline const std::vector<ChipKey>& chip_keys() {
  static const std::vector<ChipKey> keys = {
      {"sm.count", [](Gpu& g, double f) { g.sm.count = static_cast<int>(std::ceil(f * g.sm.count)); }},
      {"sm.issue_rate", [](Gpu& g, double f) { g.sm.issue_rate *= f; }},
      {"sm.max_warps", [](Gpu& g, double f) { g.sm.max_warps = static_cast<int>(std::ceil(f * g.sm.max_warps)); }},
      {"sm.max_blocks", [](Gpu& g, double f) { g.sm.max_blocks = static_cast<int>(std::ceil(f * g.sm.max_blocks)); }},
      {"sm.registers", [](Gpu& g, double f) { g.sm.registers = static_cast<int>(f * g.sm.registers); }},
      {"sm.l1_and_shared", [](Gpu& g, double f) { g.sm.l1_and_shared = g.sm.l1_and_shared * f; }},
      {"sm.shared_per_sm", [](Gpu& g, double f) { g.sm.shared_per_sm = g.sm.shared_per_sm * f; }},
      {"sm.shared_per_block", [](Gpu& g, double f) { g.sm.shared_per_block = g.sm.shared_per_block * f; }},
      {"sm.shared_bandwidth", [](Gpu& g, double f) { g.sm.shared_bandwidth = g.sm.shared_bandwidth * f; }},
      {"sm.l1_bandwidth", [](Gpu& g, double f) { g.sm.l1_bandwidth = g.sm.l1_bandwidth * f; }},
      {"sm.shared_latency", [](Gpu& g, double f) { g.sm.shared_latency = g.sm.shared_latency / f; }},
      {"sm.l1_latency", [](Gpu& g, double f) { g.sm.l1_latency = g.sm.l1_latency / f; }},
      {"rates.fp32", [](Gpu& g, double f) { g.sm.rates.fp32 *= f; }},
      {"rates.int32", [](Gpu& g, double f) { g.sm.rates.int32 *= f; }},
      {"rates.special", [](Gpu& g, double f) { g.sm.rates.special *= f; }},
      {"rates.tensor_fp16", [](Gpu& g, double f) { g.sm.rates.tensor_fp16 *= f; }},
      {"rates.tensor_bf16", [](Gpu& g, double f) { g.sm.rates.tensor_bf16 *= f; }},
      {"rates.tensor_tf32", [](Gpu& g, double f) { g.sm.rates.tensor_tf32 *= f; }},
      {"clock",
       [](Gpu& g, double f) {
         for (Hertz* c :
              {&g.clock.boost, &g.clock.boost_tensor, &g.clock.sustained, &g.clock.tensor, &g.clock.tensor_droop})
           *c = *c * f;
       }},
      {"clock.sustained", [](Gpu& g, double f) { g.clock.sustained = g.clock.sustained * f; }},
      {"clock.tensor", [](Gpu& g, double f) { g.clock.tensor = g.clock.tensor * f; }},
      {"power.limit", [](Gpu& g, double f) { g.power.limit = g.power.limit * f; }},
      {"l2.capacity", [](Gpu& g, double f) { g.l2.capacity = g.l2.capacity * f; }},
      {"l2.read_bandwidth", [](Gpu& g, double f) { g.l2.read_bandwidth = g.l2.read_bandwidth * f; }},
      {"l2.write_bandwidth", [](Gpu& g, double f) { g.l2.write_bandwidth = g.l2.write_bandwidth * f; }},
      {"l2.latency", [](Gpu& g, double f) { g.l2.latency = g.l2.latency / f; }},
      {"dram.bandwidth", [](Gpu& g, double f) { g.dram.bandwidth = g.dram.bandwidth * f; }},
      {"dram.latency", [](Gpu& g, double f) { g.dram.latency = g.dram.latency / f; }},
      {"host_link.bandwidth", [](Gpu& g, double f) { g.host_link.bandwidth = g.host_link.bandwidth * f; }},
      {"launch.kernel_fixed", [](Gpu& g, double f) { g.launch.kernel_fixed = g.launch.kernel_fixed / f; }},
      {"launch.memset", [](Gpu& g, double f) { g.launch.memset = g.launch.memset / f; }},
      {"launch.blocks_per_second", [](Gpu& g, double f) { g.launch.blocks_per_second *= f; }},
  };
  return keys;
}

/// Everything `factor` times as fast: clocks, bandwidths, power; latencies in seconds and launch times divided.
/// Latencies in cycles and rates a clock follow the clock.
inline Gpu faster_throughout(Gpu gpu, double factor) {
  for (const ChipKey& key : chip_keys()) {
    const std::string_view name = key.name;
    if (name == "clock" || name == "l2.read_bandwidth" || name == "l2.write_bandwidth" || name == "dram.bandwidth" ||
        name == "dram.latency" || name == "host_link.bandwidth" || name.starts_with("launch."))
      key.improve(gpu, factor);
  }
  gpu.clock.lowest = gpu.clock.lowest * factor;
  gpu.clock.knee = gpu.clock.knee * factor;
  gpu.l2.shared_read_bandwidth = gpu.l2.shared_read_bandwidth * factor;
  gpu.l2.atomic_rate *= factor;
  gpu.l2.atomic_address_rate *= factor;
  gpu.power.limit = gpu.power.limit * factor;
  gpu.power.idle = gpu.power.idle * factor;
  gpu.power.averaging = gpu.power.averaging / factor;
  return gpu;
}

}  // namespace ridgeline::testing
