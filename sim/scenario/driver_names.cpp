#include "sim/scenario/driver_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

struct DriverName {
  std::string_view words;  ///< all of them stand in the driver's name, in lower case
  std::string_view hardware;
  std::int64_t gib;
};

/// More particular names first.
constexpr std::array<DriverName, 28> kDriverNames{{{"h200", "nvidia-h200-sxm-141gb", 141},
                                                   {"gh200", "nvidia-gh200-96gb", 96},
                                                   {"h100 pcie", "nvidia-h100-pcie-80gb", 80},
                                                   {"h100", "nvidia-h100-sxm5-80gb", 80},
                                                   {"h800", "nvidia-h100-sxm5-80gb", 80},
                                                   {"gb200", "nvidia-gb200", 186},
                                                   {"b200", "nvidia-b200", 180},
                                                   {"b300", "nvidia-b300", 288},
                                                   {"h20 3e", "nvidia-h20-3e", 141},
                                                   {"h20", "nvidia-h20-3e", 141},
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

/// Words by which a driver's name is that of another chip than the one that has the rest of them.
bool names_other_chip(const std::vector<std::string>& name) {
  constexpr std::array<std::string_view, 8> kOthers{"ti", "d", "super", "nvl", "laptop", "max", "mobile", "mig"};
  return std::any_of(name.begin(), name.end(), [&](const std::string& word) {
    return std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
  });
}

double memory_ratio(const Gpu& gpu, std::int64_t memory) {
  return static_cast<double>(memory) / std::max(1.0, gpu.dram.capacity.value());
}

}  // namespace

std::string hardware_of_driver_name(std::string_view name, std::int64_t memory) {
  const std::vector<std::string> words = words_of(name);
  if (names_other_chip(words)) return "";
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

std::string hardware_of_recorded_gpu(const trace::RecordedGpu& recorded) {
  constexpr double kSameMemory = 0.1;  // drivers keep up to this of it for themselves
  if (recorded.name.empty()) return "";
  std::string named = hardware_of_driver_name(recorded.name, recorded.memory);
  if (named.empty() || recorded.sms <= 0) return named;
  const Gpu gpu = load_gpu(named);
  const bool same_memory = recorded.memory <= 0 || std::abs(memory_ratio(gpu, recorded.memory) - 1.0) < kSameMemory;
  const bool same_capability =
      recorded.capability <= 0 || recorded.capability == 10 * gpu.compute_major + gpu.compute_minor;
  return recorded.sms == gpu.sm.count && same_memory && same_capability ? named : "";
}

std::string nearest_hardware(const trace::RecordedGpu& recorded) {
  constexpr double kOtherCapability = 2.0, kOtherGeneration = 4.0;
  if (recorded.sms <= 0 || recorded.memory <= 0 || recorded.hip) return "";
  std::string nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    double distance = std::abs(std::log(static_cast<double>(recorded.sms) / std::max(1, gpu.sm.count))) +
                      std::abs(std::log(memory_ratio(gpu, recorded.memory)));
    if (recorded.capability > 0 && recorded.capability / 10 != gpu.compute_major) distance += kOtherGeneration;
    else if (recorded.capability > 0 && recorded.capability % 10 != gpu.compute_minor) distance += kOtherCapability;
    if (distance < least) least = distance, nearest = name;
  }
  return nearest;
}

}  // namespace ridgeline
