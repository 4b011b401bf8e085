#include "fit/measurements.h"

namespace ridgeline::fit {

Measurements load_measurements(const std::filesystem::path& root, const std::vector<std::string>& ops) {
  Measurements result{.index = MeasurementIndex(root / "measurements"), .machines = {}};
  // Kernels of Ampere that an H200 does not have are fitted as serving libraries run them on an A100.
  const WantedOps wanted{.files =
                             [](const MeasuredFile& file) {
                               return (file.machine.hardware == "nvidia-h200-sxm-141gb" && file.kind == "kernels") ||
                                      file.machine.name == kServingA100;
                             },
                         .ops = ops};
  MeasuredOps measured = load_measured_ops(result.index, wanted);
  for (const MeasuringMachine& machine : measured.machines) result.machines.push_back(machine.name);
  result.twins = measured.twins;
  std::erase_if(measured.rows, [&](const MeasuredOp& row) {
    return row.kernels.empty() && result.machines[static_cast<std::size_t>(row.machine)] != kServingA100;
  });
  result.rows = std::move(measured.rows);
  return result;
}

}  // namespace ridgeline::fit
