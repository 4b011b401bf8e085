// hw/probe/l2_residency.cu: an array read again and again, or written and read; four 16-byte accesses a thread.
#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

constexpr double kBlockBytes = 16384.0;

KernelLaunch reader(double bytes) {
  KernelLaunch launch = code_launch(CodeKernel::reread, bytes / kBlockBytes, 256, 24, 1.0);
  reads(launch, bytes);
  return launch;
}

}  // namespace

MicrokernelRun describe_reread_clean(const ProbePoint& point, const Gpu&) {
  MicrokernelRun run;
  run.footprint = run.amount = point["bytes"];
  run.in_order = true;
  run.launches.push_back(reader(point["bytes"]));
  return run;
}

MicrokernelRun describe_reread_dirty(const ProbePoint& point, const Gpu&) {
  MicrokernelRun run;
  const double bytes = point["bytes"];
  run.footprint = bytes;
  run.amount = 2.0 * bytes;
  KernelLaunch writer = code_launch(CodeKernel::rewrite, bytes / kBlockBytes, 256, 16, 1.0);
  writes(writer, bytes);
  run.launches.push_back(std::move(writer));
  run.launches.push_back(reader(bytes));
  return run;
}

}  // namespace ridgeline
