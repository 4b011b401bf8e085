// hw/probe/dram_stream.cu and read_write_mix.cu: a block of 256 threads moves 4 KiB of each array, each thread 16
// bytes.
#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

MicrokernelRun stream(CodeKernel kernel, int registers, int arrays_read, int arrays_written, const ProbePoint& point) {
  const double bytes = point["bytes"];
  KernelLaunch launch = code_launch(kernel, bytes / 4096.0, 256, registers, 1.0);
  for (int i = 0; i < arrays_read; ++i) reads(launch, bytes);
  for (int i = 0; i < arrays_written; ++i) writes(launch, bytes);
  MicrokernelRun run;
  run.footprint = run.amount = (arrays_read + arrays_written) * bytes;
  run.launches.push_back(std::move(launch));
  return run;
}

}  // namespace

MicrokernelRun describe_dram_read(const ProbePoint& point, const Gpu&) {
  return stream(CodeKernel::stream_read, 10, 1, 0, point);
}
MicrokernelRun describe_dram_write(const ProbePoint& point, const Gpu&) {
  return stream(CodeKernel::stream_write, 14, 0, 1, point);
}
MicrokernelRun describe_dram_copy(const ProbePoint& point, const Gpu&) {
  return stream(CodeKernel::stream_copy, 14, 1, 1, point);
}
MicrokernelRun describe_dram_triad(const ProbePoint& point, const Gpu&) {
  return stream(CodeKernel::stream_triad, 18, 2, 1, point);
}

MicrokernelRun describe_read_write_mix(const ProbePoint& point, const Gpu&) {
  // Two reads and a write are a triad; the DRAM decides what more or fewer of them cost.
  const double arrays = point["reads"] + point["writes"], array = point["bytes"] / arrays;
  KernelLaunch launch = code_launch(CodeKernel::stream_triad, array / 4096.0, 256, 24, 1.0);
  for (int i = 0; i < static_cast<int>(point["reads"]); ++i) reads(launch, array);
  for (int i = 0; i < static_cast<int>(point["writes"]); ++i) writes(launch, array);
  MicrokernelRun run;
  run.footprint = run.amount = point["bytes"];
  run.launches.push_back(std::move(launch));
  return run;
}

}  // namespace ridgeline
