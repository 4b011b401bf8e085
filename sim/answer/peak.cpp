#include "sim/answer/peak.h"

#include <algorithm>
#include <variant>

#include "sim/timing/clock_law.h"
#include "sim/timing/roofline_engine.h"

namespace ridgeline {

FlopsPerSecond peak_of_precision(Precision precision, const Gpu& gpu) {
  const MathRates& r = gpu.sm.rates;
  double tensor = 0;
  switch (precision) {
    case Precision::fp32: break;
    case Precision::tf32: tensor = r.tensor_tf32; break;
    case Precision::apex_o2:
    case Precision::amp_fp16: tensor = r.tensor_fp16; break;
    case Precision::amp_bf16:
    case Precision::bf16: tensor = r.tensor_bf16; break;
  }
  return tensor > 0 ? gpu.tensor_peak(tensor) : gpu.peak(r.fp32);
}

FlopsPerSecond peak_of_step(const StepProgram& program, Precision precision, const Gpu& gpu) {
  Gpu busy = gpu;
  busy.clock.boost = std::max(gpu.clock.boost, kernel_clock(gpu, Pipe::fp32, 1.0));
  busy.clock.boost_tensor = std::max(gpu.clock.boost_tensor, kernel_clock(gpu, Pipe::tensor_mma, 1.0));
  FlopsPerSecond peak = peak_of_precision(precision, busy);
  for (const KernelLaunch& launch : program.launches)
    if (std::holds_alternative<GemmWork>(launch.work) || std::holds_alternative<AttentionWork>(launch.work))
      peak = std::max(peak, datasheet_peak(launch, busy));
  return peak;
}

}  // namespace ridgeline
