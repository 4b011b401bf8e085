// hw/probe/latency_chase.cu and bank_conflicts.cu: one block, timed by its SM's own clock.
#include <algorithm>
#include <numeric>

#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

constexpr double kLine = 128.0, kJumps = 16384.0;
/// An SM's L1 holds what shared memory leaves of the two together: at least this much of it.
constexpr double kL1Share = 0.97;

}  // namespace

MicrokernelRun describe_latency(const ProbePoint& point, const Gpu& gpu) {
  const double bytes = point["bytes"];
  KernelLaunch launch = code_launch(CodeKernel::chase, 1, 1, 16, kJumps);
  const bool in_l1 = bytes <= kL1Share * gpu.sm.l1_and_shared.value();
  // Lines of a footprint that the L1 holds are in it before the clock starts.
  if (in_l1) {
    reads(launch, bytes);
    std::get<MemoryBoundWork>(launch.work).reread_bytes = kLine * kJumps;
  } else {
    reads(launch, std::min(bytes, kLine * kJumps), kLine * kJumps);
  }
  MicrokernelRun run;
  run.footprint = bytes;
  run.amount = kJumps;
  run.shows = MicrokernelRun::Shows::cycles;
  run.launches.push_back(std::move(launch));
  return run;
}

MicrokernelRun describe_shared_latency(const ProbePoint&, const Gpu&) {
  MicrokernelRun run;
  run.launches.push_back(code_launch(CodeKernel::shared_chase, 1, 1, 16, kJumps));
  run.amount = kJumps;
  run.shows = MicrokernelRun::Shows::cycles;
  return run;
}

MicrokernelRun describe_bank_conflicts(const ProbePoint& point, const Gpu&) {
  constexpr int kWarps = 8, kLoads = 512, kBanks = 32;
  const int stride = static_cast<int>(point["stride"]);
  const int turns = stride == 0 ? 1 : std::gcd(stride, kBanks);  // lanes of one word are served together
  MicrokernelRun run;
  run.launches.push_back(code_launch(CodeKernel::shared_loads, 1, 32 * kWarps, 16, double{kLoads} * turns));
  run.amount = double{kLoads} * kWarps;
  run.shows = MicrokernelRun::Shows::cycles;
  return run;
}

}  // namespace ridgeline
