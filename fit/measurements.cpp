#include "fit/measurements.h"

namespace ridgeline::fit {

Measurements load_measurements(const std::filesystem::path& root, const std::vector<std::string>& ops) {
  Measurements result{.index = MeasurementIndex(root / "measurements"), .machines = {}};
  const WantedOps wanted{
      .files = [](const MeasuredFile& file) { return file.machine.hardware == "nvidia-h200-sxm-141gb"; }, .ops = ops};
  MeasuredOps measured = load_measured_ops(result.index, wanted);
  for (const MeasuringMachine& machine : measured.machines) result.machines.push_back(machine.name);
  result.twins = measured.twins;
  std::erase_if(measured.rows, [](const MeasuredOp& row) { return row.kernels.empty(); });
  result.rows = std::move(measured.rows);
  return result;
}

}  // namespace ridgeline::fit
