// Quantities as people write them: "3.35 TB/s", "50 MiB", "1.98 GHz", "29 cycles".
//
// The unit is mandatory. kB, MB, GB are powers of 1000 and KiB, MiB, GiB powers of 1024. Tested by
// tests/units/parse_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/units/quantity.h"

namespace ridgeline {

/// What a unit string measures; `dimensionless` is "x", "%" or no unit at all.
enum class Dimension {
  dimensionless,
  bytes,
  flops,
  seconds,
  cycles,
  joules,
  hertz,
  bytes_per_second,
  flops_per_second,
  bytes_per_cycle,
  watts,
  joules_per_flop,
  joules_per_byte
};

struct Measure {
  double value = 0.0;  ///< in base units
  Dimension dimension = Dimension::dimensionless;
};

/// Parses a number and a unit. Empty when the text is not a finite number followed by a known unit.
std::optional<Measure> parse_measure(std::string_view text);

/// The units accepted for a dimension, for error messages: "GB/s, TB/s".
std::string_view accepted_units(Dimension dimension);

std::string to_string(Bytes value);           ///< "4.19 MiB": binary units, three digits
std::string to_string(Seconds value);         ///< "12.3 us"
std::string to_string(Hertz value);           ///< "1.98 GHz"
std::string to_string(BytesPerSecond value);  ///< "4.80 TB/s"
std::string to_string(FlopsPerSecond value);  ///< "989 TFLOP/s"
std::string to_string(Watts value);           ///< "700 W"
/// Any measure in the unit a person would choose for it.
std::string to_string(Measure value);

}  // namespace ridgeline
