// The kernels measured on GPUs (measurements/index.yaml), for tests.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/validation/measured_ops.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::testing {

/// Operations of a file whose op is in `ops` (all when empty). Rows with an error instead of a time are left out, and
/// rows to fit whose shape is held out in another file.
inline std::vector<MeasuredOp> measured_ops(std::string_view file, const std::vector<std::string>& ops = {}) {
  const MeasuredFile* wanted = &measurements().file(file);
  MeasuredOps found =
      load_measured_ops(measurements(), {.files = [&](const MeasuredFile& f) { return &f == wanted; }, .ops = ops});
  return std::move(found.rows);
}

}  // namespace ridgeline::testing
