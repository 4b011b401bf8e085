// Every timing engine by its name.
#pragma once

#include <memory>
#include <string_view>

#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// "roofline", "analytic" or "simulate"; throws UserError with the nearest name for another. `gpu` must outlive it.
std::unique_ptr<TimingEngine> make_engine(std::string_view name, const Gpu& gpu);

}  // namespace ridgeline
