// How far off a prediction may be: ranges taken from measured residuals, by chip, kernel family and size.
//
// hw/residuals.json holds, for each measured GPU and each family, the 4.5 % and 95.5 % quantiles of measured /
// predicted (kShortestKernel at least) over cases that no constant was fitted on, the widest of usual shapes, unusual
// ones and published times;
// `ridgeline validate --write-residuals` regenerates it from the committed measurements.
//
// A chip is one that was measured where every number that the family's laws read is that of the measured chip's file:
// numbers decide, never names, so that a file and --set give one answer. Its kernels then have its own quantiles, and
// are validated where their family and size were measured. Any other chip has a range that grows with its distance
// (hardware/chip_distance.h) from what was measured. With w the half-widths of the measured chips in the logarithm and
// d their distances, on either side
//
//   half-width = kWidening d_least + max over chips (w - kFading (d - d_least))
//
// which is the nearest chip's own width and more, and fades from one chip's to the next one's without a step.
// kWidening is what leaving out one GPU after the other asks for: of the kernels of an H100, A100, T4 and V100 (and of
// the H200) 95, 95, 92 and 96 (95) in a hundred lie inside ranges that know nothing of them
// (tests/study/left_out_gpus_test.cpp); 0.03 to 0.06 and a
// kFading of 0.04 to 0.2 move these by 3.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Half-width, in the logarithm of time, that a distance of 1 adds to a range …
inline constexpr double kWidening = 0.04;
/// … and that another measured chip loses its say by for being that much farther away than the nearest.
inline constexpr double kFading = 0.05;

/// No kernel takes less (the shortest measured: 0.7 us). What a law predicts below it, the roofline of operands that
/// the L2 holds above all, has the range of this time.
inline constexpr Seconds kShortestKernel{0.5e-6};

/// Factors on a predicted time: the measurement lies between low·t and high·t nine times in ten. low <= 1 <= high.
struct Range {
  double low = 0.5, high = 2.0;
  bool validated = false;
};

/// Family names of the residual table: gemm, attention, reduction, pointwise, convolution, other.
std::string_view family_of(const Op& op);

/// Size bucket of a kernel: "small" below 10 us, "medium" below 100 us, "large".
std::string_view size_bucket(Seconds time);

class ResidualRanges {
 public:
  /// Reads hw/residuals.json of the data folder. A missing file gives unvalidated ranges throughout.
  static ResidualRanges load();
  /// From a table as residual_table writes it. Throws nlohmann::json::exception where it is none.
  static ResidualRanges from(const nlohmann::json& table);

  [[nodiscard]] Range of_kernel(const Op& op, Seconds time, const Gpu& gpu, std::string_view engine) const;
  [[nodiscard]] Range of_family(std::string_view family, Seconds time, const Gpu& gpu, std::string_view engine) const;

 private:
  friend class ChipRanges;
  /// Widths by engine, family and size ("any" too), of one measured chip.
  struct MeasuredChip {
    Gpu gpu;
    std::map<std::string, Range, std::less<>> ranges;  ///< "analytic/gemm/small" …
  };
  std::vector<MeasuredChip> chips_;
};

/// The ranges of one chip: distances are worked out once. Both arguments must outlive it.
class ChipRanges {
 public:
  ChipRanges(const ResidualRanges& ranges, const Gpu& gpu);
  [[nodiscard]] Range of_kernel(const Op& op, Seconds time, std::string_view engine) const;
  /// From kShortestKernel on equal for times of one size_bucket.
  [[nodiscard]] Range of_family(std::string_view family, Seconds time, std::string_view engine) const;
  /// The range of an op from that of its family.
  [[nodiscard]] static Range of_op(const Op& op, Range family);
  /// The measured chip that is nearest, by all laws of time; null where nothing was measured.
  [[nodiscard]] const Gpu* nearest() const { return nearest_; }
  /// From it: 0 for a measured chip.
  [[nodiscard]] double distance() const { return distance_; }

 private:
  static constexpr std::size_t kFamilies = 6;
  struct Near {
    const ResidualRanges::MeasuredChip* chip;
    std::array<double, kFamilies> distance;
  };
  std::vector<Near> near_;
  const Gpu* gpu_;
  const Gpu* nearest_ = nullptr;
  double distance_ = 0;
};

}  // namespace ridgeline
