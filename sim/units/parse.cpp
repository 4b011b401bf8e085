// A unit is a prefix on a base unit, so the table below is the product of the two: every accepted spelling is listed
// once, nothing is guessed. Binary prefixes exist for bytes only.
#include "sim/units/parse.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <unordered_map>
#include <vector>

namespace ridgeline {
namespace {

struct Unit {
  double factor = 1.0;
  Dimension dimension = Dimension::dimensionless;
};

struct Prefix {
  std::string_view name;
  double factor;
};

struct Base {
  std::string_view name;  ///< the prefix goes in front of it
  Dimension dimension;
  std::vector<Prefix> prefixes;
};

std::unordered_map<std::string, Unit> make_units() {
  const std::vector<Prefix> large{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};
  std::vector<Prefix> bytes = large;
  for (const Prefix& binary : {Prefix{"Ki", kKiB}, Prefix{"Mi", kMiB}, Prefix{"Gi", kGiB}, Prefix{"Ti", kGiB * 1024}}) {
    bytes.push_back(binary);
  }
  const std::vector<Prefix> small{{"", 1}, {"m", 1e-3}, {"u", 1e-6}, {"µ", 1e-6}, {"n", 1e-9}, {"p", 1e-12}};
  const std::vector<Prefix> power{{"m", 1e-3}, {"", 1}, {"k", 1e3}, {"M", 1e6}};
  const std::vector<Base> bases{
      {"B", Dimension::bytes, bytes},
      {"B/s", Dimension::bytes_per_second, bytes},
      {"bit/s", Dimension::bytes_per_second, {{"M", 1e6 / 8.0}, {"G", 1e9 / 8.0}, {"T", 1e12 / 8.0}}},
      {"B/cycle", Dimension::bytes_per_cycle, bytes},
      {"FLOP", Dimension::flops, large},
      {"FLOP/s", Dimension::flops_per_second, large},
      {"FLOPS", Dimension::flops_per_second, large},
      {"s", Dimension::seconds, small},
      {"cycle", Dimension::cycles, {{"", 1}}},
      {"cycles", Dimension::cycles, {{"", 1}}},
      {"Hz", Dimension::hertz, large},
      {"J", Dimension::joules, {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12}}},
      {"W", Dimension::watts, power},
      {"J/FLOP", Dimension::joules_per_flop, small},
      {"J/B", Dimension::joules_per_byte, small},
      {"%", Dimension::dimensionless, {{"", 0.01}}},
      {"x", Dimension::dimensionless, {{"", 1}}},
  };
  std::unordered_map<std::string, Unit> units{{"", Unit{}}};
  for (const Base& base : bases) {
    for (const Prefix& prefix : base.prefixes) {
      units.emplace(fmt::format("{}{}", prefix.name, base.name), Unit{prefix.factor, base.dimension});
    }
  }
  return units;
}

std::string_view trimmed(std::string_view text) {
  const std::string_view blank = " \t\r\n";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// Three significant digits in the largest step of `steps` (factor, unit; descending) that is not above the value.
std::string in_nearest(double value, std::initializer_list<Prefix> steps) {
  const double size = std::abs(value);
  Prefix chosen = *(steps.end() - 1);
  for (const Prefix& step : steps) {
    // 999.6 would print as 1000: it belongs to the next step already.
    if (size >= step.factor * 0.9995) {
      chosen = step;
      break;
    }
  }
  if (value == 0.0) {
    for (const Prefix& step : steps) {
      if (step.factor == 1.0) chosen = step;
    }
  }
  const double scaled = value / chosen.factor;
  const double magnitude = std::abs(scaled);
  const int decimals = magnitude == 0.0 || magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", scaled, decimals, chosen.name);
}

}  // namespace

std::optional<Measure> parse_measure(std::string_view text) {
  static const std::unordered_map<std::string, Unit> units = make_units();
  text = trimmed(text);
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  const auto found = units.find(std::string(unit));
  if (found == units.end()) return std::nullopt;
  // Dividing by 1e9 rather than multiplying by 1e-9 keeps "730 ns" the double nearest to it.
  const double factor = found->second.factor;
  const double value = factor < 1.0 ? number / std::round(1.0 / factor) : number * factor;
  if (!std::isfinite(value)) return std::nullopt;
  return Measure{value, found->second.dimension};
}

std::string_view accepted_units(Dimension dimension) {
  switch (dimension) {
    case Dimension::dimensionless: return "a plain number or %";
    case Dimension::bytes: return "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
    case Dimension::flops: return "FLOP, GFLOP, TFLOP, PFLOP";
    case Dimension::seconds: return "s, ms, us, ns";
    case Dimension::cycles: return "cycles";
    case Dimension::joules: return "J, mJ, kJ";
    case Dimension::hertz: return "Hz, MHz, GHz";
    case Dimension::bytes_per_second: return "MB/s, GB/s, TB/s, GiB/s, TiB/s, Gbit/s";
    case Dimension::flops_per_second: return "GFLOP/s, TFLOP/s, PFLOP/s";
    case Dimension::bytes_per_cycle: return "B/cycle, KiB/cycle";
    case Dimension::watts: return "W, kW";
    case Dimension::joules_per_flop: return "J/FLOP, nJ/FLOP, pJ/FLOP";
    case Dimension::joules_per_byte: return "J/B, nJ/B, pJ/B";
  }
  return "";
}

std::string to_string(Bytes value) {
  return in_nearest(value.value(), {{"TiB", kGiB * 1024}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}, {"B", 1}});
}
std::string to_string(Seconds value) {
  return in_nearest(value.value(), {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}});
}
std::string to_string(Hertz value) {
  return in_nearest(value.value(), {{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1}});
}
std::string to_string(BytesPerSecond value) {
  return in_nearest(value.value(), {{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}});
}
std::string to_string(FlopsPerSecond value) {
  return in_nearest(value.value(),
                    {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s", 1}});
}
std::string to_string(Watts value) { return in_nearest(value.value(), {{"W", 1}, {"mW", 1e-3}}); }

std::string to_string(Measure measure) {
  const double v = measure.value;
  switch (measure.dimension) {
    case Dimension::dimensionless: return fmt::format("{:.6g}", v);
    case Dimension::bytes: return to_string(Bytes{v});
    case Dimension::flops:
      return in_nearest(v, {{"PFLOP", 1e15}, {"TFLOP", 1e12}, {"GFLOP", 1e9}, {"MFLOP", 1e6}, {"FLOP", 1}});
    case Dimension::seconds: return to_string(Seconds{v});
    case Dimension::cycles: return fmt::format("{:.6g} cycles", v);
    case Dimension::joules:
      return in_nearest(v, {{"kJ", 1e3}, {"J", 1}, {"mJ", 1e-3}, {"uJ", 1e-6}, {"nJ", 1e-9}, {"pJ", 1e-12}});
    case Dimension::hertz: return to_string(Hertz{v});
    case Dimension::bytes_per_second: return to_string(BytesPerSecond{v});
    case Dimension::flops_per_second: return to_string(FlopsPerSecond{v});
    case Dimension::bytes_per_cycle: return fmt::format("{:.6g} B/cycle", v);
    case Dimension::watts: return to_string(Watts{v});
    case Dimension::joules_per_flop: return in_nearest(v, {{"J/FLOP", 1}, {"nJ/FLOP", 1e-9}, {"pJ/FLOP", 1e-12}});
    case Dimension::joules_per_byte: return in_nearest(v, {{"J/B", 1}, {"nJ/B", 1e-9}, {"pJ/B", 1e-12}});
  }
  return "";
}

}  // namespace ridgeline
