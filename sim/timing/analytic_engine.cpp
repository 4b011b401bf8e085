#include "sim/timing/analytic_engine.h"

#include "sim/timing/clock_law.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/laws.h"

namespace ridgeline {

KernelTime AnalyticEngine::time(const KernelLaunch& launch, Residency residency) const {
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

}  // namespace ridgeline
