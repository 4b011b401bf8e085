// How far off a prediction may be: ranges taken from measured residuals, by kernel family and size.
//
// hw/residuals.json holds, for each group of GPUs and each family, the 5 % and 95 % quantiles of measured / predicted
// over cases that no constant was fitted on; `ridgeline validate --write-residuals` regenerates it from the committed
// measurements. What has no residuals takes the widest known range of its engine and says it was not validated.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Factors on a predicted time: the measurement lies between low·t and high·t nine times in ten.
struct Range {
  double low = 0.5, high = 2.0;
  bool validated = false;
};

/// Family names of the residual table: gemm, attention, reduction, pointwise, convolution, other.
std::string_view family_of(const Op& op);

class ResidualRanges {
 public:
  /// Reads hw/residuals.json of the data folder. A missing file gives unvalidated ranges throughout.
  static ResidualRanges load();
  /// From a table as residual_table writes it. Throws nlohmann::json::exception where it is none.
  static ResidualRanges from(const nlohmann::json& table);

  [[nodiscard]] Range of_kernel(const Op& op, Seconds time, const Gpu& gpu, std::string_view engine) const;
  [[nodiscard]] Range of_family(std::string_view family, Seconds time, const Gpu& gpu, std::string_view engine) const;

 private:
  std::map<std::string, Range, std::less<>> ranges_;  ///< "analytic/nvidia-h200-sxm-141gb/gemm/small" …
};

/// Size bucket of a kernel: "small" below 10 us, "medium" below 100 us, "large".
std::string_view size_bucket(Seconds time);

}  // namespace ridgeline
