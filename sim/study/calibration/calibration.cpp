#include "sim/study/calibration/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      result.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) result.push_back(word);
  return result;
}

/// The word of a driver's name that says which chip: the first with a digit ("H200", "A100", "3090").
std::string model_of(std::string_view name) {
  for (const std::string& word : words(name))
    if (std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); })) return word;
  return "";
}

class Refusals {
 public:
  void add(std::string reason) { reasons_.push_back(std::move(reason)); }
  void refuse_if_any(std::string_view hardware) const {
    if (!reasons_.empty())
      throw UserError(
          fmt::format("probe result refused for {}; nothing was written\n  {}", hardware, fmt::join(reasons_, "\n  ")));
  }

 private:
  std::vector<std::string> reasons_;
};

void check_identity(const ProbeResult& probe, const Gpu& gpu, Refusals& reasons) {
  const auto title = words(gpu.title);
  const std::string model = model_of(probe.device_name);
  if (model.empty() || std::find(title.begin(), title.end(), model) == title.end())
    reasons.add(
        fmt::format("device.name: measured on a '{}', the file describes a '{}'", probe.device_name, gpu.title));
  const auto compare = [&](const char* key, double described, std::string_view as, double tolerance) {
    const auto found = probe.device.find(key);
    if (found == probe.device.end()) {
      reasons.add(fmt::format("device.{} is missing", key));
    } else if (std::abs(found->second - described) > tolerance * described) {
      reasons.add(
          fmt::format("device.{}: measured {:.12g}, the file says {:.12g} ({})", key, found->second, described, as));
    }
  };
  compare("compute_major", gpu.compute_major, "compute_major", 0.0);
  compare("compute_minor", gpu.compute_minor, "compute_minor", 0.0);
  compare("sm_count", gpu.sm.count, "sm.count", 0.0);
  compare("warps_per_sm", gpu.sm.max_warps, "sm.max_warps", 0.0);
  compare("registers_per_sm", gpu.sm.registers, "sm.registers", 0.0);
  compare("shared_per_sm_bytes", gpu.sm.shared_per_sm.value(), "sm.shared_per_sm", 0.0);
  compare("l2_bytes", gpu.l2.capacity.value(), "l2.capacity", 0.05);
  compare("memory_bytes", gpu.dram.capacity.value(), "dram.capacity", 0.05);
}

std::string value_text(std::string_view unit, double value) {
  if (unit == "MiB") return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

/// Later rules build on these.
void apply(Gpu& gpu, std::string_view key, double value) {
  if (key == "dram.read_efficiency") gpu.dram.read_efficiency = value;
  if (key == "dram.write_efficiency") gpu.dram.write_efficiency = value;
}

double number_of(const std::map<std::string, double>& numbers, const char* key) {
  const auto found = numbers.find(key);
  return found == numbers.end() ? 0.0 : found->second;
}

std::vector<std::string> conditions_of(const ProbeResult& probe) {
  const int cuda = static_cast<int>(number_of(probe.software, "cuda_runtime"));
  return {fmt::format(
      "{} on an {} by hw/probe: {:.0f} to {:.0f} degrees Celsius, {:.0f} W before, limit {:.0f} W, clock up "
      "to {:.0f} MHz, CUDA {}.{}",
      probe.date, probe.device_name, number_of(probe.device, "temperature_before"),
      number_of(probe.device, "temperature_after"), number_of(probe.device, "idle_watts"),
      number_of(probe.device, "power_limit_watts"), number_of(probe.device, "sm_clock_hertz") * 1e-6, cuda / 1000,
      cuda % 1000 / 10)};
}

}  // namespace

Calibration calibrate(const ProbeResult& probe, const Gpu& before, const std::vector<SheetRow>& kept,
                      const std::vector<std::string>& order) {
  Refusals reasons;
  check_identity(probe, before, reasons);
  Gpu gpu = before;
  std::vector<SheetRow> measured;
  for (const CalibrationRule& rule : calibration_rules()) {
    bool there = true;
    for (const std::string_view curve : rule.curves)
      if (!probe.find(curve)) {
        there = false;
        reasons.add(fmt::format("{}: needs the curve \"{}\", which is missing; run the whole probe", rule.key, curve));
      }
    if (!there) continue;
    try {
      const Extracted found = rule.extract(probe, gpu);
      if (!std::isfinite(found.value) || found.value < 0.0)
        reasons.add(fmt::format("{}: comes out as {}", rule.key, found.value));
      else if (found.spread > rule.most_spread)
        reasons.add(
            fmt::format("{}: its points scatter by {:.1f} %, more than {:.0f} %; is something else using the GPU?",
                        rule.key, 100.0 * found.spread, 100.0 * rule.most_spread));
      apply(gpu, rule.key, found.value);
      SheetRow row;
      row.key = rule.key;
      row.value = value_text(rule.unit, found.value);
      row.unit = rule.unit;
      row.source = fmt::format("measured {} on an {} (hw/probe): {}", probe.date, probe.device_name, rule.how);
      if (found.spread > 0.0) row.spread = found.spread;
      measured.push_back(std::move(row));
    } catch (const UserError& e) {
      reasons.add(fmt::format("{}: {}", rule.key, e.what()));
    }
  }
  reasons.refuse_if_any(before.name);

  Calibration result;
  result.conditions = conditions_of(probe);
  const auto of_key = [](const std::vector<SheetRow>& rows, const std::string& key) -> const SheetRow* {
    for (const SheetRow& row : rows)
      if (row.key == key) return &row;
    return nullptr;
  };
  for (const std::string& key : order) {
    if (const SheetRow* row = of_key(measured, key)) {
      result.rows.push_back(*row);
      result.from_probe.push_back(key);
    } else if (const SheetRow* old = of_key(kept, key)) {
      result.rows.push_back(*old);
    }
  }
  return result;
}

}  // namespace ridgeline
