#include "sim/scenario/carried_time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {
namespace {

struct DriverName {
  std::string_view words;  ///< all of them stand in the driver's name, in lower case
  std::string_view hardware;
  std::int64_t gib;
};

/// More particular names first.
constexpr std::array<DriverName, 25> kDriverNames{{{"h200", "nvidia-h200-sxm-141gb", 141},
                                                   {"gh200", "nvidia-gh200-96gb", 96},
                                                   {"h100 pcie", "nvidia-h100-pcie-80gb", 80},
                                                   {"h100 nvl", "nvidia-h100-pcie-80gb", 94},
                                                   {"h100", "nvidia-h100-sxm5-80gb", 80},
                                                   {"h800", "nvidia-h100-sxm5-80gb", 80},
                                                   {"b200", "nvidia-b200", 180},
                                                   {"a100 pcie 80gb", "nvidia-a100-pcie-80gb", 80},
                                                   {"a100 80gb pcie", "nvidia-a100-pcie-80gb", 80},
                                                   {"a100 pcie", "nvidia-a100-pcie-40gb", 40},
                                                   {"a100 80gb", "nvidia-a100-sxm4-80gb", 80},
                                                   {"a100", "nvidia-a100-sxm4-40gb", 40},
                                                   {"a100", "nvidia-a100-sxm4-80gb", 80},
                                                   {"a800", "nvidia-a100-sxm4-80gb", 80},
                                                   {"a10g", "nvidia-a10g", 24},
                                                   {"a40", "nvidia-a40", 48},
                                                   {"a6000", "nvidia-rtx-a6000", 48},
                                                   {"l40s", "nvidia-l40s", 48},
                                                   {"l4", "nvidia-l4", 24},
                                                   {"4090", "nvidia-rtx-4090", 24},
                                                   {"3090", "nvidia-rtx-3090", 24},
                                                   {"t4", "nvidia-t4", 16},
                                                   {"v100 pcie", "nvidia-v100-pcie-32gb", 32},
                                                   {"v100", "nvidia-v100-sxm2-16gb", 16},
                                                   {"v100", "nvidia-v100-sxm2-32gb", 32}}};

/// Lower-case words of a driver's name: letters and digits, whatever stands between them.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty()) words.emplace_back();
  }
  return words;
}

bool contains_all(const std::vector<std::string>& name, std::string_view wanted) {
  for (const std::string& word : words_of(wanted)) {
    if (word.empty()) continue;
    if (std::find(name.begin(), name.end(), word) == name.end()) return false;
  }
  return true;
}

bool has(const std::string& name, std::string_view part) { return name.find(part) != std::string::npos; }

bool multiplies_matrices(const std::string& name) {
  for (const std::string_view part : {"gemm", "cutlass", "nvjet", "xmma", "implicit_convolve", "winograd", "wgrad",
                                      "dgrad", "fprop", "flash", "fmha", "s884", "s1688", "s16816"})
    if (has(name, part)) return true;
  return false;
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

std::string hardware_of_driver_name(std::string_view name, std::int64_t memory) {
  const std::vector<std::string> words = words_of(name);
  const DriverName* best = nullptr;
  for (const DriverName& known : kDriverNames) {
    if (!contains_all(words, known.words)) continue;
    if (best == nullptr) best = &known;
    if (known.words != best->words || memory <= 0) continue;
    // "A100-SXM4-80GB" is said in the name, others by their memory alone.
    const auto away = [&](const DriverName& d) { return std::llabs(d.gib * (std::int64_t{1} << 30) - memory); };
    if (away(known) < away(*best)) best = &known;
  }
  if (best == nullptr) return "";
  if (memory <= 0)  // the memory may stand in the name: "A100-SXM4-80GB", "V100-SXM2-32GB"
    for (const DriverName& known : kDriverNames)
      if (known.words == best->words && contains_all(words, std::to_string(known.gib) + "GB")) best = &known;
  return std::string(best->hardware);
}

double carried_seconds(const std::vector<trace::MeasuredKernel>& kernels, const Gpu& recorded, const Gpu& target) {
  double total = 0;
  for (const trace::MeasuredKernel& kernel : kernels) {
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

}  // namespace ridgeline
