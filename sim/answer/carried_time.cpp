#include "sim/answer/carried_time.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"
#include "sim/workload/kernel_family.h"

namespace ridgeline {
namespace {

bool has(const std::string& name, std::string_view part) { return name.find(part) != std::string::npos; }

bool multiplies_matrices(const std::string& name) {
  const KernelFamily family = family_of_kernel(name);
  return family == KernelFamily::gemm || family == KernelFamily::convolution || family == KernelFamily::attention;
}

bool crosses_host_link(const std::string& name) {
  return name.starts_with("Memcpy HtoD") || name.starts_with("Memcpy DtoH");
}

double peak_for(const std::string& name, const Gpu& gpu) {
  const MathRates& r = gpu.sm.rates;
  double tensor = 0;
  if (has(name, "bf16") || has(name, "BFloat16") || has(name, "bfloat16")) tensor = r.tensor_bf16;
  else if (has(name, "s884") || has(name, "h884") || has(name, "fp16") || has(name, "f16") || has(name, "half") ||
           has(name, "Half") || has(name, "s16816") || has(name, "h16816") || has(name, "s161616") ||
           has(name, "flash") || has(name, "fmha") || has(name, "h1688") || has(name, "s1688cudnn_fp16"))
    tensor = r.tensor_fp16;
  else if (has(name, "tf32") || has(name, "s1688")) tensor = r.tensor_tf32;
  // A type that the tensor cores of a GPU lack runs on its fp16 ones at half the speed, or on the plain pipes.
  return tensor > 0 ? gpu.tensor_peak(tensor).value() : gpu.peak(r.fp32).value();
}

double bandwidth_of(const Gpu& gpu) { return gpu.dram.bandwidth.value() * gpu.dram.read_efficiency; }

/// Times of operations without a rule, of ascending sizes.
class SizesByTime {
 public:
  SizesByTime(const Gpu& gpu, const Software& software, const std::string& engine_name)
      : gpu_(std::make_unique<Gpu>(gpu)) {
    // The law's own answer for each size; a simulation would ask for hours here.
    const auto engine = make_engine(engine_name == "roofline" ? "roofline" : "analytic", *gpu_);
    const Lowering lowering(*gpu_, software);
    for (double bytes = 64.0; bytes < 1e14; bytes *= 1.25) {
      const auto half = static_cast<std::int64_t>(bytes / 2);
      const LoweredOp lowered = lowering.lower(UnknownOp{"", half, half});
      double seconds = 0;
      for (const KernelLaunch& launch : lowered.launches) seconds += engine->time(launch, {}).time.value();
      if (!seconds_.empty() && seconds <= seconds_.back()) continue;
      seconds_.push_back(seconds);
      bytes_.push_back(2.0 * static_cast<double>(half));
    }
  }
  [[nodiscard]] std::int64_t bytes_taking(double seconds) const {
    const auto above = std::upper_bound(seconds_.begin(), seconds_.end(), seconds);
    if (above == seconds_.begin()) return 1;
    if (above == seconds_.end()) return static_cast<std::int64_t>(bytes_.back());
    const auto i = static_cast<std::size_t>(above - seconds_.begin());
    const double share = (seconds - seconds_[i - 1]) / (seconds_[i] - seconds_[i - 1]);
    return std::llround(bytes_[i - 1] + share * (bytes_[i] - bytes_[i - 1]));
  }

 private:
  std::unique_ptr<Gpu> gpu_;  // the engine keeps a reference
  std::vector<double> seconds_, bytes_;
};

}  // namespace

double carried_seconds(const std::vector<trace::MeasuredKernel>& kernels, const Gpu& recorded, const Gpu& target) {
  double total = 0;
  for (const trace::MeasuredKernel& kernel : kernels) {
    // A collective goes with the links between GPUs, which the recording does not tell.
    if (is_collective_kernel(kernel.name)) {
      total += kernel.seconds;
      continue;
    }
    if (crosses_host_link(kernel.name)) {
      const double here = target.host_link.bandwidth.value(), there = recorded.host_link.bandwidth.value();
      total += kernel.seconds * (here > 0.0 && there > 0.0 ? there / here : 1.0);
      continue;
    }
    const double ratio = multiplies_matrices(kernel.name)
                             ? peak_for(kernel.name, recorded) / peak_for(kernel.name, target)
                             : bandwidth_of(recorded) / bandwidth_of(target);
    const double fixed = std::min(kernel.seconds, recorded.launch.kernel_fixed.value());
    const double fixed_there = fixed * target.launch.kernel_fixed.value() / recorded.launch.kernel_fixed.value();
    total += fixed_there + (kernel.seconds - fixed) * ratio;
  }
  return total;
}

std::function<std::int64_t(const std::vector<trace::MeasuredKernel>&)> carried_bytes(const Gpu& recorded,
                                                                                     const Gpu& target,
                                                                                     const Software& software,
                                                                                     const std::string& engine) {
  const auto sizes = std::make_shared<const SizesByTime>(target, software, engine);
  return [sizes, recorded, target](const std::vector<trace::MeasuredKernel>& kernels) {
    return sizes->bytes_taking(carried_seconds(kernels, recorded, target));
  };
}

std::function<std::int64_t(const std::vector<trace::MeasuredKernel>&)> link_bytes(const Gpu& recorded) {
  if (recorded.host_link.bandwidth.value() <= 0.0) return {};
  KernelLaunch empty;
  empty.work = FixedWork{FixedWork::What::memcpy_host_to_device, 0.0, 1.0};
  const double start = make_engine("analytic", recorded)->time(empty, {}).time.value();
  return [rate = recorded.host_link.bandwidth.value(), start](const std::vector<trace::MeasuredKernel>& kernels) {
    double moving = 0.0;
    for (const trace::MeasuredKernel& kernel : kernels) moving += std::max(0.0, kernel.seconds - start);
    return std::llround(moving * rate);
  };
}

}  // namespace ridgeline
