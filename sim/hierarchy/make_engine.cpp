#include "sim/hierarchy/make_engine.h"

#include <fmt/format.h>

#include "sim/hierarchy/simulate_engine.h"
#include "sim/units/meant_name.h"
#include "sim/units/user_error.h"

namespace ridgeline {

std::unique_ptr<TimingEngine> make_engine(std::string_view name, const Gpu& gpu) {
  if (name == "simulate") return std::make_unique<SimulateEngine>(gpu);
  if (auto engine = make_timing_engine(name, gpu)) return engine;
  const std::vector<std::string> known{"roofline", "analytic", "simulate"};
  throw UserError(fmt::format("--engine: unknown engine '{}'; {}", name, expected_names(name, known)));
}

}  // namespace ridgeline
