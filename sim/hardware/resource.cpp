#include "sim/hardware/resource.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

struct Names {
  std::string_view name, title;
};
constexpr std::array<Names, kResources.size()> kNames{{{"sm_count", "SMs"},
                                                       {"core_clock", "clock of the SMs"},
                                                       {"tensor_throughput", "tensor-core throughput"},
                                                       {"fma_throughput", "CUDA-core throughput"},
                                                       {"shared_memory_bandwidth", "shared-memory bandwidth"},
                                                       {"l2_bandwidth", "L2 bandwidth"},
                                                       {"l2_capacity", "L2 capacity"},
                                                       {"dram_bandwidth", "DRAM bandwidth"},
                                                       {"power_limit", "power limit"},
                                                       {"latency", "launches and latencies"},
                                                       {"host_speed", "host speed"}}};

void speed_up_clock(Gpu& gpu, double factor) {
  ClockSpec& c = gpu.clock;
  for (Hertz* clock : {&c.boost, &c.boost_tensor, &c.sustained, &c.tensor, &c.tensor_droop, &c.lowest, &c.knee})
    *clock = *clock * factor;
  gpu.launch.blocks_per_second *= factor;
}

void shorten_latencies(Gpu& gpu, double factor) {
  LaunchSpec& l = gpu.launch;
  for (Seconds* t :
       {&l.kernel_fixed, &l.gap, &l.start_latency, &l.memset, &l.graph_period, &l.graph_gap, &gpu.dram.latency})
    *t = *t / factor;
  for (Cycles* cycles : {&gpu.l2.latency, &gpu.sm.l1_latency, &gpu.sm.shared_latency}) *cycles = *cycles / factor;
  l.blocks_per_second *= factor;
}

}  // namespace

std::string_view name_of(Resource resource) { return kNames[static_cast<std::size_t>(resource)].name; }
std::string_view title_of(Resource resource) { return kNames[static_cast<std::size_t>(resource)].title; }

Gpu with_more(const Gpu& gpu, Resource resource, double factor) {
  Gpu more = gpu;
  MathRates& rates = more.sm.rates;
  switch (resource) {
    case Resource::sm_count:
      more.sm.count = std::max(gpu.sm.count + 1, static_cast<int>(std::lround(factor * gpu.sm.count)));
      break;
    case Resource::core_clock: speed_up_clock(more, factor); break;
    case Resource::tensor_throughput:
      for (double* rate : {&rates.tensor_fp16, &rates.tensor_bf16, &rates.tensor_tf32}) *rate *= factor;
      break;
    case Resource::fma_throughput:
      for (double* rate : {&rates.fp32, &rates.int32, &rates.special}) *rate *= factor;
      more.sm.issue_rate *= factor;
      break;
    case Resource::shared_memory_bandwidth:
      more.sm.shared_bandwidth = gpu.sm.shared_bandwidth * factor;
      more.sm.l1_bandwidth = gpu.sm.l1_bandwidth * factor;
      break;
    case Resource::l2_bandwidth:
      more.l2.read_bandwidth = gpu.l2.read_bandwidth * factor;
      more.l2.write_bandwidth = gpu.l2.write_bandwidth * factor;
      more.l2.shared_read_bandwidth = gpu.l2.shared_read_bandwidth * factor;
      break;
    case Resource::l2_capacity: more.l2.capacity = gpu.l2.capacity * factor; break;
    case Resource::dram_bandwidth: more.dram.bandwidth = gpu.dram.bandwidth * factor; break;
    case Resource::power_limit: more.power.limit = gpu.power.limit * factor; break;
    case Resource::latency: shorten_latencies(more, factor); break;
    case Resource::host_speed: break;
  }
  return more;
}

Host with_more(const Host& host, Resource resource, double factor) {
  Host more = host;
  if (resource == Resource::host_speed) {
    more.scale = host.scale / factor;
    // A graph launch is not scaled by the host's own factor.
    more.graph_launch = host.graph_launch / factor;
  }
  return more;
}

}  // namespace ridgeline
