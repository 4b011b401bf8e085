// A sweep as its file describes it: axes over any keys, what to look for, and what is allowed.
//
//   scenario: ../bert-large-fp32.yaml          a file (seen from the sweep's) or an inline scenario
//   axes:
//     hardware: [nvidia-a100-sxm4-80gb, nvidia-h100-sxm5-80gb]
//     training.micro_batch: {log: [1, 64], points: 7}                  whole bounds give whole numbers
//     training.sequence_length: {range: [128, 512], step: 128}         or points: N
//     hardware.dram.bandwidth: {times: [1, 2]}                         of what the point's hardware file says
//     recipe: {cases: {plain: {}, fused: {training.attention: flash}}} several keys together
//   sample: {points: 500, seed: 1}             of the grid; absent: all of it
//   constraints: {memory: {below: 40 GiB}}
//   goal: fastest                              or {search: cheapest, samples_per_s: 50}, {search: pareto, of: [...]}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"
#include "sim/study/sweep/sweep_metric.h"

namespace ridgeline {

struct AxisValue {
  std::string label;                        ///< "8", "2x", name of a case
  std::vector<config::Override> overrides;  ///< as --set takes them
  double factor = 0;  ///< of the hardware file's own value of the override's key; 0: the override's value stands
};

struct SweepAxis {
  std::string name;  ///< the key, or what the file calls a list of cases
  std::vector<AxisValue> values;
};

struct Constraint {
  Metric metric = Metric::step_time;
  std::optional<double> below, above;
};

enum class GoalKind : std::uint8_t { none, fastest, cheapest, pareto };
struct Goal {
  GoalKind kind = GoalKind::none;
  double samples_per_s = 0;     ///< to be reached by the cheapest
  std::vector<Metric> of = {};  ///< of a Pareto front
};

struct Sweep {
  std::string title, file;
  config::Node scenario;
  std::vector<SweepAxis> axes;
  std::vector<Constraint> constraints;
  Goal goal;
  std::optional<std::uint64_t> sample_points;
  std::uint64_t seed = 1;
  std::string engine = "analytic";
  bool brief =
      false;  ///< points have step time, rates, memory and price alone; without their time where they do not fit
  std::uint64_t fingerprint =
      0;  ///< of all that decides points and their numbers, but for the contents of hw/ and models/

  [[nodiscard]] std::uint64_t grid_size() const;
  /// Grid points to predict, ascending. The last axis runs fastest.
  [[nodiscard]] std::vector<std::uint64_t> points() const;
  /// Entry of each axis' values.
  [[nodiscard]] std::vector<std::size_t> values_of(std::uint64_t point) const;
};

inline constexpr std::uint64_t kMostSweepPoints = 10'000'000;

/// Of a sweep that is made, not read.
std::uint64_t fingerprint_of(const Sweep& sweep);

/// Throws ConfigError with file:line:column.
Sweep load_sweep(const std::string& file);
/// The same of a tree that would stand in `file`.
Sweep read_sweep(const config::Node& tree, const std::string& file);

}  // namespace ridgeline
