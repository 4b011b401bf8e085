#include "fit/measurements.h"

#include <algorithm>
#include <stdexcept>

namespace ridgeline::fit {

Measurements load_measurements(const std::filesystem::path& root, const std::vector<std::string>& ops) {
  Measurements result{.index = MeasurementIndex(root / "measurements"), .machines = {}};
  // Kernels that an H200 does not have are fitted as others timed them on other boards.
  const WantedOps wanted{.files =
                             [](const MeasuredFile& file) {
                               return (file.machine.hardware == "nvidia-h200-sxm-141gb" && file.kind == "kernels") ||
                                      is_published_product(file);
                             },
                         .ops = ops};
  MeasuredOps measured = load_measured_ops(result.index, wanted);
  for (const MeasuringMachine& machine : measured.machines) result.machines.push_back(machine.name);
  // Single calls have rows of their own kind, which their cases read.
  for (const MeasuredFile* file : result.index.of_kind("calls"))
    if (std::find(result.machines.begin(), result.machines.end(), file->machine.name) == result.machines.end())
      result.machines.push_back(file->machine.name);
  result.twins = measured.twins;
  std::erase_if(measured.rows,
                [&](const MeasuredOp& row) { return row.kernels.empty() && !is_published_product(*row.file); });
  result.rows = std::move(measured.rows);
  return result;
}

int Measurements::machine(const std::string& name) const {
  const auto place = std::find(machines.begin(), machines.end(), name);
  if (place == machines.end()) throw std::out_of_range("no measurements of machine " + name);
  return static_cast<int>(place - machines.begin());
}

}  // namespace ridgeline::fit
