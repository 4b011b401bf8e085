#include "tests/invariants/chip_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "sim/hardware/load_gpu.h"

namespace ridgeline::invariants {
namespace {

/// Laws that a step's time on one GPU does not come from.
constexpr Laws kTimeless = Law::memory | Law::peak | (Law::price | Law::description) | Law::boards;

std::string text_of(const ChipKey& key, double value) {
  if (key.flag) return value > 0.5 ? "true" : "false";
  std::string number = key.whole ? fmt::format("{:.0f}", value) : fmt::format("{:.17g}", value);
  return key.unit.empty() ? number : number + " " + key.unit;
}

/// What a number in this unit (or, without one, of this name) becomes where everything takes half the time.
double factor_of_time(const ChipKey& key) {
  const std::string& unit = key.unit;
  if (unit.ends_with("/s") || unit.ends_with("Hz") || unit == "W" || unit == "kW" || unit == "mW") return 2.0;
  if (unit == "s" || unit == "ms" || unit == "us" || unit == "ns") return 0.5;
  if (key.key.ends_with("_per_second") || key.key == "l2.atomic_rate" || key.key == "l2.atomic_address_rate")
    return 2.0;
  return 1.0;
}

void write_entry(std::map<std::string, std::string>& sections, const SheetRow& row) {
  const auto dot = row.key.rfind('.');
  const std::string section = dot == std::string::npos ? "" : row.key.substr(0, dot);
  std::string value = row.value;
  if (value.find(", ") != std::string::npos) value = "[" + value + "]";
  else value = "\"" + value + (row.unit.empty() ? "" : " " + row.unit) + "\"";
  sections[section] +=
      fmt::format("{}{}: {{value: {}, source: \"drawn at random\"}}\n",
                  std::string(2 * static_cast<std::size_t>(std::count(row.key.begin(), row.key.end(), '.')), ' '),
                  row.key.substr(dot == std::string::npos ? 0 : dot + 1), value);
}

}  // namespace

std::vector<ChipKey> keys_of(const std::string& hardware) {
  std::vector<ChipKey> keys;
  for (const SheetRow& row : load_hardware_sheet(hardware).values) {
    ChipKey key{.key = row.key, .unit = row.unit};
    if (row.value == "true" || row.value == "false") {
      key.flag = true;
      key.value = row.value == "true";
    } else {
      const char* const end = row.value.data() + row.value.size();
      const auto [stopped, error] = std::from_chars(row.value.data(), end, key.value);
      if (error != std::errc{}) continue;
      if (stopped != end) {
        if (std::string_view(stopped) != " %") continue;  // a list or a text that begins with a number
        key.unit = "%";
      }
    }
    if (const HardwareKey* known = find_hardware_key(key.key)) {
      key.whole = known->kind == KeyKind::integer;
      if ((known->laws & ~kTimeless) != 0) key.better = known->better;
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

config::Override changed(const ChipKey& key, double factor) {
  double value = key.value * factor;
  if (key.flag) value = factor > 1.0;
  if (key.whole && !key.flag) {
    value = std::round(value);
    if (value == key.value) value += factor > 1.0 ? 1.0 : factor < 1.0 ? -1.0 : 0.0;
    value = std::max(key.value >= 1.0 ? 1.0 : 0.0, value);
  }
  return {"hardware." + key.key, text_of(key, value), ""};
}

config::Override improved(const ChipKey& key, double factor) {
  return changed(key, key.better == Better::less && !key.flag ? 1.0 / factor : factor);
}

config::Override on_axis(const ChipKey& key, double factor) {
  double value = key.value * (key.better == Better::less ? 1.0 / factor : factor);
  if (key.whole) value = std::max(1.0, std::round(value));
  return {"hardware." + key.key, text_of(key, value), ""};
}

std::vector<config::Override> twice_as_fast(const std::string& hardware) {
  std::vector<config::Override> changes;
  for (const ChipKey& key : keys_of(hardware))
    if (const double factor = factor_of_time(key); factor != 1.0 && key.value != 0.0)
      changes.push_back({"hardware." + key.key, text_of(key, key.value * factor), ""});
  return changes;
}

std::string written_file(const std::string& hardware, const std::vector<config::Override>& overrides) {
  std::map<std::string, std::string> sections;
  for (const SheetRow& row : load_hardware_sheet(hardware, overrides).values) write_entry(sections, row);
  std::string text = "title: A chip drawn at random\n" + sections[""];
  std::string open;
  for (const auto& [section, lines] : sections) {
    if (section.empty()) continue;
    const auto dot = section.find('.');
    const std::string top = section.substr(0, dot);
    // Sections come sorted: "sm" before "sm.rates".
    if (top != open) text += top + ":\n";
    open = top;
    if (dot != std::string::npos) text += "  " + section.substr(dot + 1) + ":\n";
    text += lines;
  }
  return text;
}

std::string_view section_of(std::string_view key) { return key.substr(0, key.find('.')); }

}  // namespace ridgeline::invariants
