#include "sim/timing/analytic_engine.h"

#include <algorithm>
#include <vector>

#include "sim/timing/clock_law.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/laws.h"
#include "sim/timing/likely_time.h"
#include "sim/timing/math_rate.h"

namespace ridgeline {

namespace {

/// Seconds of the launch's FLOPs on all pipes of its kind that the chip has, at their highest clock.
double least_of_arithmetic(const KernelLaunch& launch, const Gpu& gpu) {
  const Pipe fastest = launch.on_tensor_cores() ? Pipe::tensor_wgmma : launch.pipe;
  double rate = math_rate(fastest, launch.type, gpu).multiply_adds;
  if (const auto* product = std::get_if<GemmWork>(&launch.work); product && product->sparse != SparseOperand::none)
    rate *= gpu.sm.rates.sparsity_factor;
  return rate > 0.0 ? launch.flops_in_type() / (2.0 * rate * gpu.sm.count * own_clock(gpu, fastest).value()) : 0.0;
}

KernelTime time_alone(const KernelLaunch& launch, const Gpu& gpu_, Residency residency) {
  struct Dispatch {
    const KernelLaunch& launch;
    const Gpu& gpu;
    Residency residency;
    KernelTime operator()(const GemmWork& work) const {
      return work.gathering.role != Gathering::Role::none ? convolution_time(launch, work, gpu, residency)
                                                          : gemm_time(launch, work, gpu, residency);
    }
    KernelTime operator()(const AttentionWork& work) const { return attention_time(launch, work, gpu, residency); }
    KernelTime operator()(const MemoryBoundWork& work) const {
      return limited(is_code_kernel(work) ? code_time(launch, work, gpu, residency)
                                          : memory_bound_time(launch, work, gpu, residency));
    }
    KernelTime operator()(const FixedWork& work) const { return limited(fixed_time(launch, work, gpu, residency)); }
    [[nodiscard]] KernelTime limited(KernelTime kernel) const {
      limit_power(kernel, launch, gpu);
      return kernel;
    }
  };
  KernelTime time = std::visit(Dispatch{launch, gpu_, residency}, launch.work);
  if (launch.choice) {
    // What runs beside it keeps its time, whatever kernel is faster; the launch itself needs a start and its
    // arithmetic.
    const double least = std::max(gpu_.launch.kernel_fixed.value(), least_of_arithmetic(launch, gpu_));
    time.stretch(std::max(least, launch.choice->seconds(launch, gpu_, residency)) / time.time.value());
    // The traffic is that of the kernel shown; the one that is faster has no more than the DRAM moves meanwhile.
    const double most = gpu_.dram.bandwidth.value() * time.time.value(),
                 moved = time.dram_read_bytes + time.dram_write_bytes;
    if (moved > most) {
      time.dram_read_bytes *= most / moved;
      time.dram_write_bytes *= most / moved;
    }
  }
  if (const auto* const product = std::get_if<GemmWork>(&launch.work); product && product->product_time != 1.0) {
    // Another library's kernel takes so many times as long at full clock; the work, and so its energy, is the same.
    time.time = (time.time - time.held) * product->product_time;
    time.clocked = time.clocked * product->product_time;
    limit_power(time, launch, gpu_);
  }
  return time;
}

}  // namespace

KernelTime AnalyticEngine::time(const KernelLaunch& launch, Residency residency) const {
  KernelTime own = time_alone(launch, gpu_, residency);
  if (!launch.others) return own;
  static thread_local std::vector<double> others;
  others.clear();
  for (const OtherForm& other : *launch.others) {
    const bool alike = other.launch.writes.size() == launch.writes.size();
    const Residency of_other = alike ? residency : residency.first(std::min(residency.size(), launch.reads.size()));
    others.push_back(time_alone(other.launch, gpu_, of_other).time.value());
  }
  // What is launched beside this form keeps its time; this form itself takes what its arithmetic and its bytes need.
  const double least = std::max({gpu_.launch.kernel_fixed.value(), own.math_utilization * own.time.value(),
                                 (own.dram_read_bytes + own.dram_write_bytes) / gpu_.dram.bandwidth.value()});
  const double seconds = std::max(seconds_of_forms(launch, own.time.value(), others), least);
  if (seconds != own.time.value()) own.stretch(seconds / own.time.value());
  return own;
}

}  // namespace ridgeline
