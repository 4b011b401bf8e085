// A hardware description as a table for people: each number with its source, and what follows from them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

struct SheetRow {
  std::string key;          ///< dotted key, as --set hardware.KEY takes it
  std::string value, unit;  ///< as written; unit is empty for counts and shares
  std::string source;
  std::optional<double> spread;  ///< relative, where the source states one
  std::string note;
  std::string inherited;  ///< the description that brought the value, where it is another: "ada-8.9"
};

/// "4.8 TB/s" as value and unit of a row.
void split_unit(SheetRow& row, const config::Node& node);

struct HardwareSheet {
  std::string name, title;
  std::vector<SheetRow> values;   ///< read from the file, in its order of sections
  std::vector<SheetRow> assumed;  ///< what the file may say and does not
  std::vector<SheetRow> derived;  ///< computed from them; `source` is the formula
};

/// Peaks by data type (dense and sparse), achieved bandwidths, ridge points, totals of the SMs.
std::vector<SheetRow> derived_rows(const Gpu& gpu);

}  // namespace ridgeline
