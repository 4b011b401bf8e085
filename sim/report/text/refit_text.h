// What a refit of a GPU found, for people.
#pragma once

#include <string>

#include "sim/study/calibration/refit_gpu.h"

namespace ridgeline {

std::string refit_text(const RefitResult& result);

}  // namespace ridgeline
