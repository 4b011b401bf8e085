// hw/probe/gemm_naive.cu, gemm_shared.cu and gemm_tensor.cu: three rungs of the ladder of matrix products.
#include "sim/study/microkernels/microkernel.h"

namespace ridgeline {
namespace {

/// A product of n x n: blocks of `tile` x `tile` elements of C take `depth` steps of k a pass.
MicrokernelRun product(KernelLaunch launch, double n, double tile, double depth, double element) {
  const double blocks = n * n / (tile * tile);
  launch.flops = 2.0 * n * n * n;
  for (int operand = 0; operand < 2; ++operand) reads(launch, element * n * n, blocks * n * tile * element);
  writes(launch, 4.0 * n * n);
  std::get<MemoryBoundWork>(launch.work).iterations = n / depth;
  MicrokernelRun run;
  run.footprint = (2.0 * element + 4.0) * n * n;
  run.amount = launch.flops;
  run.launches.push_back(std::move(launch));
  return run;
}

}  // namespace

MicrokernelRun describe_gemm_naive(const ProbePoint& point, const Gpu&) {
  const double n = point["n"];
  KernelLaunch launch = code_launch(CodeKernel::gemm_naive, n * n / 256.0, 256, 32, n);
  launch.pipe = Pipe::fp32;
  return product(std::move(launch), n, 16.0, 1.0, 4.0);
}

MicrokernelRun describe_gemm_shared(const ProbePoint& point, const Gpu&) {
  const double n = point["n"];
  KernelLaunch launch = code_launch(CodeKernel::gemm_shared, n * n / 4096.0, 256, 64, n / 16.0);
  launch.pipe = Pipe::fp32;
  launch.shared_bytes_per_block = 8448;
  return product(std::move(launch), n, 64.0, 16.0, 4.0);
}

MicrokernelRun describe_gemm_tensor(const ProbePoint& point, const Gpu&) {
  const double n = point["n"];
  KernelLaunch launch = code_launch(CodeKernel::gemm_tensor, n * n / 16384.0, 256, 124, n / 32.0);
  launch.pipe = Pipe::tensor_mma;
  launch.type = DType::fp16;
  launch.shared_bytes_per_block = 18944;
  return product(std::move(launch), n, 128.0, 32.0, 2.0);
}

}  // namespace ridgeline
