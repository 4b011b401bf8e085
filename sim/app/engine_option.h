// The --engine option, checked.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/timing/kernel_time.h"
#include "sim/units/nearest_name.h"
#include "sim/units/user_error.h"

namespace ridgeline::app {

inline std::unique_ptr<TimingEngine> engine_named(const std::string& name, const Gpu& gpu) {
  auto engine = make_timing_engine(name, gpu);
  if (!engine) {
    const std::vector<std::string> known{"roofline", "analytic"};
    throw UserError(fmt::format("--engine: unknown engine '{}'; expected roofline or analytic (did you mean {}?)", name,
                                nearest_name(name, known)));
  }
  return engine;
}

}  // namespace ridgeline::app
