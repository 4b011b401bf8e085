#include "sim/report/text/hardware_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/hardware/keys.h"

namespace ridgeline {
namespace {

/// `text` in lines of at most `width`, broken at spaces.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t length = text.rfind(' ', width);
    if (length == std::string_view::npos || length == 0) length = width;
    lines.emplace_back(text.substr(0, length));
    text.remove_prefix(std::min(text.size(), length + (text[length] == ' ' ? 1 : 0)));
  }
  lines.emplace_back(text);
  return lines;
}

void write_rows(std::string& out, std::span<const SheetRow> rows) {
  auto to = std::back_inserter(out);
  for (const SheetRow& row : rows) {
    std::string value = row.value;
    if (!row.unit.empty() && !value.ends_with(row.unit)) value += " " + row.unit;
    if (row.spread) value += fmt::format(" ± {:.1f} %", 100.0 * *row.spread);
    const std::vector<std::string> values = wrapped(value, 46);
    fmt::format_to(to, "  {:<30} {}\n", row.key, values.front());
    for (std::size_t i = 1; i < values.size(); ++i) fmt::format_to(to, "  {:<30} {}\n", "", values[i]);
    std::string source = row.source;
    if (!row.inherited.empty()) source = fmt::format("inherited from {}: {}", row.inherited, source);
    for (const std::string& line : wrapped(source, 74)) fmt::format_to(to, "      {}\n", line);
    if (const HardwareKey* key = find_hardware_key(row.key))
      for (const std::string& line : wrapped("read by: " + names_of(key->laws), 74))
        fmt::format_to(to, "      {}\n", line);
  }
}

}  // namespace

std::string hardware_list(std::span<const Gpu> gpus) {
  constexpr auto kHeading = "{:<25} {:>3} {:>5} {:>7} {:>7} {:>6} {:>9} {:>4} {:>5}\n";
  std::string out =
      fmt::format(kHeading, "name", "SMs", "boost", "fp32", "fp16 TC", "memory", "bandwidth", "L2", "limit");
  out += fmt::format(kHeading, "", "", "MHz", "TFLOP/s", "TFLOP/s", "GiB", "GB/s", "MiB", "W");
  for (const Gpu& gpu : gpus)
    out += fmt::format("{:<25} {:>3} {:>5.0f} {:>7.3g} {:>7.3g} {:>6.1f} {:>9.0f} {:>4.0f} {:>5.0f}\n", gpu.name,
                       gpu.sm.count, gpu.clock.boost.value() / 1e6, gpu.peak(gpu.sm.rates.fp32).value() / 1e12,
                       gpu.tensor_peak(gpu.sm.rates.tensor_fp16).value() / 1e12, gpu.dram.capacity.value() / kGiB,
                       gpu.dram.bandwidth.value() / 1e9, gpu.l2.capacity.value() / kMiB, gpu.power.limit.value());
  return out;
}

std::string hardware_text(const HardwareSheet& sheet) {
  std::string out = fmt::format("{}: {}\n\n", sheet.name, sheet.title);
  write_rows(out, sheet.values);
  if (!sheet.assumed.empty()) {
    out += "\nnot in the file, so assumed\n";
    for (const SheetRow& row : sheet.assumed) out += fmt::format("  {:<30} {}\n", row.key, row.value);
  }
  out += "\nderived\n";
  write_rows(out, sheet.derived);
  return out;
}

std::string hardware_keys_markdown() {
  std::string out =
      "# Keys of a hardware file\n\n"
      "Written by `ridgeline hardware --keys` from sim/hardware/keys.cpp, which the program itself reads files by; a "
      "test\n"
      "compares the two. A value is `{value: 4.8 TB/s, source: \"...\"}`, with an optional `spread` (relative) and "
      "`note`. "
      "Better says\nwhich change makes the chip the better one. Laws are sections of [model.md](model.md). How to "
      "describe a "
      "chip with a few of\nthem: [describe-a-chip.md](describe-a-chip.md).\n\n"
      "| key | meaning | allowed | better | read by |\n|---|---|---|---|---|\n";
  for (const HardwareKey& key : hardware_keys()) {
    std::string laws;
    for (const LawName& law : law_names())
      if (holds(key.laws, law.law))
        laws += fmt::format("{}{}{}", laws.empty() ? "" : ", ", law.name,
                            law.section.empty() ? "" : fmt::format(" ({})", law.section));
    out += fmt::format("| {} | {}{} | {} | {} | {} |\n", key.key, key.meaning, key.required ? "" : "; may be left out",
                       key.allowed(), name_of(key.better), laws);
  }
  return out;
}

nlohmann::ordered_json hardware_json(const HardwareSheet& sheet) {
  using nlohmann::ordered_json;
  const auto rows = [](std::span<const SheetRow> from) {
    ordered_json out = ordered_json::object();
    for (const SheetRow& row : from) {
      ordered_json entry{{"value", row.value}, {"unit", row.unit}, {"source", row.source}};
      if (row.spread) entry["spread"] = *row.spread;
      if (!row.inherited.empty()) entry["inherited_from"] = row.inherited;
      if (const HardwareKey* key = find_hardware_key(row.key)) {
        entry["meaning"] = key->meaning;
        entry["read_by"] = names_of(key->laws);
      }
      out[row.key] = std::move(entry);
    }
    return out;
  };
  return {{"name", sheet.name},
          {"title", sheet.title},
          {"values", rows(sheet.values)},
          {"assumed", rows(sheet.assumed)},
          {"derived", rows(sheet.derived)}};
}

}  // namespace ridgeline
