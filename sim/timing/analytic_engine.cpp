#include "sim/timing/analytic_engine.h"

#include <algorithm>

#include "sim/timing/clock_law.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/laws.h"

namespace ridgeline {

namespace {

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
    KernelTime operator()(const StreamWork& work) const {
      return limited(is_code_kernel(work) ? code_time(launch, work, gpu, residency)
                                          : stream_time(launch, work, gpu, residency));
    }
    KernelTime operator()(const FixedWork& work) const { return limited(fixed_time(launch, work, gpu, residency)); }
    [[nodiscard]] KernelTime limited(KernelTime kernel) const {
      limit_power(kernel, launch, gpu);
      return kernel;
    }
  };
  return std::visit(Dispatch{launch, gpu_, residency}, launch.work);
}

}  // namespace

KernelTime AnalyticEngine::time(const KernelLaunch& launch, Residency residency) const {
  KernelTime own = time_alone(launch, gpu_, residency);
  if (!launch.others) return own;
  double least = own.time.value();
  for (const OtherForm& other : *launch.others) {
    const bool alike = other.launch.writes.size() == launch.writes.size();
    const Residency of_other = alike ? residency : residency.first(std::min(residency.size(), launch.reads.size()));
    least = std::min(least, time_alone(other.launch, gpu_, of_other).time.value() + other.around - launch.around);
  }
  if (least < own.time.value()) own.stretch(std::max(least, gpu_.launch.kernel_fixed.value()) / own.time.value());
  return own;
}

}  // namespace ridgeline
