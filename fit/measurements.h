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
/// Whether the rows of a file are products as others timed them, of which a fit may see a part: those of boards whose
/// kernels were not profiled here.
inline bool is_published_product(const MeasuredFile& file) {
  return file.kind == "published-ops" && file.split != Split::held_out;
}

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
