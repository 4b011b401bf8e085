// hw/probe/async_copy.cu and host_copies.cu, and the memsets of launch_period.cu: bytes on their way to where they are
// used.
#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

KernelLaunch moved_by(FixedWork::What what, double bytes) {
  KernelLaunch launch;
  launch.name = what == FixedWork::What::memset ? "memset" : "memcpy";
  launch.work = FixedWork{what, bytes, 1.0};
  return launch;
}

}  // namespace

MicrokernelRun describe_async_copy(const ProbePoint& point, const Gpu& gpu) {
  constexpr double kStage = 16384.0;
  const double stages = point["stages"], bytes = point["bytes"];
  const bool registers = point["way"] == 0.0;
  KernelLaunch launch = code_launch(registers ? CodeKernel::copy_registers : CodeKernel::copy_ahead, gpu.sm.count, 128,
                                    64, bytes / kStage / gpu.sm.count);
  launch.shared_bytes_per_block = static_cast<std::int64_t>(stages * kStage);
  // Of the stages one is being used; the others are on their way. (Plain loads are waited for before the next begin.)
  if (!registers) std::get<MemoryBoundWork>(launch.work).elements = stages - 1.0;
  reads(launch, bytes);
  MicrokernelRun run;
  run.footprint = run.amount = bytes;
  run.launches.push_back(std::move(launch));
  return run;
}

bool pinned(const ProbePoint& point, const Gpu&) { return point["pinned"] == 1.0; }

MicrokernelRun describe_host_copy(const ProbePoint& point, const Gpu&) {
  MicrokernelRun run;
  run.amount = point["bytes"];
  run.launches.push_back(moved_by(
      point["to_device"] == 1.0 ? FixedWork::What::memcpy_host_to_device : FixedWork::What::memcpy_device_to_host,
      point["bytes"]));
  run.launched = MicrokernelRun::Launched::alone;
  return run;
}

MicrokernelRun describe_memset_period(const ProbePoint& point, const Gpu&) {
  MicrokernelRun run;
  run.launches.push_back(moved_by(FixedWork::What::memset, point["bytes"]));
  run.shows = MicrokernelRun::Shows::microseconds;
  return run;
}

}  // namespace ridgeline
