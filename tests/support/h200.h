// An H200 (SXM, 141 GB) built in code, for tests of laws that should not depend on the hardware files' loader.
#pragma once

#include "sim/hardware/gpu.h"

namespace ridgeline::testing {

inline Gpu h200() {
  Gpu gpu;
  gpu.name = "nvidia-h200-sxm-141gb";
  gpu.title = "NVIDIA H200 SXM 141 GB";
  gpu.architecture = Architecture::hopper;
  gpu.compute_major = 9;
  gpu.compute_minor = 0;
  gpu.sm.count = 132;
  gpu.sm.l1_and_shared = Bytes{256 * kKiB};
  gpu.sm.shared_per_sm = Bytes{228 * kKiB};
  gpu.sm.shared_per_block = Bytes{227 * kKiB};
  gpu.sm.shared_reserved_per_block = Bytes{1 * kKiB};
  gpu.sm.shared_allocation_unit = Bytes{128};
  gpu.sm.shared_bandwidth = BytesPerCycle{128};
  gpu.sm.l1_bandwidth = BytesPerCycle{128};
  gpu.sm.shared_latency = Cycles{29};
  gpu.sm.l1_latency = Cycles{34};
  gpu.sm.rates.fp32 = 128;
  gpu.sm.rates.fp64 = 64;
  gpu.sm.rates.fp16 = 256;
  gpu.sm.rates.int32 = 64;
  gpu.sm.rates.tensor_fp16 = gpu.sm.rates.tensor_bf16 = gpu.sm.rates.tensor_fp16_fp16acc = 2048;
  gpu.sm.rates.tensor_tf32 = 1024;
  gpu.sm.async_copy = gpu.sm.tensor_memory_accelerator = gpu.sm.warpgroup_mma = true;
  gpu.clock.base = Hertz{1.365e9};
  gpu.clock.boost = gpu.clock.sustained = Hertz{1.98e9};
  gpu.clock.tensor = Hertz{1.83e9};
  gpu.power.limit = Watts{700};
  gpu.power.idle = Watts{98};
  gpu.l2.capacity = Bytes{60 * kMiB};
  gpu.l2.partitions = 2;
  gpu.l2.read_bandwidth = BytesPerSecond{7.7e12};
  gpu.l2.write_bandwidth = BytesPerSecond{5.0e12};
  gpu.l2.latency = Cycles{265};
  gpu.dram.type = "HBM3e";
  gpu.dram.capacity = Bytes{141e9};
  gpu.dram.bandwidth = BytesPerSecond{4.8e12};
  gpu.dram.read_efficiency = 0.94;
  gpu.dram.write_efficiency = 0.99;
  gpu.dram.turnaround = 0.016;
  gpu.dram.latency = Seconds{3.3e-7};
  gpu.launch.kernel_fixed = microseconds(0.73);
  gpu.launch.gap = microseconds(1.1);
  gpu.launch.start_latency = microseconds(2.1);
  gpu.launch.memset = microseconds(0.737);
  gpu.launch.graph_period = microseconds(1.26);
  gpu.launch.blocks_per_second = 1.6e9;
  gpu.host_link.bandwidth = BytesPerSecond{55e9};
  return gpu;
}

}  // namespace ridgeline::testing
