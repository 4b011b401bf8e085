#include "sim/timing/analytic_engine.h"
#include "sim/timing/roofline_engine.h"

namespace ridgeline {

std::unique_ptr<TimingEngine> make_timing_engine(std::string_view name, const Gpu& gpu) {
  if (name == "roofline") return std::make_unique<RooflineEngine>(gpu);
  if (name == "analytic") return std::make_unique<AnalyticEngine>(gpu);
  return nullptr;
}

}  // namespace ridgeline
