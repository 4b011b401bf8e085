// Results of the microkernels, read and turned into the measured section of a hardware file.
#include "sim/config/parse_yaml.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/measured_section.h"
#include "sim/study/calibration/calibration.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_probe(const std::uint8_t* data, std::size_t size) {
  static const std::string file = hardware_file("nvidia-h200-sxm-141gb");
  static const Gpu gpu = load_gpu(file, {}, Numbers::datasheet);
  static const std::vector<SheetRow> kept = measured_rows(config::load_yaml(file));
  static const std::vector<std::string> order = [] {
    std::vector<std::string> keys;
    for (const SheetRow& row : load_hardware_sheet(file).values) keys.push_back(row.key);
    return keys;
  }();
  try {
    const ProbeResult probe = probe_result_from({reinterpret_cast<const char*>(data), size}, "input");
    (void)calibrate(probe, gpu, kept, order);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).empty()) return "a message without words";
  }
  return {};
}

}  // namespace ridgeline
