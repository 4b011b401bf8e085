#include "sim/report/hardware_text.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace ridgeline {
namespace {

void write_rows(std::string& out, std::span<const SheetRow> rows) {
  for (const SheetRow& row : rows) {
    std::string value = row.value;
    if (!row.unit.empty() && !value.ends_with(row.unit)) value += " " + row.unit;
    if (row.spread) value += fmt::format(" ± {:.1f} %", 100.0 * *row.spread);
    // The source goes on the line where it fits into 100 columns, and below it where it does not.
    const std::string head = fmt::format("  {:<30} {:<18}", row.key, value);
    const bool fits = head.size() <= 52 && row.source.size() <= 47;
    if (fits) {
      fmt::format_to(std::back_inserter(out), "{} {}\n", head, row.source);
      continue;
    }
    out += head;
    std::string line;
    std::size_t begin = 0;
    while (begin < row.source.size()) {
      std::size_t length = std::min<std::size_t>(row.source.size() - begin, 92);
      if (begin + length < row.source.size())
        if (const auto space = row.source.rfind(' ', begin + length); space != std::string::npos && space > begin) length = space - begin;
      line = row.source.substr(begin, length);
      fmt::format_to(std::back_inserter(out), "\n      {}", line);
      begin += length + (begin + length < row.source.size() && row.source[begin + length] == ' ' ? 1 : 0);
    }
    out += '\n';
  }
}

}  // namespace

std::string hardware_list(std::span<const Gpu> gpus) {
  std::string out = fmt::format("{:<25} {:>4} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}\n", "name", "SMs", "boost", "fp32", "fp16 TC", "memory", "bandwidth", "L2", "limit");
  out += fmt::format("{:<25} {:>4} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}\n", "", "", "MHz", "TFLOP/s", "TFLOP/s", "GiB", "GB/s", "MiB", "W");
  for (const Gpu& gpu : gpus)
    out += fmt::format("{:<25} {:>4} {:>6.0f} {:>9.3g} {:>9.3g} {:>9.1f} {:>9.0f} {:>9.0f} {:>6.0f}\n", gpu.name, gpu.sm.count, gpu.clock.boost.value() / 1e6,
                       gpu.peak(gpu.sm.rates.fp32).value() / 1e12, gpu.tensor_peak(gpu.sm.rates.tensor_fp16).value() / 1e12, gpu.dram.capacity.value() / kGiB,
                       gpu.dram.bandwidth.value() / 1e9, gpu.l2.capacity.value() / kMiB, gpu.power.limit.value());
  return out;
}

std::string hardware_text(const HardwareSheet& sheet) {
  std::string out = fmt::format("{}: {}\n\n", sheet.name, sheet.title);
  write_rows(out, sheet.values);
  out += "\nderived\n";
  write_rows(out, sheet.derived);
  return out;
}

nlohmann::ordered_json hardware_json(const HardwareSheet& sheet) {
  using nlohmann::ordered_json;
  const auto rows = [](std::span<const SheetRow> from) {
    ordered_json out = ordered_json::object();
    for (const SheetRow& row : from) {
      ordered_json entry{{"value", row.value}, {"unit", row.unit}, {"source", row.source}};
      if (row.spread) entry["spread"] = *row.spread;
      out[row.key] = std::move(entry);
    }
    return out;
  };
  return {{"name", sheet.name}, {"title", sheet.title}, {"values", rows(sheet.values)}, {"derived", rows(sheet.derived)}};
}

}  // namespace ridgeline
