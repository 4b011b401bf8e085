#include "sim/timing/roofline_engine.h"

#include <algorithm>

namespace ridgeline {
namespace {

/// Dense multiply-adds a clock an SM of the tensor cores that a kernel computes on; 0 where it runs on the CUDA cores,
/// or a GPU lacks the type.
double tensor_rate(const MathRates& rates, Pipe pipe, DType type) {
  if (pipe != Pipe::tensor_wgmma && pipe != Pipe::tensor_mma) return 0.0;
  switch (type) {
    case DType::fp16: return rates.tensor_fp16;
    case DType::bf16: return rates.tensor_bf16;
    case DType::fp32:
    case DType::tf32: return rates.tensor_tf32;
    default: return 0.0;
  }
}

}  // namespace

FlopsPerSecond datasheet_peak(const KernelLaunch& launch, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  double rate = tensor_rate(rates, launch.pipe, launch.type);
  if (rate <= 0.0) return gpu.peak(rates.fp32);
  if (const auto* product = std::get_if<GemmWork>(&launch.work); product && product->sparse != SparseOperand::none)
    rate *= rates.sparsity_factor;
  // Attention in fp32 makes three products of TF32 of each.
  if (const auto* attention = std::get_if<AttentionWork>(&launch.work); attention && attention->type == DType::fp32)
    rate /= 3.0;
  return gpu.tensor_peak(rate);
}

KernelTime RooflineEngine::time(const KernelLaunch& launch, Residency /*residency*/) const {
  KernelTime result;
  const double peak = datasheet_peak(launch, gpu_).value();
  const double compute = peak > 0.0 ? launch.flops_in_type() / peak : 0.0;
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
