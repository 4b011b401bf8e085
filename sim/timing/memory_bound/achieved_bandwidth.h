// What the kernels of libraries get of the bandwidths of a hardware file.
//
// A file states what plain streams reach with a 16-byte access a thread: slopes of time against bytes of DRAM reads and
// writes, and of rereads from the L2. Library kernels make several accesses a thread, so that blocks read and write in
// longer turns (up to 5 % of a copy on an H200). The shares bring one to the other; they were set so that the laws keep
// the bandwidths with which they were fitted on PyTorch's kernels of an H200 (DRAM 4.51 TB/s read, 4.71 written; L2 7.7
// read, 5.0 written, the two added up).
#pragma once

#include "sim/hardware/gpu.h"

namespace ridgeline {

struct AchievedBandwidth {
  double dram_read, dram_write;  ///< bytes a second, of streams in one direction
  double l2_read, l2_write;      ///< bytes a second, of hits
};

inline AchievedBandwidth achieved_bandwidth(const Gpu& gpu) {
  constexpr double kReadShare = 0.9745, kWriteShare = 1.0, kL2ReadShare = 0.845, kL2WriteShare = 1.112;
  const double peak = gpu.dram.bandwidth.value();
  return {peak * gpu.dram.read_efficiency * kReadShare, peak * gpu.dram.write_efficiency * kWriteShare,
          gpu.l2.read_bandwidth.value() * kL2ReadShare, gpu.l2.write_bandwidth.value() * kL2WriteShare};
}

}  // namespace ridgeline
