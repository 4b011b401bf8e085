// What the microkernels of hw/probe measured on one GPU, read from their JSON.
//
// Everything a reader relies on is checked here: the format, that every number is finite, that every microkernel's
// result was correct. What is wrong is collected and reported at once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

struct ProbePoint {
  std::map<std::string, double> at;  ///< the condition: {"bytes": 67108864}
  double value = 0.0;                ///< in the curve's unit
  double seconds = 0.0;              ///< of one repetition; 0 where cycles were counted
  double spread = 0.0;               ///< (most - least) / median of the samples
  [[nodiscard]] double operator[](std::string_view condition) const;  ///< throws UserError when the point lacks it
};

struct ProbeCurve {
  std::string name, unit, what;
  std::vector<ProbePoint> points;
};

struct ProbeResult {
  std::string date;         ///< year-month-day
  std::string device_name;  ///< as the driver names it
  std::map<std::string, double> device, software, context;
  std::vector<ProbeCurve> curves;

  /// Null when the microkernel was not run.
  [[nodiscard]] const ProbeCurve* find(std::string_view curve) const;
};

/// `name` stands for the file in messages. Throws UserError with one line for each reason: not JSON, another format, a
/// missing or non-finite number, a curve whose result was wrong.
ProbeResult probe_result_from(std::string_view text, std::string_view name);
ProbeResult load_probe_result(const std::string& file);

}  // namespace ridgeline
