#include "sim/report/text/calibration_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/units/parse.h"

namespace ridgeline {
namespace {

std::string written(const SheetRow& row) { return row.unit.empty() ? row.value : row.value + " " + row.unit; }

double number_of(const SheetRow& row) {
  const auto measure = parse_measure(written(row));
  return measure ? measure->value : 0.0;
}

std::string difference(double before, double after) {
  if (before == after) return "same";
  return before != 0.0 ? fmt::format("{:+.1f} %", 100.0 * (after / before - 1.0)) : "new";
}

const SheetRow* row_of(const HardwareSheet& sheet, const std::string& key) {
  const auto found =
      std::find_if(sheet.values.begin(), sheet.values.end(), [&](const SheetRow& row) { return row.key == key; });
  return found == sheet.values.end() ? nullptr : &*found;
}

}  // namespace

std::string calibration_text(const HardwareSheet& before, const HardwareSheet& after, const Calibration& calibration,
                             std::span<const MovedPrediction> moved) {
  std::string out = after.title + "\n";
  for (const std::string& condition : calibration.conditions) out += "measured " + condition + "\n";
  out += fmt::format("\n{:<26} {:>16} {:>16} {:>10} {:>8}\n", "from the microkernels", "before", "after", "difference",
                     "spread");
  for (const std::string& key : calibration.from_probe) {
    const SheetRow *old = row_of(before, key), *now = row_of(after, key);
    if (!old || !now) continue;
    out += fmt::format("{:<26} {:>16} {:>16} {:>10} {:>8}\n", key, written(*old), written(*now),
                       difference(number_of(*old), number_of(*now)),
                       now->spread ? fmt::format("{:.1f} %", 100.0 * *now->spread) : "");
  }
  bool any = false;
  for (const SheetRow& row : calibration.rows) {
    if (std::find(calibration.from_probe.begin(), calibration.from_probe.end(), row.key) !=
        calibration.from_probe.end())
      continue;
    if (!any) out += "\nkept, the microkernels do not tell\n";
    any = true;
    out += fmt::format("{:<26} {:>16}   {}\n", row.key, written(row), row.source);
  }
  out += fmt::format("\n{:<34} {:>12} {:>12} {:>10}\n", "predictions (analytic)", "before", "after", "difference");
  for (const MovedPrediction& m : moved)
    out += fmt::format("{:<34} {:>12} {:>12} {:>10}\n", m.what, to_string(m.before), to_string(m.after),
                       difference(m.before.value(), m.after.value()));
  return out;
}

}  // namespace ridgeline
