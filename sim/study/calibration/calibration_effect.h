// Which predictions move when a GPU's numbers change: a handful of training steps and kernels, before and after.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/gpu.h"

namespace ridgeline {

struct MovedPrediction {
  std::string what;
  Seconds before, after;
};

/// Shipped scenarios moved to the GPU, then kernels; analytic engine.
std::vector<MovedPrediction> calibration_effect(const Gpu& before, const Gpu& after);

}  // namespace ridgeline
