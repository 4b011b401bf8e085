// The measured kernels that the tables of constants are fitted on and tested on: those of the laboratory's GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/study/validation/measured_ops.h"

namespace ridgeline::fit {

using Measurement = MeasuredOp;
using ProfiledKernel = MeasuredKernel;

/// Machine of the products that are timed as a whole, without their kernels' names.
inline constexpr const char* kServingA100 = "serving-a100";

struct Measurements {
  MeasurementIndex index;             ///< what the rows point into
  std::vector<std::string> machines;  ///< the first is the one that the hardware file describes
  std::vector<Measurement> rows{};
  std::size_t twins = 0;  ///< rows to fit that were left out because their shape is held out elsewhere

  /// Its place among `machines`. Throws std::out_of_range for one that measured nothing here.
  [[nodiscard]] int machine(const std::string& name) const;
};

/// The rows with profiled kernels whose op is one of `ops`. Throws UserError when a file cannot be read.
Measurements load_measurements(const std::filesystem::path& root, const std::vector<std::string>& ops);

}  // namespace ridgeline::fit
