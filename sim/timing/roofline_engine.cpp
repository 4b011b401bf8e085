#include "sim/timing/roofline_engine.h"

#include <algorithm>

namespace ridgeline {
namespace {

/// Dense multiply-adds a clock an SM of the pipe a kernel computes on; the CUDA cores where a GPU lacks the tensor
/// type.
double rate_of(const MathRates& rates, Pipe pipe, DType type) {
  if (pipe == Pipe::tensor_wgmma || pipe == Pipe::tensor_mma) {
    double rate = 0.0;
    switch (type) {
      case DType::fp16: rate = rates.tensor_fp16; break;
      case DType::bf16: rate = rates.tensor_bf16; break;
      case DType::fp32:
      case DType::tf32: rate = rates.tensor_tf32; break;
      default: break;
    }
    if (rate > 0.0) return rate;
  }
  return rates.fp32;
}

}  // namespace

KernelTime RooflineEngine::time(const KernelLaunch& launch, Residency /*residency*/) const {
  KernelTime result;
  const double peak = gpu_.peak(rate_of(gpu_.sm.rates, launch.pipe, launch.type)).value();
  const double compute = peak > 0.0 ? launch.flops / peak : 0.0;
  result.dram_read_bytes = launch.read_bytes();
  result.dram_write_bytes = launch.written_bytes();
  const double memory = (result.dram_read_bytes + result.dram_write_bytes) / gpu_.dram.bandwidth.value();
  result.time = Seconds{std::max(compute, memory)};
  result.limiter = compute > memory ? Limiter::compute : Limiter::dram;
  result.l2_bytes = result.dram_read_bytes + result.dram_write_bytes;
  result.math_utilization = result.time.value() > 0.0 ? compute / result.time.value() : 0.0;
  return result;
}

}  // namespace ridgeline
