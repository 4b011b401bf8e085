// hw/probe/launch_period.cu, wave_staircase.cu and occupancy_bandwidth.cu: what a grid of blocks makes of an SM.
#include <algorithm>

#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {

MicrokernelRun describe_stream_period(const ProbePoint&, const Gpu&) {
  MicrokernelRun run;
  run.launches.push_back(code_launch(CodeKernel::empty, 1.0, 32, 16, 0.0));
  run.shows = MicrokernelRun::Shows::microseconds;
  run.launched = MicrokernelRun::Launched::in_stream;
  return run;
}

MicrokernelRun describe_graph_period(const ProbePoint& point, const Gpu&) {
  MicrokernelRun run;
  run.launches.push_back(code_launch(CodeKernel::empty, point["blocks"], 128, 16, 0.0));
  run.shows = MicrokernelRun::Shows::microseconds;
  return run;
}

MicrokernelRun describe_wave_staircase(const ProbePoint& point, const Gpu&) {
  constexpr double kFmas = 4096.0, kChains = 4.0;
  constexpr int kThreads = 512;
  const double blocks = point["blocks"];
  KernelLaunch launch = code_launch(CodeKernel::arithmetic, blocks, kThreads, 20, kFmas);
  launch.shared_bytes_per_block = static_cast<std::int64_t>(point["shared_bytes"]);
  launch.pipe = Pipe::fp32;
  launch.flops = 2.0 * kFmas * kChains * kThreads * blocks;
  writes(launch, 4.0 * blocks);
  MicrokernelRun run;
  run.shows = MicrokernelRun::Shows::microseconds;
  run.launches.push_back(std::move(launch));
  return run;
}

MicrokernelRun describe_occupancy(const ProbePoint& point, const Gpu& gpu) {
  const double warps = point["warps"], bytes = point["bytes"];
  const int blocks_per_sm = warps > 32.0 ? 2 : 1, threads = static_cast<int>(32.0 * warps) / blocks_per_sm;
  // Eight loads do not fit in the registers nvcc gives the loop: they fly in two groups of four.
  const double loads = std::min(4.0, point["loads"]);
  const CodeKernel kernel = loads < 2.0   ? CodeKernel::sweep_1
                            : loads < 3.0 ? CodeKernel::sweep_2
                            : loads < 4.0 ? CodeKernel::sweep_3
                                          : CodeKernel::sweep_4;
  const double blocks = double(gpu.sm.count) * blocks_per_sm;
  KernelLaunch launch = code_launch(kernel, blocks, threads, 32, bytes / (16.0 * loads * threads * blocks));
  reads(launch, bytes);
  MicrokernelRun run;
  run.footprint = run.amount = bytes;
  run.launches.push_back(std::move(launch));
  return run;
}

}  // namespace ridgeline
