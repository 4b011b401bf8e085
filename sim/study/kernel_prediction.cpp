#include "sim/study/kernel_prediction.h"

#include <stdexcept>

#include "sim/hierarchy/make_engine.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/repeated_case.h"
#include "sim/workload/op_operands.h"

namespace ridgeline {

KernelPrediction predict_kernel(const KernelCase& kernel, const Gpu& gpu, const Software& software,
                                const TimingEngine& engine) {
  return predict_kernel(kernel, Lowering(gpu, software), engine);
}

KernelPrediction predict_kernel(const KernelCase& kernel, const Lowering& lowering, const TimingEngine& engine) {
  LoweredOp lowered = lowering.lower(kernel.op);
  KernelPrediction result = time_launches(kernel, std::move(lowered.launches), lowering.gpu(), engine);
  result.approximated = lowered.approximated;
  return result;
}

KernelPrediction time_launches(const KernelCase& kernel, std::vector<KernelLaunch> launches, const Gpu& gpu,
                               const TimingEngine& engine) {
  KernelPrediction result;
  result.launches = std::move(launches);
  std::vector<KernelTime> times = time_repeated(result.launches, rotating_operands(kernel.op), kernel.input_sets,
                                                partly_used_bytes(kernel.op), gpu, engine, kernel.shared_operand);
  double l2_bytes = 0.0, hit_bytes = 0.0;
  for (std::size_t i = 0; i < result.launches.size(); ++i) {
    const KernelTime& time = times[i];
    result.time += time.time;
    result.flops += result.launches[i].flops;
    result.dram_read_bytes += time.dram_read_bytes;
    result.dram_write_bytes += time.dram_write_bytes;
    l2_bytes += time.l2_bytes;
    hit_bytes += time.l2_bytes * time.l2_hit_rate;
    if (time.time > times[result.longest].time) result.longest = i;
  }
  result.times = std::move(times);
  result.l2_hit_rate = l2_bytes > 0.0 ? hit_bytes / l2_bytes : 0.0;
  return result;
}

}  // namespace ridgeline
