// Copies between devices of one process (.to("cuda:1")), and between a device and the host.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/network/cluster.h"
#include "sim/units/quantity.h"

namespace ridgeline {

enum class CopyRoute : std::uint8_t {
  peer,     ///< device to device: over their links, or through the host's memory where there are none
  pinned,   ///< device to page-locked host memory or back
  pageable  ///< the same with ordinary host memory, which goes through the driver's buffers
};

/// On the device, from device `from` to device `to` of one node (which of them matters on a mesh and on bridges).
Seconds copy_time(const Cluster& cluster, const Gpu& gpu, CopyRoute route, Bytes bytes, int from = 0, int to = 1);

}  // namespace ridgeline
