// What a chip and its host could have more of, one at a time: the questions of a sensitivity analysis.
//
// More of a resource changes the numbers that the laws read and nothing else, so every engine answers with its own
// laws. The clock of the SMs takes along what is stated in its cycles; L2 and DRAM run on clocks of their own.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"

namespace ridgeline {

enum class Resource : std::uint8_t {
  sm_count,
  core_clock,               ///< SMs and the block dispatcher; latencies counted in SM cycles shorten
  tensor_throughput,        ///< multiply-adds a clock of the tensor cores, every type
  fma_throughput,           ///< CUDA cores, the special functions beside them, and the issue slots that feed both
  shared_memory_bandwidth,  ///< and that of the L1, which is the same memory
  l2_bandwidth,
  l2_capacity,
  dram_bandwidth,
  power_limit,  ///< of the board; what idling draws stays
  latency,      ///< launches, gaps, memsets; L1, L2 and DRAM latency: divided by the factor
  host_speed    ///< every cost of the host divided by the factor
};
inline constexpr std::array kResources{Resource::sm_count,
                                       Resource::core_clock,
                                       Resource::tensor_throughput,
                                       Resource::fma_throughput,
                                       Resource::shared_memory_bandwidth,
                                       Resource::l2_bandwidth,
                                       Resource::l2_capacity,
                                       Resource::dram_bandwidth,
                                       Resource::power_limit,
                                       Resource::latency,
                                       Resource::host_speed};

/// "sm_count" … as JSON spells it, and "SMs" … as a table does.
std::string_view name_of(Resource resource);
std::string_view title_of(Resource resource);

/// `gpu` with `factor` (> 1; of the clock any) times as much of a resource; SMs to the nearest whole number, at least
/// one more.
Gpu with_more(const Gpu& gpu, Resource resource, double factor);
/// `host` likewise: changed by host_speed alone.
Host with_more(const Host& host, Resource resource, double factor);

}  // namespace ridgeline
