// Kernels and collectives side by side on the GPUs of one node.
#include <memory>

#include "fit/law_problem.h"
#include "sim/study/validation/measured_overlaps.h"

namespace ridgeline::fit {
namespace {

const std::vector<Place<OverlapConstants>> kPlaces{
#include "sim/network/tables/overlap_fields.inc"
};

}  // namespace

std::vector<Problem> overlap_problems(const Measurements& measurements, const Laboratory&) {
  const auto measured = std::make_shared<const MeasuredOverlaps>(load_measured_overlaps(measurements.index));
  Problem problem{.name = "nvlink"};
  for (const MeasuredOverlap& one : measured->rows)
    problem.cases.push_back({one.beside.value(), 0, one.held_out, one.shape, one.row});
  problem.predict = [measured](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
    const OverlapConstants constants = constants_from(kPlaces, values);
    for (std::size_t i = 0; i < which.size(); ++i) {
      const MeasuredOverlap& one = measured->rows[which[i]];
      const Gpu& gpu = measured->gpus[static_cast<std::size_t>(one.gpu)];
      const SideBySide both = side_by_side(gpu, one.collective, one.kernel, constants);
      seconds[i] = (one.of_collective ? both.collective : both.kernel).value();
    }
  };
  return {problem};
}

}  // namespace ridgeline::fit
