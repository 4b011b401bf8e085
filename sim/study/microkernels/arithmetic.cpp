// hw/probe/math_peak.cu, wgmma_peak.cu, atomics.cu and the loads of sustained_load.cu: operations without memory, and
// additions in the L2.
#include <algorithm>

#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

constexpr int kMathThreads = 256;
constexpr double kMathWarps = kMathThreads / 32.0;

/// The numbers by which the curves tell types: bits, or bits and one more for bf16.
DType type_of(double bits) { return bits == 16.0 ? DType::fp16 : bits == 17.0 ? DType::bf16 : DType::tf32; }

MicrokernelRun run_of(KernelLaunch launch, double amount) {
  MicrokernelRun run;
  run.amount = amount;
  run.launches.push_back(std::move(launch));
  return run;
}

KernelLaunch multiply_adds(const Gpu& gpu, double steps) {
  KernelLaunch launch = code_launch(CodeKernel::multiply_add, 8.0 * gpu.sm.count, kMathThreads, 24, steps);
  launch.pipe = Pipe::fp32;
  launch.flops = 2.0 * 8.0 * kMathThreads * steps * launch.blocks();
  return launch;
}

KernelLaunch products(const Gpu& gpu, double blocks_per_sm, DType type, double steps, double flops) {
  KernelLaunch launch = code_launch(CodeKernel::mma_sync, blocks_per_sm * gpu.sm.count, kMathThreads, 40, steps);
  launch.pipe = Pipe::tensor_mma;
  launch.type = type;
  launch.flops = flops;
  return launch;
}

}  // namespace

MicrokernelRun describe_cuda_cores(const ProbePoint& point, const Gpu& gpu) {
  constexpr double kSteps = 2048.0;
  if (point["type_bits"] == 32.0) return run_of(multiply_adds(gpu, kSteps), point["flops"]);
  return run_of(code_launch(CodeKernel::multiply_add_halves, 8.0 * gpu.sm.count, kMathThreads, 24, kSteps),
                point["flops"]);
}

MicrokernelRun describe_mma_sync(const ProbePoint& point, const Gpu& gpu) {
  const double flops = point["flops"];
  return run_of(products(gpu, 4.0, type_of(point["type_bits"]), 1024.0, flops), flops);
}

MicrokernelRun describe_wgmma(const ProbePoint& point, const Gpu& gpu) {
  KernelLaunch launch = code_launch(CodeKernel::wgmma, gpu.sm.count, kMathThreads, 168, 2048.0);
  launch.pipe = Pipe::tensor_wgmma;
  launch.type = DType::bf16;
  launch.flops = point["flops"];
  return run_of(std::move(launch), point["flops"]);
}

MicrokernelRun describe_sustained_rate(const ProbePoint& point, const Gpu& gpu) {
  constexpr double kSteps = 16384.0, kCopied = 268435456.0;
  const int load = static_cast<int>(point["load"]);
  if (load == 0) {
    KernelLaunch launch = multiply_adds(gpu, kSteps);
    const double flops = launch.flops;
    return run_of(std::move(launch), flops);
  }
  if (load < 3) {  // two products of 16 x 16 x 16 a step are four of 16 x 8 x 16
    const double flops = 2.0 * 4096.0 * 2.0 * kSteps * kMathWarps * 8.0 * gpu.sm.count;
    return run_of(products(gpu, 8.0, DType::fp16, kSteps, flops), flops);
  }
  const double blocks = 8.0 * gpu.sm.count;
  KernelLaunch launch =
      code_launch(CodeKernel::stream_copy, blocks, kMathThreads, 24, kCopied / (16.0 * kMathThreads * blocks));
  reads(launch, kCopied);
  writes(launch, kCopied);
  MicrokernelRun run = run_of(std::move(launch), 2.0 * kCopied);
  run.footprint = 2.0 * kCopied;
  return run;
}

MicrokernelRun describe_atomic_add(const ProbePoint& point, const Gpu& gpu) {
  constexpr double kRounds = 64.0, kWord = 4.0, kLine = 128.0;
  const double addresses = point["addresses"], threads = 8.0 * gpu.sm.count * kMathThreads;
  // Results of an older probe name neither; there, threads in a row shared an address, and addresses lay side by side.
  const auto stated = [&](const char* key, double otherwise) {
    return point.at.contains(key) ? point[key] : otherwise;
  };
  const double apart = stated("bytes_apart", kWord), together = stated("together", threads / addresses);
  KernelLaunch launch = code_launch(CodeKernel::atomic_add, 8.0 * gpu.sm.count, kMathThreads, 16, kRounds);
  std::get<MemoryBoundWork>(launch.work).tail_steps = std::min(32.0, together);
  writes(launch, std::max(kLine, addresses * apart));
  return run_of(std::move(launch), point["operations"]);
}

}  // namespace ridgeline
