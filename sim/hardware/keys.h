// Every key of a hardware file: what it means, in which unit, what it may be, which laws read it, which way is better.
//
// The one table of them. The reader (describe_gpu.cpp), `ridgeline hardware NAME`, `--sensitivity`,
// docs/hardware-keys.md and the tests walk it; a new number of a chip is a field of Gpu and one line of keys.cpp. A
// number that no law reads does not belong here: tests/study/live_keys_test.cpp asks each law that a key names whether
// its answers move.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/value.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

/// The laws that read a chip, as bits of a set.
enum class Law : std::uint32_t {
  choice = 1u << 0,        ///< which kernels a library runs
  occupancy = 1u << 1,     ///< thread blocks that fit an SM
  stream = 1u << 2,        ///< memory-bound kernels
  code = 1u << 3,          ///< kernels described by their code
  product = 1u << 4,       ///< matrix products
  attention = 1u << 5,     ///< fused attention
  convolution = 1u << 6,   ///< convolutions
  power = 1u << 7,         ///< clock and power
  residency = 1u << 8,     ///< what stays in the L2
  copies = 1u << 9,        ///< copies over the host's link, memsets
  timeline = 1u << 10,     ///< launches, gaps, the queue
  memory = 1u << 11,       ///< what device memory holds
  hierarchy = 1u << 12,    ///< the simulated hierarchy (--engine simulate)
  roofline = 1u << 13,     ///< the roofline engine (--engine roofline)
  peak = 1u << 14,         ///< peaks: utilization, ridge points
  price = 1u << 15,        ///< price of a run
  description = 1u << 16,  ///< read by people
  boards = 1u << 17        ///< the slowest of several boards
};
using Laws = std::uint32_t;  ///< a set of Law
constexpr Laws operator|(Law a, Law b) { return static_cast<Laws>(a) | static_cast<Laws>(b); }
constexpr Laws operator|(Laws a, Law b) { return a | static_cast<Laws>(b); }
constexpr bool holds(Laws laws, Law law) { return (laws & static_cast<Laws>(law)) != 0; }

struct LawName {
  Law law;
  std::string_view name;     ///< "matrix products"
  std::string_view section;  ///< of docs/model.md; empty where there is none
};
std::span<const LawName> law_names();
/// "matrix products, fused attention"
std::string names_of(Laws laws);

/// Which change of a number makes a chip the better one: its time never longer, its memory never less.
enum class Better : std::uint8_t { more, less, neither };
std::string_view name_of(Better better);

/// How a value is written.
enum class KeyKind : std::uint8_t { text, flag, choice, integer, number, quantity, list };

struct HardwareKey {
  std::string_view key;  ///< dotted, as --set hardware.KEY takes it
  KeyKind kind = KeyKind::number;
  Dimension dimension = Dimension::dimensionless;  ///< of a quantity
  config::Range range;                             ///< allowed values in base units, of numbers
  std::string choices;                             ///< of a text that is one of a few
  bool zero_is_none = false;                       ///< 0 is allowed below the range: there is no such unit
  bool required = true;                            ///< false: Gpu's own value stands where a file does not say
  Better better = Better::neither;
  Laws laws = 0;
  std::string_view meaning;  ///< one sentence

  void (*read)(const config::Value&, const HardwareKey&, Gpu&) = nullptr;  ///< throws config::ConfigError
  std::string (*show)(const Gpu&) = nullptr;                               ///< as a file would say it
  double (*get)(const Gpu&) = nullptr;                                     ///< of numbers, in base units
  void (*set)(Gpu&, double) = nullptr;                                     ///< of numbers; no check of the range

  [[nodiscard]] bool is_number() const { return get != nullptr; }
  /// "GB/s", "cycles"; empty for counts and shares.
  [[nodiscard]] std::string unit() const;
  /// "1 to 100000", "0 or 0.01 to 1e+06", "true or false", "aged, lru, random, none".
  [[nodiscard]] std::string allowed() const;
  /// Whether a number lies in the range (0 too where it says that there is no such unit).
  [[nodiscard]] bool allows(double value) const { return range.holds(value) || (zero_is_none && value == 0.0); }
};

/// What is assumed of an architecture whose kernels the laws have not seen; empty where they have.
std::string_view kernels_of_another(Architecture architecture);

/// In the order of a file.
std::span<const HardwareKey> hardware_keys();
/// Null when there is no such key.
const HardwareKey* find_hardware_key(std::string_view key);

}  // namespace ridgeline
