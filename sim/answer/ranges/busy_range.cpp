#include "sim/answer/ranges/busy_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "sim/answer/kernel_class.h"

namespace ridgeline {
namespace {

/// Share of the variance of a kernel's error that all kernels of its family have in common: shapes of one step lie
/// close together, where one law errs one way. Chosen so that nine of ten of the 52 eager steps measured on an H200 lie
/// inside.
constexpr double kSharedError = 0.6;

/// Why a step of kernels that were not measured, or of a chip that was not, has the range it has.
std::string why_not_validated(const ChipRanges& ranges) {
  if (ranges.nearest() == nullptr) return "nothing was measured: the range is a guess";
  if (ranges.distance() == 0.0)
    return "no kernels of this kind and size were measured on this GPU: the range is that of others of its kernels, or "
           "of other GPUs";
  return fmt::format(
      "no GPU with these numbers was measured; nearest is {}, at a distance of {:.2f} (one number doubled is 0.69): "
      "the "
      "range is wider for it",
      ranges.nearest()->name, ranges.distance());
}

/// Ranges of a step's kernels: those of one family and size are worked out once.
class KnownRanges {
 public:
  KnownRanges(const ChipRanges& ranges, std::string_view engine) : ranges_(ranges), engine_(engine) {}
  /// `time` is at least kShortestKernel.
  Range of(const Op& op, std::string_view family, Seconds time) {
    const std::string_view size = size_bucket(time);
    auto known = std::find_if(known_.begin(), known_.end(),
                              [&](const Known& one) { return one.family == family && one.size == size; });
    if (known == known_.end()) known = known_.insert(known, {family, size, ranges_.of_family(family, time, engine_)});
    return ChipRanges::of_op(op, known->range);
  }

 private:
  struct Known {
    std::string_view family, size;
    Range range;
  };
  const ChipRanges& ranges_;
  std::string_view engine_;
  std::vector<Known> known_;
};

}  // namespace

const ResidualRanges& residual_ranges() {
  static const ResidualRanges ranges = ResidualRanges::load();
  return ranges;
}

BusyRange busy_range(std::span<const LaunchedKernel> kernels, std::span<const KernelTime> times, const Gpu& gpu,
                     std::string_view engine) {
  return busy_range(kernels, times, ChipRanges(residual_ranges(), gpu), engine);
}

namespace {

/// Adds up a step's kernels operation by operation.
class BusySum {
 public:
  BusySum(const ChipRanges& ranges, std::string_view engine) : ranges_(ranges), known_(ranges, engine) {}

  /// A kernel of operation `op`, called `index`, that runs `runs` times.
  void add(const Op& op, std::uint32_t index, Seconds time, double runs) {
    if (std::holds_alternative<Collective>(op)) return;  // has a range of its own
    const double t = time.value() * runs;
    const Seconds least = std::max(time, kShortestKernel);
    Part& part = part_of(index);
    if (part.least == 0) {
      part.family = family_of(op);
      const Range range = known_.of(op, part.family, least);
      part.low = range.low;
      part.high = range.high;
      if (!range.validated) part.low = -range.low;  // remembered by its sign until the sums are done
    }
    part.time += t;
    part.least += least.value() * runs;
    total_ += t;
  }

  [[nodiscard]] BusyRange range() {
    double below = 0, above = 0, unvalidated = 0;
    std::map<std::string_view, Part> families;
    for (auto& [op, part] : parts_) {
      if (part.low < 0) {
        unvalidated += part.time;
        part.low = -part.low;
      }
      const double short_by = std::max(0.0, part.time - part.least * part.low),
                   over_by = std::max(0.0, part.least * part.high - part.time);
      below += (1.0 - kSharedError) * short_by * short_by;
      above += (1.0 - kSharedError) * over_by * over_by;
      Part& family = families[part.family];
      family.low += short_by;
      family.high += over_by;
    }
    for (const auto& [name, family] : families) {
      below += kSharedError * family.low * family.low;
      above += kSharedError * family.high * family.high;
    }
    if (total_ <= 0) return {};
    const bool validated = ranges_.distance() == 0.0 && unvalidated < 0.2 * total_;
    return {std::max(0.05, 1.0 - std::sqrt(below) / total_), 1.0 + std::sqrt(above) / total_, validated,
            validated ? "" : why_not_validated(ranges_)};
  }

 private:
  struct Part {
    double time = 0, low = 0, high = 0;
    double least = 0;  ///< `time` where no kernel takes less than the shortest; low and high are factors on it
    std::string_view family;
  };
  Part& part_of(std::uint32_t index) {
    if (index == Action::kNoCall) return parts_[index];
    if (index >= places_.size()) places_.resize(index + 1, nullptr);
    if (places_[index] == nullptr) places_[index] = &parts_[index];
    return *places_[index];
  }

  const ChipRanges& ranges_;
  KnownRanges known_;
  std::unordered_map<std::uint32_t, Part> parts_;
  std::vector<Part*> places_;  ///< of an operation in `parts_`
  double total_ = 0;
};

}  // namespace

BusyRange busy_range(std::span<const LaunchedKernel> kernels, std::span<const KernelTime> times,
                     const ChipRanges& ranges, std::string_view engine) {
  BusySum sum(ranges, engine);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    sum.add(*kernels[i].op, kernels[i].op_index, times[i].time, kernels[i].times);
  return sum.range();
}

BusyRange busy_range(const LaunchedOps& launched, const OpTrace& trace, const StepTimes& times,
                     const ChipRanges& ranges, std::string_view engine) {
  static const Op kNone = UnknownOp{};
  BusySum sum(ranges, engine);
  for (std::size_t i = 0; i < launched.ops.size(); ++i) {
    const std::uint32_t op = launched.ops[i];
    sum.add(op == Action::kNoCall ? kNone : trace.ops[op], op, times[i].time,
            static_cast<double>(launched.repeat.times_of(i)));
  }
  return sum.range();
}

}  // namespace ridgeline
