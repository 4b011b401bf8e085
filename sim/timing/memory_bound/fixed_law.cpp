// Work of the copy engines and memsets: a fixed cost, then bytes over a link or the DRAM.
#include <algorithm>
#include <cmath>

#include "sim/timing/laws.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"

namespace ridgeline {
namespace {

/// Bytes a second through memory of the host that is not pinned, which a thread of the host copies: no more, whatever
/// the link. From the copies of two training steps beside an NVIDIA H100 (measurements/h100/offloaded_steps.jsonl.gz,
/// rows to fit); four others had 0.92 to 1.11 of it to the device and 0.67 to 1.15 of it to the host.
constexpr double kFromPageable = 7.0e9, kToPageable = 2.8e9;

double link_rate(const LinkSpec& link, FixedWork::What what) {
  const double pinned = link.bandwidth.value();
  const auto no_more = [pinned](double rate) { return pinned > 0.0 ? std::min(rate, pinned) : rate; };
  if (what == FixedWork::What::memcpy_pageable_to_device) return no_more(kFromPageable);
  if (what == FixedWork::What::memcpy_device_to_pageable) return no_more(kToPageable);
  return pinned;
}

}  // namespace

KernelTime fixed_time(const KernelLaunch& launch, const FixedWork& work, const Gpu& gpu, Residency /*residency*/) {
  // A copy over the host link costs about two memsets before its first byte (4-byte copies of a profiled step: 1.57
  // us).
  constexpr double kLinkStart = 2.0;
  const double start = gpu.launch.memset.value();
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  const double dram_write = achieved.dram_write, dram_read = achieved.dram_read;
  double fixed = start, moving = 0.0;
  KernelTime result;
  switch (work.what) {
    case FixedWork::What::memset:
      moving = work.bytes / dram_write;
      result.dram_write_bytes = work.bytes;
      break;
    case FixedWork::What::memcpy_device:
      moving = work.bytes / dram_read + work.bytes / dram_write;
      result.dram_read_bytes = result.dram_write_bytes = work.bytes;
      break;
    case FixedWork::What::memcpy_host_to_device:
    case FixedWork::What::memcpy_device_to_host:
    case FixedWork::What::memcpy_pageable_to_device:
    case FixedWork::What::memcpy_device_to_pageable: {
      const bool upload = work.what == FixedWork::What::memcpy_host_to_device ||
                          work.what == FixedWork::What::memcpy_pageable_to_device;
      const double rate = link_rate(gpu.host_link, work.what);
      fixed = kLinkStart * start;
      moving = std::max(rate > 0.0 ? work.bytes / rate : 0.0, work.bytes / (upload ? dram_write : dram_read));
      (upload ? result.dram_write_bytes : result.dram_read_bytes) = work.bytes;
      break;
    }
    case FixedWork::What::helper:
      fixed = std::max(start, gpu.launch.kernel_fixed.value());
      moving = work.bytes / dram_read;
      result.dram_read_bytes = work.bytes;
      break;
    case FixedWork::What::collective:  // alone: what its bytes take here
      moving = work.bytes / dram_read + work.bytes / dram_write;
      result.dram_read_bytes = result.dram_write_bytes = work.bytes;
      break;
    case FixedWork::What::layout_change: {
      // A block turns 32 x 32 values in shared memory, whatever it holds: an SM takes these cycles for one, or the DRAM
      // its time for the bytes, at a share of its bandwidth that grows with the size of a value (1984 kernels of cuDNN
      // on an H200, median error 6.8 %).
      constexpr double kBlockCycles = 395.0, kTogether = 4.0;
      const double share = bytes_of(launch.type) <= 2 ? 0.67 : 0.86;
      fixed = 2.0 * start;
      const double turning = work.blocks * kBlockCycles / (gpu.sm.count * gpu.clock.sustained.value()),
                   dram = work.bytes / (share * gpu.dram.bandwidth.value());
      result.clocked = Seconds{turning};
      moving = std::pow(std::pow(turning, kTogether) + std::pow(dram, kTogether), 1.0 / kTogether);
      result.dram_read_bytes = result.dram_write_bytes = 0.5 * work.bytes;
      break;
    }
  }
  result.time = Seconds{fixed + moving};
  result.limiter = moving > fixed ? Limiter::dram : Limiter::latency;
  result.l2_bytes = work.bytes;
  return result;
}

}  // namespace ridgeline
