// Names of laws, and what a key's value may be, in words.
#include "sim/hardware/keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace ridgeline {
namespace {

constexpr std::array<LawName, 18> kLawNames{{{Law::choice, "choice of kernels", "2"},
                                             {Law::occupancy, "occupancy", "3"},
                                             {Law::stream, "memory-bound kernels", "4"},
                                             {Law::code, "kernels by their code", "4a"},
                                             {Law::product, "matrix products", "5"},
                                             {Law::attention, "fused attention", "6"},
                                             {Law::convolution, "convolutions", "7"},
                                             {Law::power, "clock and power", "8"},
                                             {Law::residency, "L2 residency", "9"},
                                             {Law::copies, "copies and memsets", "4"},
                                             {Law::timeline, "timeline", "10"},
                                             {Law::memory, "memory", "11"},
                                             {Law::hierarchy, "simulated hierarchy", "15"},
                                             {Law::roofline, "roofline engine", ""},
                                             {Law::peak, "peaks and utilization", ""},
                                             {Law::price, "price of a run", ""},
                                             {Law::description, "description", ""},
                                             {Law::boards, "slowest of several boards", "19"}}};

}  // namespace

std::span<const LawName> law_names() { return kLawNames; }

std::string names_of(Laws laws) {
  std::vector<std::string_view> names;
  for (const LawName& law : kLawNames)
    if (holds(laws, law.law)) names.push_back(law.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view name_of(Better better) {
  switch (better) {
    case Better::more: return "more";
    case Better::less: return "less";
    case Better::neither: return "neither";
  }
  return "";
}

std::string_view kernels_of_another(Architecture architecture) {
  if (architecture == Architecture::ada)
    return "kernels are assumed: those of compute capability 8.6, with Ada's limits";
  if (architecture == Architecture::blackwell)
    return "16-bit products are fitted on published times; other kernels are assumed: those of Hopper (wgmma, TMA)";
  return "";
}

std::string HardwareKey::unit() const {
  return kind == KeyKind::quantity ? std::string(accepted_units(dimension)) : std::string();
}

std::string HardwareKey::allowed() const {
  const auto shown = [this](double value) {
    if (value == 0.0) return std::string("0");
    if (kind == KeyKind::integer) return fmt::format("{:.0f}", value);
    return kind == KeyKind::quantity ? to_string(Measure{value, dimension}) : fmt::format("{:g}", value);
  };
  switch (kind) {
    case KeyKind::flag: return "true or false";
    case KeyKind::list: return "a list";
    case KeyKind::text: return choices.empty() ? "a text" : choices;
    default: break;
  }
  return fmt::format("{}{} to {}", zero_is_none ? "0 or " : "", shown(range.low), shown(range.high));
}

}  // namespace ridgeline
