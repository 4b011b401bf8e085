// hw/probe/l2_bandwidth.cu and l1_shared_bandwidth.cu: what is near, again and again.
#include <algorithm>
#include <cmath>

#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

constexpr int kSweepThreads = 1024;
constexpr double kOwnSweeps = 200.0;  // of the SM's own data
constexpr double kSweepPass = 16.0 * kSweepThreads;

/// Of the L1 and shared memory together, what a kernel without shared memory finds again.
constexpr double kFoundAgain = 0.9;

MicrokernelRun a_block_an_sm(KernelLaunch launch, double bytes) {
  MicrokernelRun run;
  run.amount = bytes * kOwnSweeps;
  run.shows = MicrokernelRun::Shows::bytes_a_cycle;
  run.launches.push_back(std::move(launch));
  return run;
}

}  // namespace

MicrokernelRun describe_l2_read(const ProbePoint& point, const Gpu&) {
  const double bytes = point["bytes"], blocks = point["blocks"], sweeps = point["sweeps"];
  KernelLaunch launch =
      code_launch(CodeKernel::l2_sweep, blocks, kSweepThreads, 32, sweeps * bytes / (8.0 * kSweepPass));
  reads(launch, bytes, bytes * blocks * sweeps);
  MicrokernelRun run;
  run.footprint = bytes;
  run.amount = bytes * blocks * sweeps;
  run.launches.push_back(std::move(launch));
  return run;
}

MicrokernelRun describe_l2_write(const ProbePoint& point, const Gpu&) {
  // A block's part is a whole number of passes.
  const double blocks = point["blocks"], sweeps = point["sweeps"];
  const double part = std::floor(point["bytes"] / blocks / kSweepPass) * kSweepPass;
  KernelLaunch launch =
      code_launch(CodeKernel::l2_rewrite, blocks, kSweepThreads, 32, sweeps * part / (16.0 * kSweepPass));
  writes(launch, part * blocks, part * blocks * sweeps);
  MicrokernelRun run;
  run.footprint = part * blocks;
  run.amount = part * blocks * sweeps;
  run.launches.push_back(std::move(launch));
  return run;
}

bool fits_l1(const ProbePoint& point, const Gpu& gpu) {
  return point["bytes"] <= kFoundAgain * gpu.sm.l1_and_shared.value();
}

MicrokernelRun describe_l1_read(const ProbePoint& point, const Gpu& gpu) {
  const double bytes = point["bytes"], blocks = gpu.sm.count;
  KernelLaunch launch = code_launch(CodeKernel::l1_sweep, blocks, kSweepThreads, 32, kOwnSweeps * bytes / kSweepPass);
  auto& work = std::get<MemoryBoundWork>(launch.work);
  work.elements = bytes / kSweepPass;  // the loads of a sweep fly together
  work.reread_bytes = bytes * blocks * kOwnSweeps;
  reads(launch, bytes * blocks);
  MicrokernelRun run = a_block_an_sm(std::move(launch), bytes);
  run.footprint = bytes * blocks;
  return run;
}

MicrokernelRun describe_shared_read(const ProbePoint& point, const Gpu& gpu) {
  const double bytes = point["bytes"];
  KernelLaunch launch =
      code_launch(CodeKernel::shared_sweep, gpu.sm.count, kSweepThreads, 32, kOwnSweeps * bytes / kSweepPass);
  launch.shared_bytes_per_block = static_cast<std::int64_t>(bytes);
  return a_block_an_sm(std::move(launch), bytes);
}

}  // namespace ridgeline
