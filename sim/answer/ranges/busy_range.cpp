#include "sim/answer/ranges/busy_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

namespace ridgeline {
namespace {

/// Share of the variance of a kernel's error that all kernels of its family have in common: shapes of one step lie
/// close together, where one law errs one way. Chosen so that nine of ten of the 52 eager steps measured on an H200 lie
/// inside.
constexpr double kSharedError = 0.6;

/// Assumed share by which a kernel takes longer or shorter when the same board runs it again.
constexpr double kRunAgain = 0.05;

/// "nvidia-rtx-3090" as "RTX 3090".
std::string chip_words(std::string name) {
  if (name.starts_with("nvidia-")) name.erase(0, 7);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? ' ' : static_cast<char>(std::toupper(c)); });
  return name;
}

/// How steps on the GPU of that name are met; "" where none was measured.
std::string steps_met(const ChipRanges& ranges) {
  const auto steps = ranges.table().steps_on(ranges.gpu().name);
  if (!steps) return "";
  return fmt::format("published steps on it are predicted within {:.0f} % (median of {})", std::max(1.0, steps->median),
                     steps->count);
}

/// Why a step on a GPU that was not measured is estimated.
std::string why_of_stranger(const ChipRanges& ranges) {
  if (ranges.nearest() == nullptr) return "nothing was measured: the range is a guess";
  const Gpu& gpu = ranges.gpu();
  if (!ranges.is_shipped())
    return fmt::format("No GPU with these numbers was measured; {} is the nearest. The range is wider.",
                       chip_words(ranges.nearest()->name));
  const std::string met = steps_met(ranges);
  if (met.empty())
    return fmt::format("We did not measure {}. The range is that of GPUs left out.", chip_words(gpu.name));
  return fmt::format("We did not measure {}; {}. The range is wider.", chip_words(gpu.name), met);
}

/// Adds up a step's kernels operation by operation.
class BusySum {
 public:
  BusySum(const ChipRanges& ranges, std::string_view engine, bool recorded_here)
      : ranges_(ranges), engine_(engine), recorded_here_(recorded_here) {}

  void add(const LaunchedKernel& kernel, Seconds time) {
    if (std::holds_alternative<Collective>(*kernel.op)) return;  // has a range of its own
    Part& part = part_of(kernel.op_index);
    if (part.first == nullptr) {
      part.op = kernel.op;
      part.first = kernel.launch;
    }
    if (kernel.launch == part.first) part.runs += kernel.times;
    if (part.longest == nullptr || time > part.longest_time) {
      part.longest = kernel.launch;
      part.longest_time = time;
    }
    part.time += time.value() * kernel.times;
    part.least += std::max(time, kShortestKernel).value() * kernel.times;
    total_ += time.value() * kernel.times;
  }

  [[nodiscard]] BusyRange range() const {
    double below = 0, above = 0, estimated = 0;
    struct Common {
      double below = 0, above = 0;
    };
    std::map<std::string_view, Common> families;
    std::map<std::string, double> reasons;
    for (const auto& [index, part] : parts_) {
      const OperationKind kind = kind_of(*part.op, *part.longest);
      Range range = ranges_.of(kind, std::max(kShortestKernel, Seconds{part.least / part.runs}), engine_);
      if (recorded_here_ && std::holds_alternative<UnknownOp>(*part.op)) {
        range.low = 1.0 - kRunAgain, range.high = 1.0 + kRunAgain;
        range.validated = true;
      }
      if (!range.validated) {
        estimated += part.time;
        reasons[reason_of(range, kind)] += part.time;
      }
      const double short_by = std::max(0.0, part.time - part.least * range.low),
                   over_by = std::max(0.0, part.least * range.high - part.time);
      below += (1.0 - kSharedError) * short_by * short_by;
      above += (1.0 - kSharedError) * over_by * over_by;
      families[kind.family].below += short_by;
      families[kind.family].above += over_by;
    }
    for (const auto& [name, family] : families) {
      below += kSharedError * family.below * family.below;
      above += kSharedError * family.above * family.above;
    }
    if (total_ <= 0) return {};
    BusyRange result{std::max(0.05, 1.0 - std::sqrt(below) / total_), 1.0 + std::sqrt(above) / total_, true, ""};
    result.validated = ranges_.distance() == 0.0 && estimated < kEstimatedShare * total_;
    if (!result.validated) result.why_not = why_not(reasons, estimated / total_);
    return result;
  }

 private:
  struct Part {
    const Op* op = nullptr;
    const KernelLaunch *first = nullptr, *longest = nullptr;
    Seconds longest_time{0};
    double runs = 0, time = 0;
    double least = 0;  ///< `time` where no kernel takes less than the shortest
  };
  Part& part_of(std::uint32_t index) {
    if (index == Action::kNoCall) return parts_[index];
    if (index >= places_.size()) places_.resize(index + 1, nullptr);
    if (places_[index] == nullptr) places_[index] = &parts_[index];
    return *places_[index];
  }
  /// `share` of the time is estimated.
  [[nodiscard]] std::string why_not(const std::map<std::string, double>& reasons, double share) const {
    if (ranges_.distance() > 0.0) return why_of_stranger(ranges_);
    const auto most = std::max_element(reasons.begin(), reasons.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string met = ranges_.is_shipped() ? steps_met(ranges_) : "";
    return fmt::format("{:.0f} % of the kernels' time is estimated, most of it because {}{}", 100.0 * share,
                       most->first, met.empty() ? "" : "; " + met);
  }

  const ChipRanges& ranges_;
  std::string_view engine_;
  bool recorded_here_;
  std::unordered_map<std::uint32_t, Part> parts_;
  std::vector<Part*> places_;  ///< of an operation in `parts_`
  double total_ = 0;
};

template <class Times>
BusyRange range_of(std::span<const LaunchedKernel> kernels, const Times& times, const ChipRanges& ranges,
                   std::string_view engine, bool recorded_here) {
  BusySum sum(ranges, engine, recorded_here);
  for (std::size_t i = 0; i < kernels.size(); ++i) sum.add(kernels[i], times[i].time);
  return sum.range();
}

}  // namespace

const ResidualRanges& residual_ranges() {
  static const ResidualRanges ranges = ResidualRanges::load();
  return ranges;
}

BusyRange busy_range(std::span<const LaunchedKernel> kernels, std::span<const KernelTime> times,
                     const ChipRanges& ranges, std::string_view engine) {
  return range_of(kernels, times, ranges, engine, false);
}

BusyRange busy_range(std::span<const LaunchedKernel> kernels, const StepTimes& times, const ChipRanges& ranges,
                     std::string_view engine, bool recorded_here) {
  return range_of(kernels, times, ranges, engine, recorded_here);
}

}  // namespace ridgeline
