// What a point of a sweep is judged by.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ridgeline {

enum class Metric : std::uint8_t {
  step_time,
  step_low,
  step_high,
  samples_per_s,
  tokens_per_s,
  memory,     ///< of the device; what it would need where it does not fit
  allocated,  ///< peak
  mfu,
  gpu_active,         ///< share of the step with a kernel running
  power,              ///< of a board
  energy,             ///< of a board in a step
  energy_per_sample,  ///< of all boards
  price,              ///< USD an hour of all boards; 0 where the hardware file does not say
  price_per_million,  ///< USD for a million samples
  ridge               ///< FLOP/byte: peak of the precision over DRAM bandwidth
};
inline constexpr std::size_t kMetrics = 15;

struct MetricInfo {
  std::string_view name;      ///< in sweep files: "step_time"
  std::string_view json_key;  ///< "step_time_s"
  std::string_view unit;      ///< what a bound without a unit is in, and tables show
  double scale = 1;           ///< of a table's unit in base units
  bool more_is_better = false;
};
const MetricInfo& info_of(Metric metric);
inline const MetricInfo& info_of(std::size_t metric) { return info_of(static_cast<Metric>(metric)); }

}  // namespace ridgeline
