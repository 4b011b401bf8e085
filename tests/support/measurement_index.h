// The index of the measurements, read once, for tests.
#pragma once

#include <string>

#include "sim/study/validation/measured_files.h"

namespace ridgeline::testing {

inline const MeasurementIndex& measurements() {
  static const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  return index;
}

}  // namespace ridgeline::testing
