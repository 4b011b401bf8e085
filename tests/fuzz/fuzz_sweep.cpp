// Sweep files: axes, samples, constraints and goals, and the scenario in the middle of them.
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/changed_tree.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_sweep(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = shipped_trees("scenarios/sweeps");
  try {
    const config::Node tree = changed_tree({reinterpret_cast<const char*>(data), size}, shipped);
    const Sweep sweep = read_sweep(tree, "scenarios/sweeps/input.yaml");
    const std::uint64_t points = sweep.sample_points.value_or(sweep.grid_size());
    if (points > kMostSweepPoints) return "more points than a sweep may have";
    if (points > 1000) return {};
    for (const std::uint64_t point : sweep.points()) {
      if (point >= sweep.grid_size()) return "a point outside of the grid";
      const std::vector<std::size_t> values = sweep.values_of(point);
      for (std::size_t axis = 0; axis < values.size(); ++axis)
        if (values[axis] >= sweep.axes[axis].values.size()) return "a value that its axis does not have";
    }
    if (size % 16 == 0) check_axes(sweep);
  } catch (const UserError&) {  // says where, as tests of the readers state
  }
  return {};
}

}  // namespace ridgeline
